#include <immintrin.h>

#include "bench/mac_chains_impl.h"
#include "bench/mac_kernels.h"

namespace vivace::bench::avx512bf16 {

void Dpbf16Zmm(int64_t steps) {
  __m512 u = _mm512_set1_ps(1.5f), v = _mm512_set1_ps(0.25f);
  Opaque(u);
  Opaque(v);
  const auto step = [&](__m512 a) { return _mm512_dpbf16_ps(a, (__m512bh)u, (__m512bh)v); };
  RunChains(steps, _mm512_setzero_ps(), step, std::make_index_sequence<kEvexChains>());
}

}  // namespace vivace::bench::avx512bf16
