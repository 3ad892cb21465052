#include <immintrin.h>

#include "bench/mac_chains_impl.h"
#include "bench/mac_kernels.h"
#include "bench/mac_reads_impl.h"

namespace vivace::bench::avx512 {

void Fp32Zmm(int64_t steps) {
  __m512 u = _mm512_set1_ps(1.5f), v = _mm512_set1_ps(0.25f);
  Opaque(u);
  Opaque(v);
  RunChains(
      steps, _mm512_setzero_ps(), [&](__m512 a) { return _mm512_fmadd_ps(u, v, a); },
      std::make_index_sequence<kEvexChains>());
}

void DpbusdYmm(int64_t steps) {
  __m256i u = _mm256_set1_epi8(3), v = _mm256_set1_epi8(2);
  Opaque(u);
  Opaque(v);
  RunChains(
      steps, _mm256_setzero_si256(), [&](__m256i a) { return _mm256_dpbusd_epi32(a, u, v); },
      std::make_index_sequence<kEvexChains>());
}

void DpbusdZmm(int64_t steps) {
  __m512i u = _mm512_set1_epi8(3), v = _mm512_set1_epi8(2);
  Opaque(u);
  Opaque(v);
  RunChains(
      steps, _mm512_setzero_si512(), [&](__m512i a) { return _mm512_dpbusd_epi32(a, u, v); },
      std::make_index_sequence<kEvexChains>());
}

namespace {

uint64_t Fold(__m512i all) { return static_cast<uint64_t>(_mm512_reduce_or_epi64(all)); }

}  // namespace

uint64_t ReadStreams(const void* data, int64_t bytes) {
  return Fold(OrOfStreams<__m512i>(data, bytes));
}

uint64_t ReadPrefetched(const void* data, int64_t bytes) {
  return Fold(OrOfPrefetched<__m512i>(data, bytes));
}

}  // namespace vivace::bench::avx512
