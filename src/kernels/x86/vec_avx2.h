// Eight floats at once: see vec_avx512.h. Only files built for AVX2, FMA and F16C may include this.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <numbers>

namespace vivace::kernels::avx2 {

struct Vec {
  using F = __m256;
  using I = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kScoreRows = 4;
  static constexpr int kScoreVecs = 2;
  static constexpr int kValueRows = 5;
  static constexpr int kValueVecs = 2;

  static F Zero() { return _mm256_setzero_ps(); }
  static F Set1(float x) { return _mm256_set1_ps(x); }
  static F Load(const float* p) { return _mm256_loadu_ps(p); }
  static void Store(float* p, F x) { _mm256_storeu_ps(p, x); }
  static F Add(F a, F b) { return _mm256_add_ps(a, b); }
  static F Sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F Mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F Div(F a, F b) { return _mm256_div_ps(a, b); }
  static F Max(F a, F b) { return _mm256_max_ps(a, b); }
  static F Fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  // Fma(a, b, sum) where sums fill the registers: GCC 12 may choose a form that overwrites a
  // factor, and then copies and spills sums.
  static F Accumulate(F sum, F a, F b) {
    asm("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
    return sum;
  }

  static __m256 LaneMask(int lo, int hi) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i at_least = _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(lo - 1));
    return _mm256_castsi256_ps(
        _mm256_and_si256(at_least, _mm256_cmpgt_epi32(_mm256_set1_epi32(hi), lane)));
  }
  static F KeepLanes(F x, int lo, int hi, F other) {
    return _mm256_blendv_ps(other, x, LaneMask(lo, hi));
  }
  static F LoadFirst(const float* p, int n) {
    return _mm256_maskload_ps(p, _mm256_castps_si256(LaneMask(0, n)));
  }

  static uint32_t GreaterBits(F a, F b) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)));
  }
  static uint32_t GreaterEqualBits(F a, F b) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GE_OQ)));
  }
  static F SelectGreater(F a, F b, F x, F y) {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
  }
  static uint32_t NonFiniteBits(F a) {  // x - x is 0 for a finite x, NaN for the rest
    const F d = _mm256_sub_ps(a, a);
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(d, d, _CMP_UNORD_Q)));
  }

  static constexpr int kPairRows = 4;
  static void SwapPairs(const uint16_t* from, uint16_t* to, int64_t stride) {
    const __m256i swap = _mm256_setr_epi32(0x05040100, 0x07060302, 0x0d0c0908, 0x0f0e0b0a,
                                           0x05040100, 0x07060302, 0x0d0c0908, 0x0f0e0b0a);
    for (int half = 0; half < 2; ++half, from += 16, to += 4 * stride) {  // of the positions
      __m256i r[4];
      for (int i = 0; i < 4; ++i) {
        const void* row = from + 32 * i;
        r[i] = _mm256_shuffle_epi8(_mm256_loadu_si256(static_cast<const __m256i*>(row)), swap);
      }
      const __m256i even01 = _mm256_unpacklo_epi64(r[0], r[1]);
      const __m256i even23 = _mm256_unpacklo_epi64(r[2], r[3]);
      const __m256i odd01 = _mm256_unpackhi_epi64(r[0], r[1]);
      const __m256i odd23 = _mm256_unpackhi_epi64(r[2], r[3]);
      const __m256i rows[] = {_mm256_permute2x128_si256(even01, even23, 0x20),
                              _mm256_permute2x128_si256(odd01, odd23, 0x20),
                              _mm256_permute2x128_si256(even01, even23, 0x31),
                              _mm256_permute2x128_si256(odd01, odd23, 0x31)};
      for (int i = 0; i < 4; ++i) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i * stride), rows[i]);
      }
    }
  }

  static F Abs(F x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
  static F LoadEachTwice(const float* p) {
    const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), twice);
  }
  static F SwapNeighbours(F x) { return _mm256_permute_ps(x, 0xb1); }
  static F SubAdd(F a, F b) { return _mm256_addsub_ps(a, b); }

  static float ReduceMax(F x) {
    __m128 a = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    a = _mm_max_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)));
  }
  static float ReduceAdd(F x) {
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
  }
  static double ReduceAddDouble(F x) {
    const __m256d s = _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(x)),
                                    _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
    const __m128d u = _mm_add_pd(_mm256_castpd256_pd128(s), _mm256_extractf128_pd(s, 1));
    return _mm_cvtsd_f64(_mm_add_sd(u, _mm_unpackhi_pd(u, u)));
  }

  // 2^x for x <= 126, relative error under 2e-7; exactly 1 at 0, and 0 below -126.
  static F Exp2(F x) {
    const F magic = _mm256_set1_ps(0x1.8p23f + 127);  // brings round(x) + 127 into the low bits
    const F t = _mm256_add_ps(x, magic);
    const F f = _mm256_sub_ps(x, _mm256_sub_ps(t, magic));
    F p = _mm256_set1_ps(0x1.5bba14p-10f);
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0x1.3cea88p-7f));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0x1.c6b752p-5f));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0x1.ebf9bcp-3f));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(0x1.62e42ap-1f));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(1.0f));
    const F power = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(t), 23));
    const F kept = _mm256_cmp_ps(x, _mm256_set1_ps(-126.0f), _CMP_NLT_UQ);  // a NaN as well
    return _mm256_and_ps(_mm256_mul_ps(p, power), kept);
  }

  // x / (1 + 2^t)
  static F Over1Plus2To(F t, F x) {
    // Operand order matters: min returns the second when one is NaN.
    const F power = Exp2(_mm256_min_ps(_mm256_set1_ps(126.0f), t));
    return Div(x, Add(Set1(1.0f), power));
  }
  static F Silu(F x) { return Over1Plus2To(Mul(x, Set1(-std::numbers::log2e_v<float>)), x); }

  // Lane i: the greatest of the kLanes floats from p + i * kLanes on. Where one of them is NaN, any
  // of them.
  static F MaxOfRows(const float* p) {
    F quads[2];  // of 4 rows each; a row's 2 maxima stand in the same lane of the 128-bit parts
    for (int i = 0; i < 2; ++i) {
      F pairs[2];
      for (int j = 0; j < 2; ++j) {
        const F a = Load(p + (4 * i + 2 * j) * kLanes), b = Load(p + (4 * i + 2 * j + 1) * kLanes);
        pairs[j] = Max(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
      }
      const __m256d a = _mm256_castps_pd(pairs[0]), b = _mm256_castps_pd(pairs[1]);
      quads[i] = Max(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)),
                     _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
    }
    return Max(_mm256_permute2f128_ps(quads[0], quads[1], 0x20),
               _mm256_permute2f128_ps(quads[0], quads[1], 0x31));
  }

  static F LoadLow(const uint16_t* p) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
  }
  static F LoadHigh(const uint16_t* p) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm256_castsi256_ps(
        _mm256_and_si256(x, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static __m256i RoundToBf16(F x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
    const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), nan));
  }
  static void StoreBf16(uint16_t* p, F x) {
    const __m256i bits = _mm256_srli_epi32(RoundToBf16(x), 16);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1)));
  }

  static I IntZero() { return _mm256_setzero_si256(); }
  static I SetWord(const void* p) {
    int32_t word;
    std::memcpy(&word, p, sizeof word);
    return _mm256_set1_epi32(word);
  }
  static I WidenBytes(const int8_t* p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I DotPairs(I sum, I a, I b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
  static F ToFloat(I x) { return _mm256_cvtepi32_ps(x); }
  static __m128i PackInt16(F x) {
    const __m256i i = _mm256_cvtps_epi32(x);
    return _mm_packs_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
  }
  static void StoreInt16(int16_t* p, F x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), PackInt16(x));
  }
  static void StoreInt8(int8_t* p, F x) {
    const __m128i words = PackInt16(x);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
  }
};

}  // namespace vivace::kernels::avx2
