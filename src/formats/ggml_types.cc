#include "formats/ggml_types.h"

#include <algorithm>

#include "base/check.h"

namespace vivace::formats {
namespace {

// Ids and block sizes: the ggml_type enumeration and block structs of the GGUF specification.
// Ids 4, 5, 31-33 and 36-38 were given to formats that no longer exist.
constexpr GgmlType kTypes[] = {
    {0, "F32", 1, 4, DType::kF32},
    {1, "F16", 1, 2, DType::kF16},
    {2, "Q4_0", 32, 18, DType::kQ4_0},
    {3, "Q4_1", 32, 20, DType::kQ4_1},
    {6, "Q5_0", 32, 22, DType::kQ5_0},
    {7, "Q5_1", 32, 24, DType::kQ5_1},
    {8, "Q8_0", 32, 34, DType::kQ8_0},
    {9, "Q8_1", 32, 36, std::nullopt},
    {10, "Q2_K", 256, 84, DType::kQ2_K},
    {11, "Q3_K", 256, 110, DType::kQ3_K},
    {12, "Q4_K", 256, 144, DType::kQ4_K},
    {13, "Q5_K", 256, 176, DType::kQ5_K},
    {14, "Q6_K", 256, 210, DType::kQ6_K},
    {15, "Q8_K", 256, 292, std::nullopt},
    {16, "IQ2_XXS", 256, 66, DType::kIQ2_XXS},
    {17, "IQ2_XS", 256, 74, DType::kIQ2_XS},
    {18, "IQ3_XXS", 256, 98, DType::kIQ3_XXS},
    {19, "IQ1_S", 256, 50, DType::kIQ1_S},
    {20, "IQ4_NL", 32, 18, DType::kIQ4_NL},
    {21, "IQ3_S", 256, 110, DType::kIQ3_S},
    {22, "IQ2_S", 256, 82, DType::kIQ2_S},
    {23, "IQ4_XS", 256, 136, DType::kIQ4_XS},
    {24, "I8", 1, 1, std::nullopt},
    {25, "I16", 1, 2, std::nullopt},
    {26, "I32", 1, 4, std::nullopt},
    {27, "I64", 1, 8, std::nullopt},
    {28, "F64", 1, 8, std::nullopt},
    {29, "IQ1_M", 256, 56, DType::kIQ1_M},
    {30, "BF16", 1, 2, DType::kBF16},
    {34, "TQ1_0", 256, 54, DType::kTQ1_0},
    {35, "TQ2_0", 256, 66, DType::kTQ2_0},
    {39, "MXFP4", 32, 17, DType::kMXFP4},
    {40, "NVFP4", 64, 36, std::nullopt},
    {41, "Q1_0", 128, 18, std::nullopt},
};

}  // namespace

const GgmlType* FindGgmlType(uint32_t id) {
  const auto* found = std::ranges::lower_bound(kTypes, id, {}, &GgmlType::id);
  return found != std::end(kTypes) && found->id == id ? found : nullptr;
}

uint32_t GgmlTypeId(DType dtype) {
  const auto* found = std::ranges::find(kTypes, std::optional(dtype), &GgmlType::dtype);
  VIVACE_CHECK(found != std::end(kTypes));
  return found->id;
}

}  // namespace vivace::formats
