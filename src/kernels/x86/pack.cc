#include "kernels/x86/pack.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>
#include <type_traits>

#include "quant/blocks.h"

namespace vivace::kernels::x86 {
namespace {

// ---- the integers of 32 values of a source block ------------------------------------------------

using Integers = uint8_t[kBlockCols];

// Loops over bytes are written over words of 8: `from` is any 32 bytes.
constexpr uint64_t kEachByte = 0x0101010101010101u;

struct Word {
  uint64_t value;
  explicit Word(const uint8_t* p) { std::memcpy(&value, p, sizeof(value)); }
};

// q[i] = (from[i] >> shift) & mask
void TakeBits(const uint8_t* from, int shift, uint8_t mask, Integers& q) {
  for (int i = 0; i < kBlockCols; i += 8) {
    const uint64_t word = (Word(from + i).value >> shift) & (mask * kEachByte);
    std::memcpy(q + i, &word, sizeof(word));
  }
}

// q[i] |= ((from[i] >> shift) & mask) << to
void AddBits(const uint8_t* from, int shift, uint8_t mask, int to, Integers& q) {
  for (int i = 0; i < kBlockCols; i += 8) {
    const uint64_t bits = ((Word(from + i).value >> shift) & (mask * kEachByte)) << to;
    const uint64_t word = Word(q + i).value | bits;
    std::memcpy(q + i, &word, sizeof(word));
  }
}

// 16 bytes with values j and j + 16 in their nibbles.
void TakeNibbles(const uint8_t (&qs)[16], Integers& q) {
  for (int i = 0; i < 16; ++i) {
    q[i] = qs[i] & 15;
    q[i + 16] = qs[i] >> 4;
  }
}

// Bit j of `qh` becomes bit 4 of value j.
void AddFifthBits(const uint8_t (&qh)[4], Integers& q) {
  uint32_t bits;
  std::memcpy(&bits, qh, sizeof(bits));
  for (int unit = 0; unit < kUnits; ++unit) {
    const uint32_t four = (bits >> (4 * unit)) & 15;
    uint32_t word;
    std::memcpy(&word, q + 4 * unit, sizeof(word));
    word |= ((four * 0x00204081u) & 0x01010101u) << 4;  // bit c of `four` to byte c
    std::memcpy(q + 4 * unit, &word, sizeof(word));
  }
}

void Take(const quant::Q4_0& block, int, Integers& q) { TakeNibbles(block.qs, q); }
void Take(const quant::Q4_1& block, int, Integers& q) { TakeNibbles(block.qs, q); }
void Take(const quant::Q5_0& block, int, Integers& q) {
  TakeNibbles(block.qs, q);
  AddFifthBits(block.qh, q);
}
void Take(const quant::Q5_1& block, int, Integers& q) {
  TakeNibbles(block.qs, q);
  AddFifthBits(block.qh, q);
}
void Take(const quant::Q8_0& block, int, Integers& q) {
  for (int i = 0; i < kBlockCols; ++i) q[i] = static_cast<uint8_t>(block.qs[i] + 128);
}
// The codebook's values are integers of 8 bits: the block is a Q8_0 block.
void Take(const quant::IQ4_NL& block, int, Integers& q) {
  Integers index;
  TakeNibbles(block.qs, index);
  for (int unit = 0; unit < kUnits; ++unit) {
    uint32_t four = 0;
    for (int c = 0; c < 4; ++c) {
      const int value = quant::kIq4Values[index[4 * unit + c]] + 128;
      four |= static_cast<uint32_t>(value) << (8 * c);
    }
    std::memcpy(q + 4 * unit, &four, sizeof(four));
  }
}
// Of the K formats, values 32 * part .. 32 * part + 31.
void Take(const quant::Q4_K& block, int part, Integers& q) {
  TakeBits(block.qs + 32 * (part / 2), 4 * (part % 2), 15, q);
}
void Take(const quant::Q5_K& block, int part, Integers& q) {
  TakeBits(block.qs + 32 * (part / 2), 4 * (part % 2), 15, q);
  AddBits(block.qh, part, 1, 4, q);
}
void Take(const quant::Q6_K& block, int part, Integers& q) {
  const int half = part / 4, quarter = part % 4;
  TakeBits(block.ql + 64 * half + 32 * (quarter % 2), 4 * (quarter / 2), 15, q);
  AddBits(block.qh + 32 * half, 2 * quarter, 3, 4, q);
}
// d * scale * (q - 4) with 6-bit scales around 32: a Q6_K block whose values are 28 .. 35.
void Take(const quant::Q3_K& block, int part, Integers& q) {
  TakeBits(block.qs + 32 * (part / 4), 2 * (part % 4), 3, q);
  AddBits(block.hmask, part, 1, 2, q);
  for (int i = 0; i < kBlockCols; i += 8) {
    const uint64_t word = Word(q + i).value + 28 * kEachByte;
    std::memcpy(q + i, &word, sizeof(word));
  }
}

// ---- the integers of row `r` into a tile --------------------------------------------------------

// A unit's four values of a row, which lie side by side.
uint32_t Unit(const Integers& q, int unit) {
  uint32_t four;
  std::memcpy(&four, q + 4 * unit, sizeof(four));
  return four;
}
void SetUnit(uint8_t (&unit)[64], int r, uint32_t four) {
  std::memcpy(unit + 4 * r, &four, sizeof(four));
}

void PutLow(const Integers& q, int r, uint8_t (&out)[kUnits][64]) {
  for (int unit = 0; unit < kUnits; ++unit) SetUnit(out[unit], r, Unit(q, unit));
}
void PutLow(const Integers& q, int r, uint8_t (&out)[4][64]) {
  for (int unit = 0; unit < 4; ++unit) {
    const uint32_t low = Unit(q, unit) & 0x0f0f0f0fu, high = Unit(q, unit + 4) & 0x0f0f0f0fu;
    SetUnit(out[unit], r, low | high << 4);
  }
}

// Bit 4 of all units, unit g in bit g.
void PutHigh(const Integers& q, int r, uint8_t (&out)[64]) {
  uint32_t all = 0;
  for (int unit = 0; unit < kUnits; ++unit) all |= ((Unit(q, unit) >> 4) & 0x01010101u) << unit;
  SetUnit(out, r, all);
}
// Bits 4 and 5, of units 0 .. 3 and 4 .. 7.
void PutHigh(const Integers& q, int r, uint8_t (&out)[2][64]) {
  for (int half = 0; half < 2; ++half) {
    uint32_t all = 0;
    for (int i = 0; i < 4; ++i) all |= ((Unit(q, 4 * half + i) >> 4) & 0x03030303u) << (2 * i);
    SetUnit(out[half], r, all);
  }
}

template <typename Block>
void PutIntegers(const Integers& q, int r, Block& out) {
  PutLow(q, r, out.q);
  if constexpr (requires { out.high; }) PutHigh(q, r, out.high);
}

// ---- the scales of row `r` into a tile: of one block, or of `part` of a K format ----------------

template <typename Source, typename Tile>
void PutScales(const Source& source, int /*part*/, int r, Tile& tile) {
  tile.d[r] = source.d.bits.get();
  if constexpr (requires { tile.m; }) tile.m[r] = source.m.bits.get();
}
template <typename Source, typename Tile>
void PutMinMaxScales(const Source& source, int part, int r, Tile& tile) {
  const auto [scale, min] = quant::KScale(source.scales, part);
  tile.d[r] = source.d.bits.get();
  tile.dmin[r] = source.dmin.bits.get();
  tile.blocks[part].scale[r] = scale;
  tile.blocks[part].min[r] = min;
}
void PutScales(const quant::Q4_K& source, int part, int r, TileQ4_K& tile) {
  PutMinMaxScales(source, part, r, tile);
}
void PutScales(const quant::Q5_K& source, int part, int r, TileQ5_K& tile) {
  PutMinMaxScales(source, part, r, tile);
}
void PutScales(const quant::Q6_K& source, int part, int r, TileQ6_K& tile) {
  tile.d[r] = source.d.bits.get();
  for (int i = 0; i < 2; ++i) tile.blocks[part].scale[i][r] = source.scales[2 * part + i];
}
void PutScales(const quant::Q3_K& source, int part, int r, TileQ6_K& tile) {
  tile.d[r] = source.d.bits.get();
  for (int i = 0; i < 2; ++i) tile.blocks[part].scale[i][r] = source.Scale(2 * part + i);
}

// ---- one row of one tile in: tile `t` of the row at `row` ---------------------------------------

template <typename Tile>
auto& BlockOf(Tile& tile, [[maybe_unused]] int part) {
  if constexpr (Tile::kBlocks == 1) {
    return tile;
  } else {
    return tile.blocks[part];
  }
}

template <typename Source, typename Tile>
void Fill(const std::byte* row, int32_t t, int32_t /*cols*/, int r, Tile& tile) {
  const auto& source =
      *reinterpret_cast<const Source*>(row + t * static_cast<int64_t>(sizeof(Source)));
  static_assert(alignof(Source) == 1);
  for (int part = 0; part < Tile::kBlocks; ++part) {
    Integers q;
    Take(source, part, q);
    PutIntegers(q, r, BlockOf(tile, part));
    PutScales(source, part, r, tile);
  }
}

// Plain values: where column `j` of row `r` stands.
template <typename Tile>
auto& At(Tile& tile, int r, int j) {
  if constexpr (std::is_same_v<std::remove_const_t<Tile>, TileBF16>) {
    return tile.w[j / 2][r][j % 2];
  } else {
    return tile.w[j][r];
  }
}

struct Plain {};

template <std::same_as<Plain> Source, typename Tile>
void Fill(const std::byte* row, int32_t t, int32_t cols, int r, Tile& tile) {
  constexpr int kBytes = sizeof(At(tile, 0, 0));
  const int32_t first = t * kBlockCols;
  for (int j = 0; j < std::min(kBlockCols, cols - first); ++j) {
    std::memcpy(&At(tile, r, j), row + static_cast<int64_t>(first + j) * kBytes, kBytes);
  }
}

// ---- row `r` of a tile out: 32 values of its block `part` ---------------------------------------

// What SetUnit put there.
uint32_t UnitOf(const uint8_t (&unit)[64], int r) {
  uint32_t four;
  std::memcpy(&four, unit + 4 * r, sizeof(four));
  return four;
}

// The integers of unit `unit`.
uint32_t Low(const uint8_t (&q)[kUnits][64], int r, int unit) { return UnitOf(q[unit], r); }
uint32_t Low(const uint8_t (&q)[4][64], int r, int unit) {
  return (UnitOf(q[unit % 4], r) >> (unit < 4 ? 0 : 4)) & 0x0f0f0f0fu;
}
uint32_t High(const uint8_t (&high)[64], int r, int unit) {
  return ((UnitOf(high, r) >> unit) & 0x01010101u) << 4;
}
uint32_t High(const uint8_t (&high)[2][64], int r, int unit) {
  return ((UnitOf(high[unit / 4], r) >> (2 * (unit % 4))) & 0x03030303u) << 4;
}

template <typename Block>
void TakeRow(const Block& block, int r, Integers& q) {
  for (int unit = 0; unit < kUnits; ++unit) {
    uint32_t four = Low(block.q, r, unit);
    if constexpr (requires { block.high; }) four |= High(block.high, r, unit);
    std::memcpy(q + 4 * unit, &four, sizeof(four));
  }
}

float Half(const uint16_t* values, int r) { return quant::HalfToFloat(values[r]); }

// The operations are those of quant/dequantize.cc, for equal bits.
void Symmetric(const uint8_t* q, int count, float d, int zero, float* out) {
  for (int j = 0; j < count; ++j) out[j] = d * static_cast<float>(q[j] - zero);
}
void WithMinimum(const Integers& q, float d, float m, float* out) {
  for (int j = 0; j < kBlockCols; ++j) out[j] = d * static_cast<float>(q[j]) + m;
}

template <typename Tile>
void Expand(const Tile& tile, int part, int r, float* out) {
  Integers q;
  TakeRow(BlockOf(tile, part), r, q);
  const float d = Half(tile.d, r);
  if constexpr (requires { tile.dmin; }) {
    const auto& block = tile.blocks[part];
    const float min = Half(tile.dmin, r) * static_cast<float>(block.min[r]);
    WithMinimum(q, d * static_cast<float>(block.scale[r]), -min, out);
  } else if constexpr (requires { tile.m; }) {
    WithMinimum(q, d, Half(tile.m, r), out);
  } else {
    Symmetric(q, kBlockCols, d, Tile::kZero, out);
  }
}
void Expand(const TileQ6_K& tile, int part, int r, float* out) {
  const auto& block = tile.blocks[part];
  Integers q;
  TakeRow(block, r, q);
  for (int half = 0; half < 2; ++half) {
    const float d = Half(tile.d, r) * static_cast<float>(block.scale[half][r]);
    Symmetric(q + 16 * half, 16, d, TileQ6_K::kZero, out + 16 * half);
  }
}
void Expand(const TileF32& tile, int, int r, float* out) {
  for (int j = 0; j < kBlockCols; ++j) out[j] = At(tile, r, j);
}
void Expand(const TileF16& tile, int, int r, float* out) {
  for (int j = 0; j < kBlockCols; ++j) out[j] = quant::HalfToFloat(At(tile, r, j));
}
void Expand(const TileBF16& tile, int, int r, float* out) {
  for (int j = 0; j < kBlockCols; ++j) out[j] = quant::BFloatToFloat(At(tile, r, j));
}

// ---- which source becomes which tile ------------------------------------------------------------

template <typename SourceBlock, typename PackedTile>
struct Packing {
  using Source = SourceBlock;
  using Tile = PackedTile;
};

// visit(Packing<...>{}) of the type; what it returns with no packing is for types without.
template <typename Visit>
auto WithPacking(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::kF32:
      return visit(Packing<Plain, TileF32>{});
    case DType::kF16:
      return visit(Packing<Plain, TileF16>{});
    case DType::kBF16:
      return visit(Packing<Plain, TileBF16>{});
    case DType::kQ4_0:
      return visit(Packing<quant::Q4_0, TileQ4_0>{});
    case DType::kQ4_1:
      return visit(Packing<quant::Q4_1, TileQ4_1>{});
    case DType::kQ5_0:
      return visit(Packing<quant::Q5_0, TileQ5_0>{});
    case DType::kQ5_1:
      return visit(Packing<quant::Q5_1, TileQ5_1>{});
    case DType::kQ8_0:
      return visit(Packing<quant::Q8_0, TileQ8_0>{});
    case DType::kIQ4_NL:
      return visit(Packing<quant::IQ4_NL, TileQ8_0>{});
    case DType::kQ3_K:
      return visit(Packing<quant::Q3_K, TileQ6_K>{});
    case DType::kQ4_K:
      return visit(Packing<quant::Q4_K, TileQ4_K>{});
    case DType::kQ5_K:
      return visit(Packing<quant::Q5_K, TileQ5_K>{});
    case DType::kQ6_K:
      return visit(Packing<quant::Q6_K, TileQ6_K>{});
    // Exact in no tile: two-bit minimums per 16, scales beyond fp16, codebooks. The loader expands
    // them (model/loaded_model.h).
    case DType::kQ2_K:
    case DType::kIQ4_XS:
    case DType::kMXFP4:
    case DType::kIQ1_S:
    case DType::kIQ1_M:
    case DType::kIQ2_XXS:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
    case DType::kIQ3_XXS:
    case DType::kIQ3_S:
    case DType::kTQ1_0:
    case DType::kTQ2_0:
      break;
  }
  return visit(Packing<void, void>{});
}

struct TileShape {
  int64_t bytes;
  int blocks;
};
template <typename... Tiles>
constexpr std::array<TileShape, sizeof...(Tiles)> ShapesOf() {
  return {TileShape{sizeof(Tiles), Tiles::kBlocks}...};
}
// In the order of Format.
constexpr auto kTileShapes = ShapesOf<TileF32, TileF16, TileBF16, TileQ4_0, TileQ4_1, TileQ5_0,
                                      TileQ5_1, TileQ8_0, TileQ4_K, TileQ5_K, TileQ6_K>();
static_assert(kTileShapes.size() == kNumFormats);

}  // namespace

std::optional<Format> FormatOf(DType dtype) {
  return WithPacking(dtype, []<typename P>(P) -> std::optional<Format> {
    if constexpr (std::is_void_v<typename P::Tile>) {
      return std::nullopt;
    } else {
      return P::Tile::kFormat;
    }
  });
}

int64_t PanelBytes(Format format, int32_t blocks) {
  const TileShape& shape = kTileShapes[format];
  return blocks / shape.blocks * shape.bytes;
}

int32_t NumPanels(int32_t rows) { return rows / kTileRows + (rows % kTileRows != 0); }
int32_t NumBlocks(int32_t cols) { return cols / kBlockCols + (cols % kBlockCols != 0); }

bool CanPack(DType dtype, int32_t rows, int32_t cols) {
  return FormatOf(dtype) && rows > 0 && cols > 0 && cols % Info(dtype).block_elems == 0;
}

size_t PackedBytes(DType dtype, int32_t rows, int32_t cols) {
  const int64_t bytes = NumPanels(rows) * PanelBytes(*FormatOf(dtype), NumBlocks(cols));
  return (static_cast<size_t>(bytes) + 63) / 64 * 64;
}

void Pack(const WeightView& source, int32_t first_tile, int32_t last_tile, std::byte* out) {
  const int64_t row_bytes = RowBytes(Info(source.dtype), source.cols);
  WithPacking(source.dtype, [&]<typename P>(P) {
    if constexpr (!std::is_void_v<typename P::Tile>) {
      using Tile = typename P::Tile;
      const int32_t tiles = NumBlocks(source.cols) / Tile::kBlocks;
      for (int64_t panel = first_tile; panel < last_tile; ++panel) {
        const int32_t first_row = static_cast<int32_t>(panel) * kTileRows;
        const int32_t rows = std::min(kTileRows, source.rows - first_row);
        auto* const to = reinterpret_cast<Tile*>(out) + panel * tiles;
        for (int32_t t = 0; t < tiles; ++t) {
          to[t] = {};
          for (int32_t r = 0; r < rows; ++r) {
            Fill<typename P::Source>(source.data + (first_row + r) * row_bytes, t, source.cols, r,
                                     to[t]);
          }
        }
      }
    }
  });
}

void UnpackRow(const PackedMatrix& matrix, int32_t row, float scale, float* out) {
  const int r = row % kTileRows;
  WithPacking(matrix.dtype, [&]<typename P>(P) {
    if constexpr (!std::is_void_v<typename P::Tile>) {
      using Tile = typename P::Tile;
      const int32_t tiles = NumBlocks(matrix.cols) / Tile::kBlocks;
      const auto* tile =
          reinterpret_cast<const Tile*>(matrix.data) + int64_t{row / kTileRows} * tiles;
      for (int32_t first = 0; first < matrix.cols; ++tile) {
        for (int part = 0; part < Tile::kBlocks; ++part, first += kBlockCols) {
          float values[kBlockCols];
          Expand(*tile, part, r, values);
          const int32_t count = std::min(kBlockCols, matrix.cols - first);
          for (int32_t j = 0; j < count; ++j) out[first + j] = values[j] * scale;
        }
      }
    }
  });
}

}  // namespace vivace::kernels::x86
