#include <immintrin.h>

#include "bench/mac_chains_impl.h"
#include "bench/mac_kernels.h"

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

constexpr int64_t kVector = 64;
constexpr int64_t kPage = kReadGranule / 4;
constexpr int64_t kLine = 64;
constexpr int64_t kAhead = 2'048;

__m512i Load(const char* p) { return _mm512_load_si512(p); }

uint64_t Fold(__m512i all) { return static_cast<uint64_t>(_mm512_reduce_or_epi64(all)); }

}  // namespace

uint64_t ReadStreams(const void* data, int64_t bytes) {
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  const char* p = static_cast<const char*>(data);
  for (const char* end = p + bytes; p < end; p += kReadGranule) {
    for (int64_t at = 0; at < kPage; at += 2 * kVector) {
      a = _mm512_or_si512(a, Load(p + at));
      b = _mm512_or_si512(b, Load(p + at + kVector));
      c = _mm512_or_si512(c, Load(p + at + kPage));
      d = _mm512_or_si512(d, Load(p + at + kPage + kVector));
      e = _mm512_or_si512(e, Load(p + at + 2 * kPage));
      f = _mm512_or_si512(f, Load(p + at + 2 * kPage + kVector));
      g = _mm512_or_si512(g, Load(p + at + 3 * kPage));
      h = _mm512_or_si512(h, Load(p + at + 3 * kPage + kVector));
    }
  }
  a = _mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d));
  e = _mm512_or_si512(_mm512_or_si512(e, f), _mm512_or_si512(g, h));
  return Fold(_mm512_or_si512(a, e));
}

uint64_t ReadPrefetched(const void* data, int64_t bytes) {
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
  const char* p = static_cast<const char*>(data);
  for (const char* end = p + bytes; p < end; p += 4 * kVector) {
    for (int64_t at = 0; at < 4 * kVector; at += kLine) _mm_prefetch(p + kAhead + at, _MM_HINT_T0);
    a = _mm512_or_si512(a, Load(p));
    b = _mm512_or_si512(b, Load(p + kVector));
    c = _mm512_or_si512(c, Load(p + 2 * kVector));
    d = _mm512_or_si512(d, Load(p + 3 * kVector));
  }
  return Fold(_mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d)));
}

}  // namespace vivace::bench::avx512
