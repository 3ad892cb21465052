#include <immintrin.h>

#include "bench/mac_chains_impl.h"
#include "bench/mac_kernels.h"

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

constexpr int64_t kVector = 32;
constexpr int64_t kPage = kReadGranule / 4;
constexpr int64_t kLine = 64;
constexpr int64_t kAhead = 2'048;

__m256i Load(const char* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }

uint64_t Fold(__m256i all) {
  return static_cast<uint64_t>(_mm256_extract_epi64(all, 0) | _mm256_extract_epi64(all, 1) |
                               _mm256_extract_epi64(all, 2) | _mm256_extract_epi64(all, 3));
}

}  // namespace

uint64_t ReadStreams(const void* data, int64_t bytes) {
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  const char* p = static_cast<const char*>(data);
  for (const char* end = p + bytes; p < end; p += kReadGranule) {
    for (int64_t at = 0; at < kPage; at += 2 * kVector) {
      a = _mm256_or_si256(a, Load(p + at));
      b = _mm256_or_si256(b, Load(p + at + kVector));
      c = _mm256_or_si256(c, Load(p + at + kPage));
      d = _mm256_or_si256(d, Load(p + at + kPage + kVector));
      e = _mm256_or_si256(e, Load(p + at + 2 * kPage));
      f = _mm256_or_si256(f, Load(p + at + 2 * kPage + kVector));
      g = _mm256_or_si256(g, Load(p + at + 3 * kPage));
      h = _mm256_or_si256(h, Load(p + at + 3 * kPage + kVector));
    }
  }
  a = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
  e = _mm256_or_si256(_mm256_or_si256(e, f), _mm256_or_si256(g, h));
  return Fold(_mm256_or_si256(a, e));
}

uint64_t ReadPrefetched(const void* data, int64_t bytes) {
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
  const char* p = static_cast<const char*>(data);
  for (const char* end = p + bytes; p < end; p += 4 * kVector) {
    for (int64_t at = 0; at < 4 * kVector; at += kLine) _mm_prefetch(p + kAhead + at, _MM_HINT_T0);
    a = _mm256_or_si256(a, Load(p));
    b = _mm256_or_si256(b, Load(p + kVector));
    c = _mm256_or_si256(c, Load(p + 2 * kVector));
    d = _mm256_or_si256(d, Load(p + 3 * kVector));
  }
  return Fold(_mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d)));
}

}  // namespace vivace::bench::avx2
