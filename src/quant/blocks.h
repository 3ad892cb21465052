// The block layouts of quantised weights as model files hold them (GGUF), bit for bit.
// Multi-byte fields are byte arrays, so that a block may be read at any address of a mapped file.
#pragma once

#include <cstdint>
#include <cstring>

#include "quant/half.h"

namespace vivace::quant {

// A little-endian 16-bit field at any address.
struct U16 {
  uint8_t bytes[2];
  constexpr uint16_t get() const {
    return static_cast<uint16_t>(bytes[0] | static_cast<unsigned>(bytes[1]) << 8);
  }
};

// An fp16 field at any address.
struct F16 {
  U16 bits;
  constexpr float get() const { return HalfToFloat(bits.get()); }
};

// ---- blocks of 32 values ------------------------------------------------------------------------

// In 4- and 5-bit formats byte j of `qs` holds value j (low nibble) and value j + 16 (high nibble).

struct Q4_0 {  // d * (q - 8)
  F16 d;
  uint8_t qs[16];
};
struct Q4_1 {  // d * q + m
  F16 d, m;
  uint8_t qs[16];
};
struct Q5_0 {  // d * (q - 16); bit j of qh is bit 4 of value j
  F16 d;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct Q5_1 {  // d * q + m
  F16 d, m;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct Q8_0 {  // d * q
  F16 d;
  int8_t qs[32];
};
struct IQ4_NL {  // d * kIq4Values[q]
  F16 d;
  uint8_t qs[16];
};
struct MXFP4 {  // 2^(e - 128) * kFp4Values[q]
  uint8_t e;
  uint8_t qs[16];
};

// ---- super-blocks of 256 values -----------------------------------------------------------------

struct Q2_K {  // 16 sub-blocks of 16: d * (scale & 15) * q - dmin * (scale >> 4)
  uint8_t scales[16];
  uint8_t qs[64];
  F16 d, dmin;
};
struct Q3_K {  // 16 sub-blocks of 16: d * (scale - 32) * (q - 4)
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  F16 d;

  // Scale i (0 .. 15), offset taken off: 4 low bits packed in pairs, then 2 high bits.
  constexpr int8_t Scale(int i) const {
    const int low = i < 8 ? scales[i] & 15 : scales[i - 8] >> 4;
    const int high = (scales[8 + i % 4] >> (2 * (i / 4))) & 3;
    return static_cast<int8_t>((low | high << 4) - 32);
  }
};
struct Q4_K {  // 8 sub-blocks of 32: d * scale * q - dmin * min
  F16 d, dmin;
  uint8_t scales[12];
  uint8_t qs[128];
};
struct Q5_K {
  F16 d, dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};
struct Q6_K {  // 16 sub-blocks of 16: d * scale * (q - 32)
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  F16 d;

  // Value i of the block, 0 .. 63.
  constexpr uint8_t Value(int i) const {
    const int half = i / 128, quarter = i % 128 / 32, lane = i % 32;
    const uint8_t low = ql[64 * half + 32 * (quarter & 1) + lane];
    const uint8_t high = qh[32 * half + lane];
    return static_cast<uint8_t>(((low >> (4 * (quarter >> 1))) & 15) | ((high >> (2 * quarter)) & 3)
                                                                           << 4);
  }
};
struct IQ4_XS {  // 8 sub-blocks of 32: d * (scale - 32) * kIq4Values[q]
  F16 d;
  U16 scales_h;
  uint8_t scales_l[4];
  uint8_t qs[128];

  // Scale i (0 .. 7), offset taken off: 4 low bits packed in pairs, 2 high bits in one word.
  constexpr int8_t Scale(int i) const {
    const int low = (scales_l[i / 2] >> (4 * (i % 2))) & 15;
    const int high = (scales_h.get() >> (2 * i)) & 3;
    return static_cast<int8_t>((low | high << 4) - 32);
  }
};

static_assert(sizeof(Q4_0) == 18 && alignof(Q4_0) == 1);
static_assert(sizeof(Q4_1) == 20 && alignof(Q4_1) == 1);
static_assert(sizeof(Q5_0) == 22 && alignof(Q5_0) == 1);
static_assert(sizeof(Q5_1) == 24 && alignof(Q5_1) == 1);
static_assert(sizeof(Q8_0) == 34 && alignof(Q8_0) == 1);
static_assert(sizeof(IQ4_NL) == 18 && alignof(IQ4_NL) == 1);
static_assert(sizeof(MXFP4) == 17 && alignof(MXFP4) == 1);
static_assert(sizeof(Q2_K) == 84 && alignof(Q2_K) == 1);
static_assert(sizeof(Q3_K) == 110 && alignof(Q3_K) == 1);
static_assert(sizeof(Q4_K) == 144 && alignof(Q4_K) == 1);
static_assert(sizeof(Q5_K) == 176 && alignof(Q5_K) == 1);
static_assert(sizeof(Q6_K) == 210 && alignof(Q6_K) == 1);
static_assert(sizeof(IQ4_XS) == 136 && alignof(IQ4_XS) == 1);

struct ScaleMin {
  uint8_t scale, min;
};

// Scale and minimum i (0 .. 7) of Q4_K and Q5_K, 6 bits each in 12 bytes.
constexpr ScaleMin KScale(const uint8_t (&s)[12], int i) {
  if (i < 4) return {static_cast<uint8_t>(s[i] & 63), static_cast<uint8_t>(s[i + 4] & 63)};
  return {static_cast<uint8_t>((s[i + 4] & 15) | (s[i - 4] >> 6) << 4),
          static_cast<uint8_t>((s[i + 4] >> 4) | (s[i] >> 6) << 4)};
}

// The non-uniform 4-bit codebook of the IQ4 formats, and twice the values of FP4 (E2M1).
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr int8_t kFp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace vivace::quant
