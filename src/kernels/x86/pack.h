// From the blocks of a model file to the tiles of tiles.h, at load; and single rows back, for
// embeddings. Portable scalar code. Any thread.
#pragma once

#include <optional>

#include "kernels/block_ops.h"
#include "kernels/x86/tiles.h"

namespace vivace::kernels::x86 {

// The packed format of a source type; nothing if these tiers have no kernel for it.
std::optional<Format> FormatOf(DType dtype);

inline constexpr uint32_t kPackVersion = 2;

// Bytes of a panel of `blocks` blocks of 32 columns.
int64_t PanelBytes(Format format, int32_t blocks);
int32_t NumPanels(int32_t rows);
int32_t NumBlocks(int32_t cols);

bool CanPack(DType dtype, int32_t rows, int32_t cols);
size_t PackedBytes(DType dtype, int32_t rows, int32_t cols);
void Pack(const WeightView& source, int32_t first_tile, int32_t last_tile, std::byte* out);

// out[0 .. cols) = row `row` of the matrix, times `scale`.
void UnpackRow(const PackedMatrix& matrix, int32_t row, float scale, float* out);

}  // namespace vivace::kernels::x86
