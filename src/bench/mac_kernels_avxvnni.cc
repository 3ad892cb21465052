#include <immintrin.h>

#include "bench/mac_chains_impl.h"
#include "bench/mac_kernels.h"

namespace vivace::bench::avxvnni {

void DpbusdVex(int64_t steps) {
  __m256i u = _mm256_set1_epi8(3), v = _mm256_set1_epi8(2);
  Opaque(u);
  Opaque(v);
  RunChains(
      steps, _mm256_setzero_si256(), [&](__m256i a) { return _mm256_dpbusd_avx_epi32(a, u, v); },
      std::make_index_sequence<kVexChains>());
}

}  // namespace vivace::bench::avxvnni
