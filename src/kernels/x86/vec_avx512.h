// Sixteen floats at once, for the templates that serve both x86 tiers (attention_impl.h and what it
// includes, norm_qkv_impl.h, qkv_heads_impl.h, vocab_impl.h) and for linear_rows_avx512.cc. Only
// files built for AVX-512 may include this; the struct lives in the tier's namespace, so no other
// tier's file can end up with its code.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <numbers>

namespace vivace::kernels::avx512 {

struct Vec {
  using F = __m512;
  static constexpr int kLanes = 16;
  // Register tiles of attention: query rows, and vectors of positions or dims.
  static constexpr int kScoreRows = 6;
  static constexpr int kScoreVecs = 4;
  static constexpr int kValueRows = 6;
  static constexpr int kValueVecs = 4;

  // Sixteen 32-bit integers, or thirty-two of 16 bits.
  using I = __m512i;

  static F Zero() { return _mm512_setzero_ps(); }
  static F Set1(float x) { return _mm512_set1_ps(x); }
  static F Load(const float* p) { return _mm512_loadu_ps(p); }
  static void Store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static F Add(F a, F b) { return _mm512_add_ps(a, b); }
  static F Sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F Mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F Div(F a, F b) { return _mm512_div_ps(a, b); }
  static F Max(F a, F b) { return _mm512_max_ps(a, b); }
  static F Fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  // Fma(a, b, sum) where sums fill the registers: GCC 12 may choose a form that overwrites a
  // factor, and then copies and spills sums.
  static F Accumulate(F sum, F a, F b) {
    asm("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }

  static __mmask16 LaneMask(int lo, int hi) {
    const uint32_t below_hi = hi >= kLanes ? 0xffffu : (hi <= 0 ? 0u : (1u << hi) - 1);
    const uint32_t below_lo = lo >= kLanes ? 0xffffu : (lo <= 0 ? 0u : (1u << lo) - 1);
    return static_cast<__mmask16>(below_hi & ~below_lo);
  }
  // x in lanes [lo, hi), `other` elsewhere; the bounds may lie outside the vector.
  static F KeepLanes(F x, int lo, int hi, F other) {
    return _mm512_mask_mov_ps(other, LaneMask(lo, hi), x);
  }
  // The first n floats at p, zeros after them; reads no further.
  static F LoadFirst(const float* p, int n) { return _mm512_maskz_loadu_ps(LaneMask(0, n), p); }

  static uint32_t GreaterBits(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
  static uint32_t GreaterEqualBits(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
  // x where a > b, else y.
  static F SelectGreater(F a, F b, F x, F y) {
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), x);
  }
  // Lanes that are NaN or infinite.
  static uint32_t NonFiniteBits(F a) { return _mm512_fpclass_ps_mask(a, 0x99); }

  // Sixteen positions of 2 * kPairRows dims, pairs of dims side by side (from[row][position]), as
  // eight rows of pairs of positions, `stride` apart.
  static constexpr int kPairRows = 8;
  static void SwapPairs(const uint16_t* from, uint16_t* to, int64_t stride) {
    const __m512i swap = _mm512_set4_epi32(0x0f0e0b0a, 0x0d0c0908, 0x07060302, 0x05040100);
    __m512i t[8];  // rows 2i and 2i + 1: the even positions' pairs, the odd ones'
    for (int i = 0; i < 4; ++i) {
      const __m512i a = _mm512_shuffle_epi8(_mm512_loadu_si512(from + 64 * i), swap);
      const __m512i b = _mm512_shuffle_epi8(_mm512_loadu_si512(from + 64 * i + 32), swap);
      t[i] = _mm512_unpacklo_epi64(a, b);
      t[4 + i] = _mm512_unpackhi_epi64(a, b);
    }
    for (int odd = 0; odd < 2; ++odd) {
      const __m512i* u = t + 4 * odd;
      const __m512i even01 = _mm512_shuffle_i64x2(u[0], u[1], 0x88);
      const __m512i even23 = _mm512_shuffle_i64x2(u[2], u[3], 0x88);
      const __m512i odd01 = _mm512_shuffle_i64x2(u[0], u[1], 0xdd);
      const __m512i odd23 = _mm512_shuffle_i64x2(u[2], u[3], 0xdd);
      _mm512_storeu_si512(to + odd * stride, _mm512_shuffle_i64x2(even01, even23, 0x88));
      _mm512_storeu_si512(to + (odd + 2) * stride, _mm512_shuffle_i64x2(odd01, odd23, 0x88));
      _mm512_storeu_si512(to + (odd + 4) * stride, _mm512_shuffle_i64x2(even01, even23, 0xdd));
      _mm512_storeu_si512(to + (odd + 6) * stride, _mm512_shuffle_i64x2(odd01, odd23, 0xdd));
    }
  }

  static F Abs(F x) { return _mm512_abs_ps(x); }
  // p[0], p[0], p[1], p[1], ...: reads kLanes / 2 floats.
  static F LoadEachTwice(const float* p) {
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
  }
  static F SwapNeighbours(F x) { return _mm512_permute_ps(x, 0xb1); }
  // a - b in even lanes, a + b in odd ones; rounded once, as either operation alone.
  static F SubAdd(F a, F b) { return _mm512_fmaddsub_ps(a, _mm512_set1_ps(1.0f), b); }

  static float ReduceMax(F x) { return _mm512_reduce_max_ps(x); }
  static float ReduceAdd(F x) {
    const __m256 lo = _mm512_castps512_ps256(x);
    const __m256 hi = _mm512_extractf32x8_ps(x, 1);
    const __m256 a = _mm256_add_ps(lo, hi);
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
  }
  // Sum in double, in a fixed order.
  static double ReduceAddDouble(F x) {
    const __m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    const __m512d b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
    const __m512d s = _mm512_add_pd(a, b);
    const __m256d t = _mm256_add_pd(_mm512_castpd512_pd256(s), _mm512_extractf64x4_pd(s, 1));
    const __m128d u = _mm_add_pd(_mm256_castpd256_pd128(t), _mm256_extractf128_pd(t, 1));
    return _mm_cvtsd_f64(_mm_add_sd(u, _mm_unpackhi_pd(u, u)));
  }

  // 2^x, relative error under 1.5e-7; exactly 1 at 0, 0 at -infinity, infinity from 128 on.
  static F Exp2(F x) {
    constexpr int kFraction = 0x09;  // what is left above floor(x), in [0, 1); no exceptions
    const F f = _mm512_reduce_ps(x, kFraction);
    F p = _mm512_set1_ps(0x1.e97502p-10f);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.277854p-7f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.c91ce6p-5f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.ebdb56p-3f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0x1.62e4bap-1f));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, x);  // times 2^floor(x)
  }

  // x / (1 + 2^t). The division is not what limits: a reciprocal and a step of Newton's take
  // longer.
  static F Over1Plus2To(F t, F x) { return Div(x, Add(Set1(1.0f), Exp2(t))); }
  // x / (1 + e^-x)
  static F Silu(F x) { return Over1Plus2To(Mul(x, Set1(-std::numbers::log2e_v<float>)), x); }

  // Lane i: the greatest of the kLanes floats from p + i * kLanes on. Where one of them is NaN, any
  // of them.
  static F MaxOfRows(const float* p) {
    F quads[4];  // of 4 rows each; a row's 4 maxima stand in the same lane of the 128-bit parts
    for (int i = 0; i < 4; ++i) {
      F pairs[2];
      for (int j = 0; j < 2; ++j) {
        const F a = Load(p + (4 * i + 2 * j) * kLanes), b = Load(p + (4 * i + 2 * j + 1) * kLanes);
        pairs[j] = Max(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
      }
      const __m512d a = _mm512_castps_pd(pairs[0]), b = _mm512_castps_pd(pairs[1]);
      quads[i] = Max(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                     _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
    const auto fold = [](F a, F b) {
      return Max(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    };
    return fold(fold(quads[0], quads[1]), fold(quads[2], quads[3]));
  }

  // Sixteen 32-bit words of two bf16 each: the low halves, the high halves.
  static F LoadLow(const uint16_t* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16));
  }
  static F LoadHigh(const uint16_t* p) {
    return _mm512_castsi512_ps(
        _mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static I IntZero() { return _mm512_setzero_si512(); }
  // The 32 bits at p in every lane.
  static I SetWord(const void* p) {
    int32_t word;
    std::memcpy(&word, p, sizeof word);
    return _mm512_set1_epi32(word);
  }
  // 2 * kLanes bytes, each as 16 bits.
  static I WidenBytes(const int8_t* p) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  // sum + a[2i] * b[2i] + a[2i + 1] * b[2i + 1] in lane i; exact.
  // By hand: GCC 12 copies the sum of the intrinsic to and fro, which costs half the speed.
  static I DotPairs(I sum, I a, I b) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
  // The same of pairs of bf16, on machines with AVX512_BF16 only; by hand, so that it needs no
  // flag.
  static F DotBf16(F sum, I a, I b) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
  // As StoreBf16, on the same machines; less than the least normal float becomes 0.
  static void StoreDotBf16(uint16_t* p, F x) {
    __m256i words;
    asm("vcvtneps2bf16 %1, %0" : "=v"(words) : "v"(x));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), words);
  }
  static I LoadWords(const uint16_t* p) { return _mm512_loadu_si512(p); }
  static I MaskWords(I x, uint32_t mask) {
    return _mm512_and_si512(x, _mm512_set1_epi32(static_cast<int>(mask)));
  }
  static F ToFloat(I x) { return _mm512_cvtepi32_ps(x); }
  // kLanes integers, rounded to nearest even and saturated.
  static void StoreInt16(int16_t* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(x)));
  }
  static void StoreInt8(int8_t* p, F x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(x)));
  }

  // Rounds to nearest even; a NaN stays one.
  static __m512i RoundToBf16(F x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x00400000));
  }
  static void StoreBf16(uint16_t* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(RoundToBf16(x), 16)));
  }
};

}  // namespace vivace::kernels::avx512
