// How the AVX-512 tier reads 32 columns of a panel, format by format: as 8 units, operands of
// vpdpbusd, and what turns their sums into numbers. Included by linear_avx512.cc only; internal
// linkage.
#pragma once

#include <immintrin.h>

#include "kernels/x86/linear_rows_avx512.h"
#include "kernels/x86/tiles.h"

namespace vivace::kernels::avx512 {
namespace {

#define VIVACE_UNROLL _Pragma("GCC unroll 16")

inline __m512 HalfToFloat(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

enum class BlockKind {
  kOffset,   // d * (q - 2^kOffsetBits)
  kMinimum,  // d * q + m
  kHalves,   // as kOffset, with a d for columns 0 .. 15 and one for 16 .. 31
};

template <BlockKind kTheKind, int kBits = 0>
struct KindOf {
  static constexpr BlockKind kKind = kTheKind;
  static constexpr int kOffsetBits = kBits;
  static constexpr bool kChecked = false;  // scales are known to be finite, or not used
};

// Each BlockOf has Unit(half, k), the integers of unit 4 * half + k, and Scale(half). Minimums are
// read for several blocks at once: FillMinimums.
template <typename Tile>
struct BlockOf;

// ---- 4 and 5 bits -------------------------------------------------------------------------------

inline __m512i Nibbles(const uint8_t (&q)[4][64], int half, int k) {
  const __m512i raw = _mm512_loadu_si512(q[k]);
  return _mm512_and_si512(half == 0 ? raw : _mm512_srli_epi16(raw, 4), _mm512_set1_epi8(15));
}

// v with bit `from` of every byte in the place of bit `to`; the other bits are of no use.
inline __m512i MoveBit(__m512i v, int from, int to) {
  return from < to ? _mm512_slli_epi16(v, to - from) : _mm512_srli_epi16(v, from - to);
}

// low | (high & mask)
inline __m512i Join(__m512i low, __m512i high, char mask) {
  constexpr int kOrAnd = 0xf8;
  return _mm512_ternarylogic_epi32(low, high, _mm512_set1_epi8(mask), kOrAnd);
}

// Bit u of `high` is bit 4 of unit u.
inline __m512i FiveBits(const uint8_t (&q)[4][64], const uint8_t (&high)[64], int half, int k) {
  return Join(Nibbles(q, half, k), MoveBit(_mm512_loadu_si512(high), 4 * half + k, 4), 16);
}

template <>
struct BlockOf<x86::TileQ4_0> : KindOf<BlockKind::kOffset, 3> {
  const x86::TileQ4_0& tile;
  BlockOf(const x86::TileQ4_0& t, int) : tile(t) {}
  __m512i Unit(int half, int k) const { return Nibbles(tile.q, half, k); }
  __m512 Scale(int) const { return HalfToFloat(tile.d); }
};

template <>
struct BlockOf<x86::TileQ4_1> : KindOf<BlockKind::kMinimum> {
  const x86::TileQ4_1& tile;
  BlockOf(const x86::TileQ4_1& t, int) : tile(t) {}
  __m512i Unit(int half, int k) const { return Nibbles(tile.q, half, k); }
  __m512 Scale(int) const { return HalfToFloat(tile.d); }
};

template <>
struct BlockOf<x86::TileQ5_0> : KindOf<BlockKind::kOffset, 4> {
  const x86::TileQ5_0& tile;
  BlockOf(const x86::TileQ5_0& t, int) : tile(t) {}
  __m512i Unit(int half, int k) const { return FiveBits(tile.q, tile.high, half, k); }
  __m512 Scale(int) const { return HalfToFloat(tile.d); }
};

template <>
struct BlockOf<x86::TileQ5_1> : KindOf<BlockKind::kMinimum> {
  const x86::TileQ5_1& tile;
  BlockOf(const x86::TileQ5_1& t, int) : tile(t) {}
  __m512i Unit(int half, int k) const { return FiveBits(tile.q, tile.high, half, k); }
  __m512 Scale(int) const { return HalfToFloat(tile.d); }
};

template <>
struct BlockOf<x86::TileQ8_0> : KindOf<BlockKind::kOffset, 7> {
  const x86::TileQ8_0& tile;
  BlockOf(const x86::TileQ8_0& t, int) : tile(t) {}
  __m512i Unit(int half, int k) const { return _mm512_loadu_si512(tile.q[4 * half + k]); }
  __m512 Scale(int) const { return HalfToFloat(tile.d); }
};

// ---- K formats ----------------------------------------------------------------------------------

// A scale of the whole tile times those of the block. At most 11 + 8 significant bits: exact.
inline __m512 TimesBytes(const uint16_t* half, __m512i bytes) {
  return _mm512_mul_ps(HalfToFloat(half), _mm512_cvtepi32_ps(bytes));
}
inline __m512i Bytes(const uint8_t* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline __m512i Bytes(const int8_t* p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline __m512i Negated(__m512i v) { return _mm512_sub_epi32(_mm512_setzero_si512(), v); }

template <>
struct BlockOf<x86::TileQ4_K> : KindOf<BlockKind::kMinimum> {
  const x86::TileQ4_K& tile;
  const x86::TileQ4_K::Block& block;
  BlockOf(const x86::TileQ4_K& t, int b) : tile(t), block(t.blocks[b]) {}
  __m512i Unit(int half, int k) const { return Nibbles(block.q, half, k); }
  __m512 Scale(int) const { return TimesBytes(tile.d, Bytes(block.scale)); }
};

template <>
struct BlockOf<x86::TileQ5_K> : KindOf<BlockKind::kMinimum> {
  const x86::TileQ5_K& tile;
  const x86::TileQ5_K::Block& block;
  BlockOf(const x86::TileQ5_K& t, int b) : tile(t), block(t.blocks[b]) {}
  __m512i Unit(int half, int k) const { return FiveBits(block.q, block.high, half, k); }
  __m512 Scale(int) const { return TimesBytes(tile.d, Bytes(block.scale)); }
};

template <>
struct BlockOf<x86::TileQ6_K> : KindOf<BlockKind::kHalves, 5> {
  const x86::TileQ6_K& tile;
  const x86::TileQ6_K::Block& block;
  BlockOf(const x86::TileQ6_K& t, int b) : tile(t), block(t.blocks[b]) {}
  __m512i Unit(int half, int k) const {
    const __m512i high = _mm512_loadu_si512(block.high[half]);
    return Join(Nibbles(block.q, half, k), MoveBit(high, 2 * k, 4), 48);
  }
  __m512 Scale(int half) const { return TimesBytes(tile.d, Bytes(block.scale[half])); }
};

// ---- scales -------------------------------------------------------------------------------------

// A zero scale as one that is as good as zero, but whose exponent can be added to.
inline __m512 NotZero(__m512 d) {
  const __mmask16 zero = _mm512_cmp_ps_mask(d, _mm512_setzero_ps(), _CMP_EQ_OQ);
  return _mm512_mask_mov_ps(d, zero, _mm512_set1_ps(0x1p-125f));
}

// The scales of 16 outputs times 1, 1 + 1/kScaleSteps, ..., as integers from which the bits of that
// factor are taken off: adding the bits of an activation scale gives the bits of the product. A NaN
// or an infinity would become some number: whoever reads `d` from a file looks for those.
struct alignas(64) ScaleTable {
  int32_t step[kScaleSteps][16];

  void Fill(__m512 d) {
    d = NotZero(d);
    VIVACE_UNROLL
    for (int k = 0; k < kScaleSteps; ++k) {
      const __m512 factor = _mm512_set1_ps(1.0f + static_cast<float>(k) / kScaleSteps);
      const __m512i bits = _mm512_castps_si512(_mm512_mul_ps(d, factor));
      _mm512_store_si512(step[k], _mm512_sub_epi32(bits, _mm512_castps_si512(factor)));
    }
  }
};

inline __mmask16 NotFinite(__m512 d) {
  constexpr int kNanOrInfinity = 0x99;
  return _mm512_fpclass_ps_mask(d, kNanOrInfinity);
}

// ---- minimums -----------------------------------------------------------------------------------

// Blocks that are done together, a stretch: unpacked, half of a small first-level cache, the rest
// is for activations.
constexpr int kStretchBlocks = 18;

// What the minimums of a stretch add to an output: minimums times sums of activations as exact
// integers, two blocks a vpdpwssd, then one FMA per part. A part is the blocks whose minimums have
// one scale.
constexpr int kMaxMinimum = 2047;  // as many bits as a half has
static_assert(int64_t{kStretchBlocks} * kMaxMinimum * kMaxSum < int64_t{1} << 31);

struct alignas(64) Minimums {
  static constexpr int kPairs = kStretchBlocks / 2;
  int32_t pair[kPairs][16];  // two int16: of an even block and of the next one
  float scale[kPairs][16];   // by part; the unit of the activations' sums is in it
  int parts = 0;
  int pairs_per_part = 0;
};

inline __m512i LowWord(__m512i v) { return _mm512_and_si512(v, _mm512_set1_epi32(0xffff)); }

constexpr float kSumUnit = 1 << kSumShift;

// Q4_1 and Q5_1: halves, one part per stretch, relative to its largest. Returns the outputs that
// have one that is not finite.
template <typename Tile>
inline __mmask16 FillFromHalves(const Tile* tiles, int first, int last, Minimums& out) {
  const auto load = [&](int b) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(tiles[b].m));
  };
  __m256i largest = _mm256_setzero_si256();
  for (int b = first; b < last; ++b) {
    largest = _mm256_max_epu16(largest, _mm256_and_si256(load(b), _mm256_set1_epi16(0x7fff)));
  }
  // The smallest half, for outputs all of whose minimums are zero.
  const __m512 most = _mm512_cvtph_ps(_mm256_max_epu16(largest, _mm256_set1_epi16(1)));
  const __m512 unit = _mm512_mul_ps(most, _mm512_set1_ps(1.0f / kMaxMinimum));
  const __m512 inverse = _mm512_div_ps(_mm512_set1_ps(kMaxMinimum), most);
  const auto integer = [&](int b) {
    if (b >= last) return _mm512_setzero_si512();
    return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtph_ps(load(b)), inverse));
  };
  int pair = 0;
  for (int b = first; b < last; b += 2, ++pair) {
    _mm512_store_si512(out.pair[pair],
                       _mm512_or_si512(LowWord(integer(b)), _mm512_slli_epi32(integer(b + 1), 16)));
  }
  _mm512_store_ps(out.scale[0], _mm512_mul_ps(unit, _mm512_set1_ps(kSumUnit)));
  out.parts = 1;
  out.pairs_per_part = pair;
  return NotFinite(most);
}

// Q4_K and Q5_K: integers as they are, a part per tile.
template <typename Tile>
inline __mmask16 FillFromBytes(const Tile* tiles, int first, int last, Minimums& out) {
  __mmask16 bad = 0;
  out.parts = 0;
  out.pairs_per_part = Tile::kBlocks / 2;
  int32_t(*pair)[16] = out.pair;
  for (int t = first / Tile::kBlocks; t < last / Tile::kBlocks; ++t, ++out.parts) {
    VIVACE_UNROLL
    for (int b = 0; b < Tile::kBlocks; b += 2, ++pair) {
      const auto& blocks = tiles[t].blocks;
      const __m512i odd = _mm512_slli_epi32(Bytes(blocks[b + 1].min), 16);
      _mm512_store_si512(*pair, _mm512_or_si512(Bytes(blocks[b].min), odd));
    }
    const __m512 unit = HalfToFloat(tiles[t].dmin);
    bad |= NotFinite(unit);
    _mm512_store_ps(out.scale[out.parts], _mm512_mul_ps(unit, _mm512_set1_ps(-kSumUnit)));
  }
  return bad;
}

// Those of blocks [first, last) of a panel.
template <typename Tile>
inline __mmask16 FillMinimums(const Tile* tiles, int first, int last, Minimums& out) {
  if constexpr (Tile::kBlocks == 1) {
    return FillFromHalves(tiles, first, last, out);
  } else {
    return FillFromBytes(tiles, first, last, out);
  }
}

// ---- unpacked -----------------------------------------------------------------------------------

template <typename Kind>
struct alignas(64) Unpacked {
  static constexpr int kScales = Kind::kKind == BlockKind::kHalves ? 2 : 1;
  uint8_t q[x86::kUnits][64];
  ScaleTable scale[kScales];
};

// Returns the outputs of which a scale is not finite.
template <typename Block, typename Kind>
inline __mmask16 Unpack(const Block& block, Unpacked<Kind>& out) {
  VIVACE_UNROLL
  for (int k = 0; k < 4; ++k) {
    _mm512_store_si512(out.q[k], block.Unit(0, k));
    _mm512_store_si512(out.q[4 + k], block.Unit(1, k));
  }
  __mmask16 bad = 0;
  VIVACE_UNROLL
  for (int half = 0; half < Unpacked<Kind>::kScales; ++half) {
    const __m512 d = block.Scale(half);
    bad |= NotFinite(d);
    out.scale[half].Fill(d);
  }
  return bad;
}

template <typename Kind>
struct UnpackedBlock : Kind {
  static constexpr bool kChecked = true;
  const Unpacked<Kind>& data;
  explicit UnpackedBlock(const Unpacked<Kind>& d) : data(d) {}
  __m512i Unit(int half, int k) const { return _mm512_load_si512(data.q[4 * half + k]); }
  const ScaleTable& Scale(int half) const { return data.scale[half]; }
};

}  // namespace
}  // namespace vivace::kernels::avx512
