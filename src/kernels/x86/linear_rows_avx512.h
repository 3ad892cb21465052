// What the AVX-512 tiers do beside products: rows into blocks of activations, and tiles of results
// into rows, as TierKernels declares them.
#pragma once

#include "kernels/x86/tiles.h"

namespace vivace::kernels::avx512 {

// Int8 rows as these tiers hold them: an Int8Block by size, with a scale per row and a scale per
// block in units of that, rounded up to a number of kScaleSteps a binade. So few steps let a kernel
// look up the product with a weight's scale and add the exponent as an integer: vector units have
// additions to spare where dot products and multiplications share pipes (README.md has figures). A
// value is q * scale * the row's scale, and the scales of a group's rows follow its blocks.
inline constexpr int kScaleSteps = 4;
inline constexpr int kScaleStepBits = 2;
static_assert(kScaleSteps == 1 << kScaleStepBits);

template <int kWidth>
struct ScaledBlock {
  int32_t q[x86::kUnits][kWidth];  // 4 int8 values each
  int32_t scale[kWidth];           // the bits of a float, 1 .. 2^kMaxShift
  int32_t sums[kWidth];            // of even blocks: two int16, this block's and the next one's
  int32_t minus[kWidth];           // -(sum of q)
  int32_t minus16[2][kWidth];      // the same, of columns 0 .. 15 and 16 .. 31
};
static_assert(sizeof(ScaledBlock<12>) == sizeof(x86::Int8Block<12>));

inline constexpr int kExponentPlace = 23;  // of a float

// Which step of its binade a scale is.
constexpr int StepOf(int32_t scale_bits) {
  return (scale_bits >> (kExponentPlace - kScaleStepBits)) & (kScaleSteps - 1);
}

// The scale of the block with a row's largest value is 2^kMaxShift; a block whose own is 2^-24 of
// that or less keeps the absolute precision of one that is just that.
inline constexpr int kMaxShift = 24;

// `sums` are of q * scale in units of 2^kSumShift: an eighth of a unit of the block with the
// row's largest value, well below what rounding its 32 values to integers adds up to.
inline constexpr int kSumShift = kMaxShift - 3;
inline constexpr int kMaxSum = 32 * 127 << (kMaxShift - kSumShift);
static_assert(kMaxSum < 1 << 15);

void Prepare(const x86::GroupRows& rows);
void Store(const float* c, const float* bias, const x86::TileOut& out);
void Add(const float* c, const float* bias, const x86::TileOut& out);
void SiluMul(const float* gate, const float* up, const float* gate_bias, const float* up_bias,
             const x86::TileOut& out);
void GeluTanhMul(const float* gate, const float* up, const float* gate_bias, const float* up_bias,
                 const x86::TileOut& out);
void FoldBest(const float* c, const float* bias, int width, int valid, int32_t first_id,
              x86::Best* best);

}  // namespace vivace::kernels::avx512
