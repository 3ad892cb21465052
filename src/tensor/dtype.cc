#include "tensor/dtype.h"

#include <iterator>

#include "base/check.h"

namespace vivace {
namespace {

// Block sizes: llama.cpp's ggml block structs, as the GGUF specification fixes them on disk.
constexpr DTypeInfo kTable[] = {
    {DType::kF32, "F32", 1, 4},
    {DType::kF16, "F16", 1, 2},
    {DType::kBF16, "BF16", 1, 2},
    {DType::kQ4_0, "Q4_0", 32, 18},
    {DType::kQ4_1, "Q4_1", 32, 20},
    {DType::kQ5_0, "Q5_0", 32, 22},
    {DType::kQ5_1, "Q5_1", 32, 24},
    {DType::kQ8_0, "Q8_0", 32, 34},
    {DType::kQ2_K, "Q2_K", 256, 84},
    {DType::kQ3_K, "Q3_K", 256, 110},
    {DType::kQ4_K, "Q4_K", 256, 144},
    {DType::kQ5_K, "Q5_K", 256, 176},
    {DType::kQ6_K, "Q6_K", 256, 210},
    {DType::kIQ4_NL, "IQ4_NL", 32, 18},
    {DType::kIQ4_XS, "IQ4_XS", 256, 136},
    {DType::kMXFP4, "MXFP4", 32, 17},
    {DType::kIQ1_S, "IQ1_S", 256, 50},
    {DType::kIQ1_M, "IQ1_M", 256, 56},
    {DType::kIQ2_XXS, "IQ2_XXS", 256, 66},
    {DType::kIQ2_XS, "IQ2_XS", 256, 74},
    {DType::kIQ2_S, "IQ2_S", 256, 82},
    {DType::kIQ3_XXS, "IQ3_XXS", 256, 98},
    {DType::kIQ3_S, "IQ3_S", 256, 110},
    {DType::kTQ1_0, "TQ1_0", 256, 54},
    {DType::kTQ2_0, "TQ2_0", 256, 66},
};
static_assert(std::size(kTable) == kNumDTypes);

}  // namespace

const DTypeInfo& Info(DType dtype) {
  const auto& info = kTable[static_cast<int>(dtype)];
  VIVACE_DCHECK(info.dtype == dtype);
  return info;
}

}  // namespace vivace
