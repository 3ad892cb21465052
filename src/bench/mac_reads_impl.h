// Reads of a buffer in vectors of a tier's own. For mac_kernels_*.cc only, with internal linkage,
// as mac_chains_impl.h says. `V` is a GCC vector of integers; the result depends on every byte.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "bench/mac_kernels.h"

namespace vivace::bench {
namespace {

template <typename V>
inline V LoadVector(const char* p) {
  return *reinterpret_cast<const V*>(p);
}

// Four streams a page apart, as the hardware's prefetchers like it.
template <typename V>
inline V OrOfStreams(const void* data, int64_t bytes) {
  constexpr int64_t kVector = sizeof(V), kPage = kReadGranule / 4;
  V a{}, b{}, c{}, d{}, e{}, f{}, g{}, h{};
  const char* p = static_cast<const char*>(data);
  for (const char* end = p + bytes; p < end; p += kReadGranule) {
    for (int64_t at = 0; at < kPage; at += 2 * kVector) {
      a |= LoadVector<V>(p + at);
      b |= LoadVector<V>(p + at + kVector);
      c |= LoadVector<V>(p + at + kPage);
      d |= LoadVector<V>(p + at + kPage + kVector);
      e |= LoadVector<V>(p + at + 2 * kPage);
      f |= LoadVector<V>(p + at + 2 * kPage + kVector);
      g |= LoadVector<V>(p + at + 3 * kPage);
      h |= LoadVector<V>(p + at + 3 * kPage + kVector);
    }
  }
  return (a | b | c | d) | (e | f | g | h);
}

// One stream, prefetched by software.
template <typename V>
inline V OrOfPrefetched(const void* data, int64_t bytes) {
  constexpr int64_t kVector = sizeof(V), kLine = 64, kAhead = 2'048;
  V a{}, b{}, c{}, d{};
  const char* p = static_cast<const char*>(data);
  for (const char* end = p + bytes; p < end; p += 4 * kVector) {
    for (int64_t at = 0; at < 4 * kVector; at += kLine) _mm_prefetch(p + kAhead + at, _MM_HINT_T0);
    a |= LoadVector<V>(p);
    b |= LoadVector<V>(p + kVector);
    c |= LoadVector<V>(p + 2 * kVector);
    d |= LoadVector<V>(p + 3 * kVector);
  }
  return a | b | c | d;
}

}  // namespace
}  // namespace vivace::bench
