#include <immintrin.h>

#include "bench/mac_chains_impl.h"
#include "bench/mac_kernels.h"
#include "bench/mac_reads_impl.h"

namespace vivace::bench::avx2 {

void Fp32Ymm(int64_t steps) {
  __m256 u = _mm256_set1_ps(1.5f), v = _mm256_set1_ps(0.25f);
  Opaque(u);
  Opaque(v);
  RunChains(
      steps, _mm256_setzero_ps(), [&](__m256 a) { return _mm256_fmadd_ps(u, v, a); },
      std::make_index_sequence<kVexChains>());
}

void MaddubsYmm(int64_t steps) {
  __m256i u = _mm256_set1_epi8(3), v = _mm256_set1_epi8(2), ones = _mm256_set1_epi16(1);
  Opaque(v);
  Opaque(ones);
  const auto step = [&](__m256i a) {
    Opaque(u);  // a new value each time, or the product would be taken out of the loop
    return _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_maddubs_epi16(u, v), ones));
  };
  RunChains(steps, _mm256_setzero_si256(), step, std::make_index_sequence<kVexChains>());
}

namespace {

uint64_t Fold(__m256i all) {
  return static_cast<uint64_t>(_mm256_extract_epi64(all, 0) | _mm256_extract_epi64(all, 1) |
                               _mm256_extract_epi64(all, 2) | _mm256_extract_epi64(all, 3));
}

}  // namespace

uint64_t ReadStreams(const void* data, int64_t bytes) {
  return Fold(OrOfStreams<__m256i>(data, bytes));
}

uint64_t ReadPrefetched(const void* data, int64_t bytes) {
  return Fold(OrOfPrefetched<__m256i>(data, bytes));
}

}  // namespace vivace::bench::avx2
