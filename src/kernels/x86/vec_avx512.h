// Sixteen floats at once, for the templates that serve both x86 tiers (attention_impl.h,
// norm_qkv_impl.h, vocab_impl.h). Only files built for AVX-512 may include this; the struct lives
// in the tier's namespace, so no other tier's file can end up with its code.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

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

  // e^x for x <= 0, relative error under 3e-7; e^-87 below -87.
  static F Exp(F x) {
    x = _mm512_max_ps(_mm512_set1_ps(-87.0f), x);  // this order keeps a NaN
    const F n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
                                     _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    F r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693145752f), x);  // ln 2, high part
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(1.42860677e-6f), r);  // and low part
    F p = _mm512_set1_ps(1.0f / 720);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 120));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 24));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 6));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, n);
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
