// Element types of weights and caches: everything a file may hold, block formats included.
// A block format stores `block_elems` values in `block_bytes`; plain types have blocks of one.
#pragma once

#include <cstdint>
#include <string_view>

namespace vivace {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kIQ1_S,  // from here on: for the reference kernels only, all others need them expanded
  kIQ1_M,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ3_XXS,
  kIQ3_S,
  kTQ1_0,
  kTQ2_0,
};
inline constexpr int kNumDTypes = static_cast<int>(DType::kTQ2_0) + 1;

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // as llama.cpp and people write it: "Q4_1", "BF16"
  int32_t block_elems;
  int32_t block_bytes;
};

const DTypeInfo& Info(DType dtype);

// Bytes of one row of `elems` values; `elems` must be a multiple of block_elems.
constexpr int64_t RowBytes(const DTypeInfo& info, int64_t elems) {
  return elems / info.block_elems * info.block_bytes;
}

}  // namespace vivace
