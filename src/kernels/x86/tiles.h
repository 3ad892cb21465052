// The memory layouts the x86 tiers compute on. One packed layout serves AVX2 and AVX-512.
//
// Weights. A panel is kTileRows (16) output rows; it is stored as one tile per 32 input columns,
// and the panels of a matrix follow one another: a pass over a matrix is one sequential stream. In
// a tile of integers the unit is 64 bytes: 16 rows of 4 consecutive columns, the operand of one
// vpdpbusd; unit g holds columns 4g .. 4g+3. Integers are unsigned, the offset of the format (8,
// 32, 128) is taken off by way of the sum of the activations. Missing rows and columns are zero
// weights.
//
// Activations. Rows are dealt into groups of up to `max_width` rows, as evenly as can be; a group
// of width w is one block per 32 columns, and the rows of a block lie interleaved, so that a kernel
// for w rows reaches all of them from one pointer. Int8 values are symmetric, -127 .. 127, one
// scale per 32.
//
// Plain data only: this header is compiled with different instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vivace::kernels::x86 {

inline constexpr int kBlockCols = 32;
inline constexpr int kUnits = 8;  // of 4 columns, in a block

// ---- weights ------------------------------------------------------------------------------------

struct TileQ4_0 {
  uint8_t q[4][64];  // unit g in the low nibbles of q[g], unit g + 4 in the high
  uint16_t d[16];    // fp16
};
struct TileQ4_1 {
  uint8_t q[4][64];
  uint16_t d[16], m[16];
};
struct TileQ8_0 {
  uint8_t q[kUnits][64];  // value + 128
  uint16_t d[16];
};
struct TileQ6_K {
  uint8_t q[4][64];     // low 4 bits, as in TileQ4_0
  uint8_t high[2][64];  // 2 high bits: units 0 .. 3 from bit 0 up in high[0], 4 .. 7 in high[1]
  int8_t scale[2][16];  // of columns 0 .. 15 and 16 .. 31
  uint16_t d[16];       // weight = d * scale * (q - 32)
};
struct TileF32 {
  float w[kBlockCols][16];
};
struct TileF16 {
  uint16_t w[kBlockCols][16];
};
struct TileBF16 {
  uint16_t w[kBlockCols][16];
};

static_assert(sizeof(TileQ4_0) == 288 && sizeof(TileQ4_1) == 320 && sizeof(TileQ8_0) == 544 &&
              sizeof(TileQ6_K) == 448 && sizeof(TileF32) == 2048 && sizeof(TileF16) == 1024);

enum Format : int { kF32, kF16, kBF16, kQ4_0, kQ4_1, kQ8_0, kQ6_K, kNumFormats };

constexpr bool TakesInt8(Format format) { return format >= kQ4_0; }

// ---- activations --------------------------------------------------------------------------------

template <int kWidth>
struct Int8Block {
  int32_t q[kUnits][kWidth];   // 4 int8 values each
  float d[kWidth];             // scale
  float sum[kWidth];           // d * sum of q
  int32_t minus[kWidth];       // -(sum of q)
  int32_t minus16[2][kWidth];  // the same, of columns 0 .. 15 and 16 .. 31
};

template <int kWidth>
struct Fp32Block {
  float x[kBlockCols][kWidth];
};

inline constexpr size_t kInt8BlockBytes = sizeof(Int8Block<1>);  // per row
inline constexpr size_t kFp32BlockBytes = sizeof(Fp32Block<1>);

static_assert(sizeof(Int8Block<12>) == 12 * kInt8BlockBytes);

// ---- a tier's kernels ---------------------------------------------------------------------------

inline constexpr int kMaxWidth = 12;

// c[width][16] = the products of one panel with one group.
using TileKernel = void (*)(const std::byte* panel, const std::byte* group, int blocks, float* c);

// Rows of one group on their way into blocks [first_block, last_block).
struct GroupRows {
  const float* rows[kMaxWidth];
  int width;
  int cols;
  const float* norm_weight;  // null: no normalisation
  float norm_eps;
  int first_block, last_block;
  std::byte* int8;  // the group's blocks from block 0, or null
  std::byte* fp32;  // likewise
};

// Where a tile of results goes: `width` rows, the first `valid` (1 .. 16) of 16 columns.
struct TileOut {
  float* out;
  int64_t stride;
  int width;
  int valid;
};

struct TierKernels {
  int max_width;
  TileKernel multiply[kNumFormats][kMaxWidth + 1];  // by width; [0] and beyond max_width are null
  void (*prepare)(const GroupRows& rows);
  // The biases are null or have `valid` entries.
  void (*store)(const float* c, const float* bias, const TileOut& out);
  void (*add)(const float* c, const float* bias, const TileOut& out);
  void (*silu_mul)(const float* gate, const float* up, const float* gate_bias, const float* up_bias,
                   const TileOut& out);
  void (*gelu_tanh_mul)(const float* gate, const float* up, const float* gate_bias,
                        const float* up_bias, const TileOut& out);
};

extern const TierKernels kAvx2Kernels;
extern const TierKernels kAvx512Kernels;

}  // namespace vivace::kernels::x86
