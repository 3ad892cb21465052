// Tile kernels in 256-bit registers: one ymm holds 8 outputs of one row, half of a tile. One source
// for two tiers: with vpdpbusd where the compiler may use it (AVX-VNNI, or AVX-512 VNNI in its
// 256-bit form, which the tests use), with vpmaddubsw otherwise. Both give the same bits: the
// integer sums are exact, and the float operations per output and their order are the same, and
// fixed, as in linear_avx512.cc.
//
// vpmaddubsw adds pairs of products in 16 bits with saturation. No sum here can saturate, whatever
// the weights: activations are -127 .. 127, so kSafeUnits units of b-bit weights are at most
//   4 bits   8 units of 2 products:   8 * 2 * 15 * 127 = 30480
//   5 bits   4 units of 2 products:   4 * 2 * 31 * 127 = 31496
//   6 bits   2 units of 2 products:   2 * 2 * 63 * 127 = 32004
//   8 bits   are taken as two 4-bit halves: w = low + 16 * high
// vpdpbusd adds four products in 32 bits: no format comes near the limit.
//
// Included by linear_<tier>.cc; all of it has internal linkage.
#pragma once

#include <immintrin.h>

#include "kernels/x86/linear_rows_avx2.h"
#include "kernels/x86/tiles.h"

namespace vivace::kernels {
namespace {

using x86::Fp32Block;
using x86::Int8Block;
using x86::kBlockCols;
using x86::kUnits;

constexpr int kMaxWidth = 6;  // 6 integer and 6 float accumulators of 16 registers

#define VIVACE_UNROLL _Pragma("GCC unroll 16")

inline __m256i LoadInts(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

inline __m256 HalfToFloat(const uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

// ---- products of integers -----------------------------------------------------------------------

// The units of a block in an order that takes both nibbles of a byte one after the other.
struct AllUnits {
  static constexpr int kCount = kUnits;
  static constexpr int At(int k) { return k / 2 + k % 2 * 4; }
};
// Those of columns 16 * kHalf .. 16 * kHalf + 15.
template <int kHalf>
struct HalfOfUnits {
  static constexpr int kCount = kUnits / 2;
  static constexpr int At(int k) { return 4 * kHalf + k; }
};

template <int kWidth>
inline void Clear(__m256i (&sums)[kWidth]) {
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) sums[i] = _mm256_setzero_si256();
}

// acc[i] = the sum over `Units` of the products of weights(unit), kBits-bit unsigned integers, with
// row i.
#if defined(__AVXVNNI__) || defined(__AVX512VNNI__)

inline __m256i AddProducts(__m256i acc, __m256i weights, int32_t values) {
#if defined(__AVXVNNI__)
  return _mm256_dpbusd_avx_epi32(acc, weights, _mm256_set1_epi32(values));
#else
  return _mm256_dpbusd_epi32(acc, weights, _mm256_set1_epi32(values));
#endif
}

template <int kBits, typename Units, int kWidth, typename Weights>
inline void Dot(Weights weights, const Int8Block<kWidth>& a, __m256i (&acc)[kWidth]) {
  Clear(acc);
  VIVACE_UNROLL
  for (int k = 0; k < Units::kCount; ++k) {
    const __m256i w = weights(Units::At(k));
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) acc[i] = AddProducts(acc[i], w, a.q[Units::At(k)][i]);
  }
}

#else

// 16-bit sums of pairs of products.
inline __m256i AddProducts(__m256i sums, __m256i weights, int32_t values) {
  return _mm256_add_epi16(sums, _mm256_maddubs_epi16(weights, _mm256_set1_epi32(values)));
}

// The sums of pairs of them, each times `factor`.
inline __m256i Widen(__m256i sums, short factor) {
  return _mm256_madd_epi16(sums, _mm256_set1_epi16(factor));
}

template <int kBits, typename Units, int kWidth, typename Weights>
inline void DotInBatches(Weights weights, const Int8Block<kWidth>& a, __m256i (&acc)[kWidth]) {
  constexpr int kSafeUnits = 32767 / (2 * ((1 << kBits) - 1) * 127);
  static_assert(kSafeUnits > 0 && Units::kCount % kSafeUnits == 0);
  VIVACE_UNROLL
  for (int first = 0; first < Units::kCount; first += kSafeUnits) {
    __m256i sums[kWidth];
    Clear(sums);
    VIVACE_UNROLL
    for (int k = first; k < first + kSafeUnits; ++k) {
      const __m256i w = weights(Units::At(k));
      VIVACE_UNROLL
      for (int i = 0; i < kWidth; ++i) sums[i] = AddProducts(sums[i], w, a.q[Units::At(k)][i]);
    }
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      acc[i] = first == 0 ? Widen(sums[i], 1) : _mm256_add_epi32(acc[i], Widen(sums[i], 1));
    }
  }
}

template <typename Units, int kWidth, typename Weights>
inline void DotInHalves(Weights weights, const Int8Block<kWidth>& a, __m256i (&acc)[kWidth]) {
  const __m256i mask = _mm256_set1_epi8(15);
  __m256i low[kWidth], high[kWidth];
  Clear(low);
  Clear(high);
  VIVACE_UNROLL
  for (int k = 0; k < Units::kCount; ++k) {
    const __m256i w = weights(Units::At(k));
    const __m256i w_low = _mm256_and_si256(w, mask);
    const __m256i w_high = _mm256_and_si256(_mm256_srli_epi16(w, 4), mask);
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      low[i] = AddProducts(low[i], w_low, a.q[Units::At(k)][i]);
      high[i] = AddProducts(high[i], w_high, a.q[Units::At(k)][i]);
    }
  }
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) acc[i] = _mm256_add_epi32(Widen(low[i], 1), Widen(high[i], 16));
}

template <int kBits, typename Units, int kWidth, typename Weights>
inline void Dot(Weights weights, const Int8Block<kWidth>& a, __m256i (&acc)[kWidth]) {
  if constexpr (kBits == 8) {
    DotInHalves<Units>(weights, a, acc);
  } else {
    DotInBatches<kBits, Units>(weights, a, acc);
  }
}

#endif

// ---- the integers of a block: unit `unit` of outputs 8 * half .. 8 * half + 7 -------------------

inline __m256i LowBits(const uint8_t (&q)[kUnits][64], int half, int unit) {
  return LoadInts(q[unit] + 32 * half);
}
inline __m256i LowBits(const uint8_t (&q)[4][64], int half, int unit) {
  const __m256i raw = LoadInts(q[unit % 4] + 32 * half);
  return _mm256_and_si256(unit < 4 ? raw : _mm256_srli_epi16(raw, 4), _mm256_set1_epi8(15));
}

// Bits from `from` up of every byte to bits from 4 up, as many as `mask` has.
inline __m256i ToBit4(__m256i v, int from, char mask) {
  const __m256i moved = from < 4 ? _mm256_slli_epi16(v, 4 - from) : _mm256_srli_epi16(v, from - 4);
  return _mm256_and_si256(moved, _mm256_set1_epi8(mask));
}
inline __m256i HighBits(const uint8_t (&high)[64], int half, int unit) {
  return ToBit4(LoadInts(high + 32 * half), unit, 16);
}
inline __m256i HighBits(const uint8_t (&high)[2][64], int half, int unit) {
  return ToBit4(LoadInts(high[unit / 4] + 32 * half), 2 * (unit % 4), 48);
}

// What Dot takes as `weights`.
template <typename Block>
inline auto Integers(const Block& block, int half) {
  return [&block, half](int unit) {
    const __m256i low = LowBits(block.q, half, unit);
    if constexpr (requires { block.high; }) {
      return _mm256_or_si256(low, HighBits(block.high, half, unit));
    } else {
      return low;
    }
  };
}

// ---- int8 blocks: steps over block `b` of a tile ------------------------------------------------

// f[i] += d * a.d[i] * (acc[i] + minus[i] * kZero)
template <int kZero, int kWidth>
inline void Scale(__m256 d, const Int8Block<kWidth>& a, const int32_t (&minus)[kWidth],
                  const __m256i (&acc)[kWidth], __m256 (&f)[kWidth]) {
  constexpr int kShift = __builtin_ctz(kZero);
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    const __m256i offset = _mm256_slli_epi32(_mm256_set1_epi32(minus[i]), kShift);
    const __m256 sum = _mm256_cvtepi32_ps(_mm256_add_epi32(acc[i], offset));
    f[i] = _mm256_fmadd_ps(sum, _mm256_mul_ps(d, _mm256_set1_ps(a.d[i])), f[i]);
  }
}

// f[i] += d * a.d[i] * acc[i] + m * a.sum[i]
template <int kWidth>
inline void ScaleAndShift(__m256 d, __m256 m, const Int8Block<kWidth>& a,
                          const __m256i (&acc)[kWidth], __m256 (&f)[kWidth]) {
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    const __m256 sum = _mm256_cvtepi32_ps(acc[i]);
    f[i] = _mm256_fmadd_ps(sum, _mm256_mul_ps(d, _mm256_set1_ps(a.d[i])), f[i]);
    f[i] = _mm256_fmadd_ps(m, _mm256_set1_ps(a.sum[i]), f[i]);
  }
}

// d * (q - kZero)
template <int kBits, typename Tile, int kWidth>
inline void StepSymmetric(const Tile& tile, int half, const Int8Block<kWidth>& a,
                          __m256 (&f)[kWidth]) {
  __m256i acc[kWidth];
  Dot<kBits, AllUnits>(Integers(tile, half), a, acc);
  Scale<Tile::kZero>(HalfToFloat(tile.d + 8 * half), a, a.minus, acc, f);
}

// d * q + m
template <int kBits, typename Tile, int kWidth>
inline void StepMinimum(const Tile& tile, int half, const Int8Block<kWidth>& a,
                        __m256 (&f)[kWidth]) {
  __m256i acc[kWidth];
  Dot<kBits, AllUnits>(Integers(tile, half), a, acc);
  ScaleAndShift(HalfToFloat(tile.d + 8 * half), HalfToFloat(tile.m + 8 * half), a, acc, f);
}

// Eight fp16 values of a tile times 8-bit factors of one of its blocks: at most 11 + 8 significant
// bits, so exact.
inline __m256 Times(const uint16_t* half, const uint8_t* factor) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(factor));
  return _mm256_mul_ps(HalfToFloat(half), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)));
}
inline __m256 Times(const uint16_t* half, const int8_t* factor) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(factor));
  return _mm256_mul_ps(HalfToFloat(half), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)));
}

// d * scale * q - dmin * min
template <int kBits, typename Tile, int kWidth>
inline void StepScaledMinimum(const Tile& tile, int b, int half, const Int8Block<kWidth>& a,
                              __m256 (&f)[kWidth]) {
  const auto& block = tile.blocks[b];
  __m256i acc[kWidth];
  Dot<kBits, AllUnits>(Integers(block, half), a, acc);
  const __m256 min = Times(tile.dmin + 8 * half, block.min + 8 * half);
  ScaleAndShift(Times(tile.d + 8 * half, block.scale + 8 * half),
                _mm256_xor_ps(min, _mm256_set1_ps(-0.0f)), a, acc, f);
}

// d * scale * (q - 32), a scale for each half of the block's columns
template <int kHalf, int kWidth>
inline void StepHalf(const x86::TileQ6_K& tile, int b, int half, const Int8Block<kWidth>& a,
                     __m256 (&f)[kWidth]) {
  const auto& block = tile.blocks[b];
  __m256i acc[kWidth];
  Dot<6, HalfOfUnits<kHalf>>(Integers(block, half), a, acc);
  Scale<x86::TileQ6_K::kZero>(Times(tile.d + 8 * half, block.scale[kHalf] + 8 * half), a,
                              a.minus16[kHalf], acc, f);
}

template <int kWidth>
inline void Step(const x86::TileQ4_0& tile, int, int half, const Int8Block<kWidth>& a,
                 __m256 (&f)[kWidth]) {
  StepSymmetric<4>(tile, half, a, f);
}
template <int kWidth>
inline void Step(const x86::TileQ5_0& tile, int, int half, const Int8Block<kWidth>& a,
                 __m256 (&f)[kWidth]) {
  StepSymmetric<5>(tile, half, a, f);
}
template <int kWidth>
inline void Step(const x86::TileQ8_0& tile, int, int half, const Int8Block<kWidth>& a,
                 __m256 (&f)[kWidth]) {
  StepSymmetric<8>(tile, half, a, f);
}
template <int kWidth>
inline void Step(const x86::TileQ4_1& tile, int, int half, const Int8Block<kWidth>& a,
                 __m256 (&f)[kWidth]) {
  StepMinimum<4>(tile, half, a, f);
}
template <int kWidth>
inline void Step(const x86::TileQ5_1& tile, int, int half, const Int8Block<kWidth>& a,
                 __m256 (&f)[kWidth]) {
  StepMinimum<5>(tile, half, a, f);
}
template <int kWidth>
inline void Step(const x86::TileQ4_K& tile, int b, int half, const Int8Block<kWidth>& a,
                 __m256 (&f)[kWidth]) {
  StepScaledMinimum<4>(tile, b, half, a, f);
}
template <int kWidth>
inline void Step(const x86::TileQ5_K& tile, int b, int half, const Int8Block<kWidth>& a,
                 __m256 (&f)[kWidth]) {
  StepScaledMinimum<5>(tile, b, half, a, f);
}
template <int kWidth>
inline void Step(const x86::TileQ6_K& tile, int b, int half, const Int8Block<kWidth>& a,
                 __m256 (&f)[kWidth]) {
  StepHalf<0>(tile, b, half, a, f);
  StepHalf<1>(tile, b, half, a, f);
}

// ---- fp32 blocks: steps -------------------------------------------------------------------------

// Even and odd columns have a sum each: alone, a row is a chain of dependent multiply-adds.
template <int kWidth, typename LoadWeights>
inline void StepFp32(const Fp32Block<kWidth>& a, __m256 (&f)[kWidth], LoadWeights load) {
  __m256 acc[2][kWidth];
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) acc[0][i] = acc[1][i] = _mm256_setzero_ps();
#pragma GCC unroll 4
  for (int k = 0; k < kBlockCols; k += 2) {
    VIVACE_UNROLL
    for (int odd = 0; odd < 2; ++odd) {
      const __m256 w = load(k, odd);
      VIVACE_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        acc[odd][i] = _mm256_fmadd_ps(w, _mm256_set1_ps(a.x[k + odd][i]), acc[odd][i]);
      }
    }
  }
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    f[i] = _mm256_add_ps(f[i], _mm256_add_ps(acc[0][i], acc[1][i]));
  }
}

template <int kWidth>
inline void Step(const x86::TileF32& tile, int, int half, const Fp32Block<kWidth>& a,
                 __m256 (&f)[kWidth]) {
  StepFp32(a, f, [&](int k, int odd) { return _mm256_loadu_ps(tile.w[k + odd] + 8 * half); });
}
template <int kWidth>
inline void Step(const x86::TileF16& tile, int, int half, const Fp32Block<kWidth>& a,
                 __m256 (&f)[kWidth]) {
  StepFp32(a, f, [&](int k, int odd) { return HalfToFloat(tile.w[k + odd] + 8 * half); });
}
template <int kWidth>
inline void Step(const x86::TileBF16& tile, int, int half, const Fp32Block<kWidth>& a,
                 __m256 (&f)[kWidth]) {
  StepFp32(a, f, [&](int k, int odd) {  // a pair of columns is one 32-bit word: low and high half
    const __m256i pair = LoadInts(&tile.w[k / 2][8 * half][0]);
    return _mm256_castsi256_ps(odd ? _mm256_and_si256(pair, _mm256_set1_epi32(~0xffff))
                                   : _mm256_slli_epi32(pair, 16));
  });
}

// ---- panels -------------------------------------------------------------------------------------

template <typename Tile, typename Block, int kWidth>
inline void StepTile(const Tile& tile, int half, const Block* rows, __m256 (&f)[kWidth]) {
  for (int b = 0; b < Tile::kBlocks; ++b) Step(tile, b, half, rows[b], f);
}

// Both halves of the outputs, one after the other: the second pass finds the panel in the cache.
// Narrow groups do both in one pass, so that memory is read as one stream.
template <typename Tile, template <int> typename Block, int kWidth>
void Multiply(const std::byte* panel, const std::byte* group, int blocks, float* c) {
  const auto* tiles = reinterpret_cast<const Tile*>(panel);
  const auto* rows = reinterpret_cast<const Block<kWidth>*>(group);
  const int count = blocks / Tile::kBlocks;
  constexpr bool kOnePass = kWidth <= 2;
  __m256 f[2][kWidth];
  for (auto& half : f) {
    VIVACE_UNROLL
    for (int i = 0; i < kWidth; ++i) half[i] = _mm256_setzero_ps();
  }
  if constexpr (kOnePass) {
    for (int t = 0; t < count; ++t) {
      StepTile(tiles[t], 0, rows + t * Tile::kBlocks, f[0]);
      StepTile(tiles[t], 1, rows + t * Tile::kBlocks, f[1]);
    }
  } else {
    for (int t = 0; t < count; ++t) StepTile(tiles[t], 0, rows + t * Tile::kBlocks, f[0]);
    for (int t = 0; t < count; ++t) StepTile(tiles[t], 1, rows + t * Tile::kBlocks, f[1]);
  }
  VIVACE_UNROLL
  for (int i = 0; i < kWidth; ++i) {
    _mm256_storeu_ps(c + 16 * i, f[0][i]);
    _mm256_storeu_ps(c + 16 * i + 8, f[1][i]);
  }
}

template <typename Tile, template <int> typename Block, int kWidth = kMaxWidth>
constexpr void SetMultiply(x86::TierKernels& kernels) {
  kernels.multiply[Tile::kFormat][kWidth] = Multiply<Tile, Block, kWidth>;
  if constexpr (kWidth > 1) SetMultiply<Tile, Block, kWidth - 1>(kernels);
}

constexpr x86::TierKernels MakeKernels() {
  x86::TierKernels kernels = {
      .max_width = kMaxWidth,
      .multiply = {},
      .prepare = avx2::Prepare,
      .store = avx2::Store,
      .add = avx2::Add,
      .silu_mul = avx2::SiluMul,
      .gelu_tanh_mul = avx2::GeluTanhMul,
      .fold_best = avx2::FoldBest,
  };
  SetMultiply<x86::TileF32, Fp32Block>(kernels);
  SetMultiply<x86::TileF16, Fp32Block>(kernels);
  SetMultiply<x86::TileBF16, Fp32Block>(kernels);
  SetMultiply<x86::TileQ4_0, Int8Block>(kernels);
  SetMultiply<x86::TileQ4_1, Int8Block>(kernels);
  SetMultiply<x86::TileQ5_0, Int8Block>(kernels);
  SetMultiply<x86::TileQ5_1, Int8Block>(kernels);
  SetMultiply<x86::TileQ8_0, Int8Block>(kernels);
  SetMultiply<x86::TileQ4_K, Int8Block>(kernels);
  SetMultiply<x86::TileQ5_K, Int8Block>(kernels);
  SetMultiply<x86::TileQ6_K, Int8Block>(kernels);
  return kernels;
}

#undef VIVACE_UNROLL

}  // namespace
}  // namespace vivace::kernels
