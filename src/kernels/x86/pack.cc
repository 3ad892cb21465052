#include "kernels/x86/pack.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "quant/blocks.h"

namespace vivace::kernels::x86 {
namespace {

// ---- one row of one tile in, from block `k` of the row ------------------------------------------

// Byte of column `col` and row `row` within a unit.
constexpr int Lane(int row, int col) { return 4 * row + col % 4; }

template <typename Block>
Block ReadBlock(const std::byte* row, int64_t index) {
  Block block;
  std::memcpy(&block, row + index * static_cast<int64_t>(sizeof(Block)), sizeof(Block));
  return block;
}

// 16 bytes with values j and j + 16 in their nibbles become units g and g + 4.
template <typename Tile>
void FillNibbles(const uint8_t* qs, int r, Tile& tile) {
  for (int j = 0; j < 16; ++j) tile.q[j / 4][Lane(r, j)] = qs[j];
}

void Fill(const std::byte* row, int k, int /*cols*/, int r, TileQ4_0& tile) {
  const auto block = ReadBlock<quant::Q4_0>(row, k);
  FillNibbles(block.qs, r, tile);
  tile.d[r] = block.d.bits.get();
}

void Fill(const std::byte* row, int k, int /*cols*/, int r, TileQ4_1& tile) {
  const auto block = ReadBlock<quant::Q4_1>(row, k);
  FillNibbles(block.qs, r, tile);
  tile.d[r] = block.d.bits.get();
  tile.m[r] = block.m.bits.get();
}

void Fill(const std::byte* row, int k, int /*cols*/, int r, TileQ8_0& tile) {
  const auto block = ReadBlock<quant::Q8_0>(row, k);
  for (int j = 0; j < 32; ++j) {
    tile.q[j / 4][Lane(r, j)] = static_cast<uint8_t>(block.qs[j] + 128);
  }
  tile.d[r] = block.d.bits.get();
}

void Fill(const std::byte* row, int k, int /*cols*/, int r, TileQ6_K& tile) {
  const auto block = ReadBlock<quant::Q6_K>(row, k / 8);
  const int first = k % 8 * kBlockCols;
  for (int j = 0; j < 16; ++j) {
    const uint8_t low = block.Value(first + j), high = block.Value(first + 16 + j);
    tile.q[j / 4][Lane(r, j)] = static_cast<uint8_t>((low & 15) | (high & 15) << 4);
    tile.high[0][Lane(r, j)] |= static_cast<uint8_t>((low >> 4) << (2 * (j / 4)));
    tile.high[1][Lane(r, j)] |= static_cast<uint8_t>((high >> 4) << (2 * (j / 4)));
  }
  for (int half = 0; half < 2; ++half) tile.scale[half][r] = block.scales[first / 16 + half];
  tile.d[r] = block.d.bits.get();
}

template <typename Tile>
void FillPlain(const std::byte* row, int k, int cols, int r, Tile& tile) {
  constexpr int kBytes = sizeof(tile.w[0][0]);
  const int first = k * kBlockCols;
  for (int j = 0; j < std::min(kBlockCols, cols - first); ++j) {
    std::memcpy(&tile.w[j][r], row + static_cast<int64_t>(first + j) * kBytes, kBytes);
  }
}

void Fill(const std::byte* row, int k, int cols, int r, TileF32& t) {
  FillPlain(row, k, cols, r, t);
}
void Fill(const std::byte* row, int k, int cols, int r, TileF16& t) {
  FillPlain(row, k, cols, r, t);
}
void Fill(const std::byte* row, int k, int cols, int r, TileBF16& t) {
  FillPlain(row, k, cols, r, t);
}

// ---- one row of one tile out --------------------------------------------------------------------

template <typename Tile>
int Nibble(const Tile& tile, int r, int j) {
  return (tile.q[j / 4 % 4][Lane(r, j)] >> (j < 16 ? 0 : 4)) & 15;
}

float Value(const TileQ4_0& tile, int r, int j) {
  return quant::HalfToFloat(tile.d[r]) * static_cast<float>(Nibble(tile, r, j) - 8);
}
float Value(const TileQ4_1& tile, int r, int j) {
  return quant::HalfToFloat(tile.d[r]) * static_cast<float>(Nibble(tile, r, j)) +
         quant::HalfToFloat(tile.m[r]);
}
float Value(const TileQ8_0& tile, int r, int j) {
  return quant::HalfToFloat(tile.d[r]) * static_cast<float>(tile.q[j / 4][Lane(r, j)] - 128);
}
float Value(const TileQ6_K& tile, int r, int j) {
  const int high = (tile.high[j / 16][Lane(r, j)] >> (2 * (j / 4 % 4))) & 3;
  const int q = (Nibble(tile, r, j) | high << 4) - 32;
  const float scale = quant::HalfToFloat(tile.d[r]) * static_cast<float>(tile.scale[j / 16][r]);
  return scale * static_cast<float>(q);
}
float Value(const TileF32& tile, int r, int j) { return tile.w[j][r]; }
float Value(const TileF16& tile, int r, int j) { return quant::HalfToFloat(tile.w[j][r]); }
float Value(const TileBF16& tile, int r, int j) { return quant::BFloatToFloat(tile.w[j][r]); }

// Calls visit(Tile{}) with the tile type of `format`.
template <typename Visit>
auto WithTile(Format format, Visit visit) {
  switch (format) {
    case kF32:
      return visit(TileF32{});
    case kF16:
      return visit(TileF16{});
    case kBF16:
      return visit(TileBF16{});
    case kQ4_0:
      return visit(TileQ4_0{});
    case kQ4_1:
      return visit(TileQ4_1{});
    case kQ8_0:
      return visit(TileQ8_0{});
    case kQ6_K:
      return visit(TileQ6_K{});
    case kNumFormats:
      break;
  }
  VIVACE_CHECK(false);
  return visit(TileF32{});
}

}  // namespace

std::optional<Format> FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kF32;
    case DType::kF16:
      return kF16;
    case DType::kBF16:
      return kBF16;
    case DType::kQ4_0:
      return kQ4_0;
    case DType::kQ4_1:
      return kQ4_1;
    case DType::kQ8_0:
      return kQ8_0;
    case DType::kQ6_K:
      return kQ6_K;
    default:
      return std::nullopt;
  }
}

size_t TileBytes(Format format) {
  return WithTile(format, [](auto tile) { return sizeof(tile); });
}

int32_t NumPanels(int32_t rows) { return rows / kTileRows + (rows % kTileRows != 0); }
int32_t NumBlocks(int32_t cols) { return cols / kBlockCols + (cols % kBlockCols != 0); }

bool CanPack(DType dtype, int32_t rows, int32_t cols) {
  return FormatOf(dtype) && rows > 0 && cols > 0 && cols % Info(dtype).block_elems == 0;
}

size_t PackedBytes(DType dtype, int32_t rows, int32_t cols) {
  const size_t bytes = static_cast<size_t>(NumPanels(rows)) * static_cast<size_t>(NumBlocks(cols)) *
                       TileBytes(*FormatOf(dtype));
  return (bytes + 63) / 64 * 64;
}

void Pack(const WeightView& source, int32_t first_tile, int32_t last_tile, std::byte* out) {
  const int64_t row_bytes = RowBytes(Info(source.dtype), source.cols);
  const int32_t blocks = NumBlocks(source.cols);
  WithTile(*FormatOf(source.dtype), [&]<typename Tile>(Tile) {
    for (int64_t panel = first_tile; panel < last_tile; ++panel) {
      const int32_t first_row = static_cast<int32_t>(panel) * kTileRows;
      const int32_t rows = std::min(kTileRows, source.rows - first_row);
      for (int32_t k = 0; k < blocks; ++k) {
        Tile tile{};
        for (int32_t r = 0; r < rows; ++r) {
          Fill(source.data + (first_row + r) * row_bytes, k, source.cols, r, tile);
        }
        std::memcpy(out + (panel * blocks + k) * static_cast<int64_t>(sizeof(Tile)), &tile,
                    sizeof(Tile));
      }
    }
  });
}

void UnpackRow(const PackedMatrix& matrix, int32_t row, float scale, float* out) {
  const int32_t blocks = NumBlocks(matrix.cols);
  const int r = row % kTileRows;
  WithTile(*FormatOf(matrix.dtype), [&]<typename Tile>(Tile) {
    const auto* tiles =
        reinterpret_cast<const Tile*>(matrix.data) + static_cast<int64_t>(row / kTileRows) * blocks;
    for (int32_t col = 0; col < matrix.cols; ++col) {
      out[col] = Value(tiles[col / kBlockCols], r, col % kBlockCols) * scale;
    }
  });
}

}  // namespace vivace::kernels::x86
