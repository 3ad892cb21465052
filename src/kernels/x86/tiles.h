// The memory layouts the x86 tiers compute on. One packed layout serves AVX2 and AVX-512.
//
// Weights. A panel is kTileRows (16) output rows; it is stored as one tile per 32 input columns
// (per 256 in the K formats, whose fp16 scales are shared by 8 blocks of 32), and the panels of a
// matrix follow one another: a pass over a matrix is one sequential stream. In a block of integers
// the unit is 64 bytes: 16 rows of 4 consecutive columns, the operand of one vpdpbusd; unit g holds
// columns 4g .. 4g+3. Integers are unsigned, the offset of the format (8, 16, 32, 128) is taken off
// by way of the sum of the activations. Missing rows and columns are zero weights.
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

// Block-quantised formats, which take int8 activations, come last.
enum Format : int {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kNumFormats
};

constexpr bool TakesInt8(Format format) { return format >= kQ4_0; }

// Bits per weight, scales included: Q4_0 4.5, Q4_1 5, Q5_0 5.5, Q5_1 6, Q8_0 8.5, Q4_K 4.625,
// Q5_K 5.625, Q6_K 6.5625.

struct TileQ4_0 {
  static constexpr Format kFormat = kQ4_0;
  static constexpr int kBlocks = 1;
  static constexpr int kZero = 8;
  uint8_t q[4][64];  // unit g in the low nibbles of q[g], unit g + 4 in the high
  uint16_t d[16];    // fp16; weight = d * (q - kZero)
};
struct TileQ4_1 {
  static constexpr Format kFormat = kQ4_1;
  static constexpr int kBlocks = 1;
  uint8_t q[4][64];
  uint16_t d[16], m[16];  // weight = d * q + m
};
struct TileQ5_0 {
  static constexpr Format kFormat = kQ5_0;
  static constexpr int kBlocks = 1;
  static constexpr int kZero = 16;
  uint8_t q[4][64];  // low 4 bits, as in TileQ4_0
  uint8_t high[64];  // bit g is bit 4 of unit g
  uint16_t d[16];    // weight = d * (q - kZero)
};
struct TileQ5_1 {
  static constexpr Format kFormat = kQ5_1;
  static constexpr int kBlocks = 1;
  uint8_t q[4][64];
  uint8_t high[64];
  uint16_t d[16], m[16];
};
struct TileQ8_0 {
  static constexpr Format kFormat = kQ8_0;
  static constexpr int kBlocks = 1;
  static constexpr int kZero = 128;
  uint8_t q[kUnits][64];  // weight = d * (q - kZero)
  uint16_t d[16];
};
struct TileQ4_K {  // weight = d * scale * q - dmin * min
  static constexpr Format kFormat = kQ4_K;
  static constexpr int kBlocks = 8;
  uint16_t d[16], dmin[16];
  struct Block {
    uint8_t q[4][64];
    uint8_t scale[16], min[16];
  } blocks[kBlocks];
};
struct TileQ5_K {
  static constexpr Format kFormat = kQ5_K;
  static constexpr int kBlocks = 8;
  uint16_t d[16], dmin[16];
  struct Block {
    uint8_t q[4][64];
    uint8_t high[64];
    uint8_t scale[16], min[16];
  } blocks[kBlocks];
};
struct TileQ6_K {  // weight = d * scale * (q - kZero)
  static constexpr Format kFormat = kQ6_K;
  static constexpr int kBlocks = 8;
  static constexpr int kZero = 32;
  uint16_t d[16];
  struct Block {
    uint8_t q[4][64];     // low 4 bits
    uint8_t high[2][64];  // 2 high bits: units 0 .. 3 from bit 0 up in high[0], 4 .. 7 in high[1]
    int8_t scale[2][16];  // of columns 0 .. 15 and 16 .. 31
  } blocks[kBlocks];
};
struct TileF32 {
  static constexpr Format kFormat = kF32;
  static constexpr int kBlocks = 1;
  float w[kBlockCols][16];
};
struct TileF16 {
  static constexpr Format kFormat = kF16;
  static constexpr int kBlocks = 1;
  uint16_t w[kBlockCols][16];
};
struct TileBF16 {
  static constexpr Format kFormat = kBF16;
  static constexpr int kBlocks = 1;
  uint16_t w[kBlockCols / 2][16]
            [2];  // columns 2k and 2k + 1 side by side: the operand of vdpbf16ps
};

static_assert(sizeof(TileQ4_0) == 288 && sizeof(TileQ4_1) == 320 && sizeof(TileQ5_0) == 352 &&
              sizeof(TileQ5_1) == 384 && sizeof(TileQ8_0) == 544 && sizeof(TileQ4_K) == 2368 &&
              sizeof(TileQ5_K) == 2880 && sizeof(TileQ6_K) == 3360 && sizeof(TileF32) == 2048 &&
              sizeof(TileF16) == 1024 && sizeof(TileBF16) == 1024);

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

template <int kWidth>
struct Bf16Block {
  uint32_t x[kBlockCols / 2][kWidth];  // columns 2k and 2k + 1, the even one low
};

inline constexpr size_t kInt8BlockBytes = sizeof(Int8Block<1>);  // per row
inline constexpr size_t kFp32BlockBytes = sizeof(Fp32Block<1>);
inline constexpr size_t kBf16BlockBytes = sizeof(Bf16Block<1>);
inline constexpr size_t kInt8RowBytes = sizeof(float);  // behind a group's blocks: the tier's own

static_assert(sizeof(Int8Block<12>) == 12 * kInt8BlockBytes);

// ---- a tier's kernels ---------------------------------------------------------------------------

inline constexpr int kMaxWidth = 12;

// c[width][16] = the products of one panel with one group.
using TileKernel = void (*)(const std::byte* panel, const std::byte* group, int blocks, float* c);

// Groups that lie one behind another; of their widths the first `wide` are one more.
struct GroupRun {
  const std::byte* data;
  int64_t row_bytes;
  int count, width, wide;

  int Width(int g) const { return width + (g < wide); }
};

// Called when the products of a group of a run are there; may be empty.
struct GroupDone {
  void (*call)(void* context, int group, const float* c) = nullptr;
  void* context = nullptr;
};

// c[row][16] = the products of one panel with the rows of several groups, for good if `done` is
// empty, else until it has been called.
using RunKernel = void (*)(const std::byte* panel, const GroupRun& run, int blocks,
                           const GroupDone& done, float* c);

// Rows of one group on their way into blocks [first_block, last_block); first_block is even.
struct GroupRows {
  const float* rows[kMaxWidth];
  int width;
  int cols;
  const float* norm_weight;  // null: no normalisation
  float norm_eps;
  int first_block, last_block;
  std::byte* int8;            // the group's blocks from block 0, or null
  std::byte* fp32;            // likewise
  std::byte* bf16 = nullptr;  // likewise; only tiers with Bf16Kernels are asked for it
};

// Where a tile of results goes: `width` rows, the first `valid` (1 .. 16) of 16 columns.
struct TileOut {
  float* out;
  int64_t stride;
  int width;
  int valid;
};

// The greatest logit of a row so far, and the first id that has it; {-infinity, -1} at the start. A
// NaN or +infinity counts as {+infinity, -1}. Of two, the better has the greater value or, of equal
// values, the lesser id: one total order, so any merging gives the same.
struct Best {
  float value;
  int32_t id;
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
  // best[i] = the better of best[i] and row i's logits c + bias, the first `valid` (1 .. 16) of
  // them; they are those of ids first_id .. . The sums are those of `store`.
  void (*fold_best)(const float* c, const float* bias, int width, int valid, int32_t first_id,
                    Best* best);
  // What `multiply` gives for each group of a run; null: nothing faster than that.
  RunKernel multiply_run[kNumFormats] = {};
};

// In place of a tier's own kernels for BF16 weights: products of bf16 pairs.
struct Bf16Kernels {
  TileKernel multiply[kMaxWidth + 1];
};

extern const TierKernels kAvx2Kernels;
extern const TierKernels kAvxVnniKernels;
extern const TierKernels kAvx512Kernels;
extern const Bf16Kernels kAvx512Bf16Kernels;

}  // namespace vivace::kernels::x86
