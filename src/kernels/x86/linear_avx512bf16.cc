// Products of BF16 weights by vdpbf16ps: the AVX-512 tier's but for these. Pairs of columns go into
// two accumulators in turn, to cover the latency when there are few rows; the order is the same for
// every width.
#include <immintrin.h>

#include <utility>

#include "kernels/x86/tiles.h"

namespace vivace::kernels::avx512bf16 {
namespace {

using x86::Bf16Block;
using x86::kBlockCols;
using x86::TileBF16;

#define VIVACE_UNROLL _Pragma("GCC unroll 16")

constexpr int kMaxWidth = 12;  // 2 x 12 accumulators of 32 registers

// f[i] += the products of a pair of columns.
template <int kWidth>
inline void Dot(const uint16_t (&pairs)[16][2], const uint32_t (&x)[kWidth], __m512 (&f)[kWidth]) {
  const auto w = reinterpret_cast<__m512bh>(_mm512_loadu_si512(pairs));
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    const __m512i both = _mm512_set1_epi32(static_cast<int>(x[i]));
    f[i] = _mm512_dpbf16_ps(f[i], w, reinterpret_cast<__m512bh>(both));
  }
}

template <int kWidth>
void Multiply(const std::byte* panel, const std::byte* group, int blocks, float* c) {
  const auto* tiles = reinterpret_cast<const TileBF16*>(panel);
  const auto* rows = reinterpret_cast<const Bf16Block<kWidth>*>(group);
  __m512 even[kWidth], odd[kWidth];
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) even[i] = odd[i] = _mm512_setzero_ps();
  for (int b = 0; b < blocks; ++b) {
#pragma GCC unroll 2
    for (int k = 0; k < kBlockCols / 2; k += 2) {
      Dot(tiles[b].w[k], rows[b].x[k], even);
      Dot(tiles[b].w[k + 1], rows[b].x[k + 1], odd);
    }
  }
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) _mm512_storeu_ps(c + 16 * i, _mm512_add_ps(even[i], odd[i]));
}

#undef VIVACE_UNROLL

template <int... kWidths>
constexpr x86::Bf16Kernels MakeKernels(std::integer_sequence<int, kWidths...>) {
  return {{nullptr, Multiply<kWidths + 1>...}};
}

}  // namespace
}  // namespace vivace::kernels::avx512bf16

namespace vivace::kernels::x86 {

constinit const Bf16Kernels kAvx512Bf16Kernels =
    avx512bf16::MakeKernels(std::make_integer_sequence<int, avx512bf16::kMaxWidth>());

}  // namespace vivace::kernels::x86
