// The block layouts of the formats that look values up in codebooks (IQ1 to IQ3) and of the ternary
// ones (TQ), as GGUF files hold them. Super-blocks of 256 values; IQ4 stands in blocks.h.
#pragma once

#include <cstdint>

#include "quant/blocks.h"

namespace vivace::quant {

// In the IQ formats a group of 8 values (4 in IQ3) is a row of a codebook times signs and a scale.
// Where a group's signs are 7 bits, the eighth makes the number of minuses even.

struct IQ2_XXS {  // 8 x 32: four rows in bytes; four signs of 7 bits and a scale of 4 in a word
  F16 d;
  uint8_t qs[64];
};
struct IQ2_XS {  // a row in 9 bits and signs in 7; scales of 16 values each
  F16 d;
  U16 qs[32];
  uint8_t scales[8];
};
struct IQ2_S {  // a row in 10 bits (8 and 2 of qh), signs in 8
  F16 d;
  uint8_t qs[32];
  uint8_t signs[32];
  uint8_t qh[8];
  uint8_t scales[8];
};
struct IQ3_XXS {  // rows of 4 in bytes; signs and scales as in IQ2_XXS
  F16 d;
  uint8_t qs[64];
  uint8_t scales[32];
};
struct IQ3_S {  // rows of 4 in 9 bits; scales of 32 values each
  F16 d;
  uint8_t qs[64];
  uint8_t qh[8];
  uint8_t signs[32];
  uint8_t scales[4];
};
struct IQ1_S {  // rows of 8 in 11 bits; of 32 values a scale of 3 bits and the sign of 1/8
  F16 d;
  uint8_t qs[32];
  U16 qh[8];
};
struct IQ1_M {  // the same with scales of 16 values, a sign for each 8, and d in four nibbles
  uint8_t qs[32];
  uint8_t qh[16];
  U16 scales[4];
};
struct TQ1_0 {  // d * (digit - 1); five base-3 digits in a byte (four in qh), the highest first
  uint8_t qs[48];
  uint8_t qh[4];
  F16 d;
};
struct TQ2_0 {  // d * (q - 1)
  uint8_t qs[64];
  F16 d;
};

static_assert(sizeof(IQ2_XXS) == 66 && alignof(IQ2_XXS) == 1);
static_assert(sizeof(IQ2_XS) == 74 && alignof(IQ2_XS) == 1);
static_assert(sizeof(IQ2_S) == 82 && alignof(IQ2_S) == 1);
static_assert(sizeof(IQ3_XXS) == 98 && alignof(IQ3_XXS) == 1);
static_assert(sizeof(IQ3_S) == 110 && alignof(IQ3_S) == 1);
static_assert(sizeof(IQ1_S) == 50 && alignof(IQ1_S) == 1);
static_assert(sizeof(IQ1_M) == 56 && alignof(IQ1_M) == 1);
static_assert(sizeof(TQ1_0) == 54 && alignof(TQ1_0) == 1);
static_assert(sizeof(TQ2_0) == 66 && alignof(TQ2_0) == 1);

// out[0 .. 256) = the block's values.
void Expand(const IQ1_S& block, float* out);
void Expand(const IQ1_M& block, float* out);
void Expand(const IQ2_XXS& block, float* out);
void Expand(const IQ2_XS& block, float* out);
void Expand(const IQ2_S& block, float* out);
void Expand(const IQ3_XXS& block, float* out);
void Expand(const IQ3_S& block, float* out);
void Expand(const TQ1_0& block, float* out);
void Expand(const TQ2_0& block, float* out);

}  // namespace vivace::quant
