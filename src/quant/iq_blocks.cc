#include "quant/iq_blocks.h"

#include <bit>
#include <cstring>

namespace vivace::quant {
namespace {

#include "quant/iq_grids.inc"

constexpr int8_t kIq1Values[4] = {-1, 0, 1, 0};
constexpr int8_t kIq2Values[4] = {0x08, 0x19, 0x2b, 0};
constexpr int8_t kIq3XxsValues[8] = {0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3e};
constexpr int8_t kIq3SValues[8] = {1, 3, 5, 7, 9, 11, 13, 15};
constexpr float kIq1Delta = 0.125f;

uint32_t Word(const uint8_t* at) {
  uint32_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// Seven signs and the one that makes the minuses even.
unsigned EvenSigns(unsigned seven) {
  return seven | static_cast<unsigned>(std::popcount(seven) & 1) << 7;
}

float Signed(float value, unsigned signs, int i) { return (signs >> i) & 1 ? -value : value; }

// Eight values of one row.
void PutRow8(uint16_t row, const int8_t* values, float scale, unsigned signs, float* out) {
  for (int i = 0; i < 8; ++i) {
    out[i] = Signed(scale * static_cast<float>(values[(row >> (2 * i)) & 3]), signs, i);
  }
}

// Eight values of two rows of four.
void PutRows4(uint16_t low, uint16_t high, const int8_t* values, float scale, unsigned signs,
              float* out) {
  for (int i = 0; i < 8; ++i) {
    const unsigned row = i < 4 ? low : high;
    out[i] = Signed(scale * static_cast<float>(values[(row >> (3 * (i % 4))) & 7]), signs, i);
  }
}

float Nibble(const uint8_t* bytes, int i) {
  return static_cast<float>((bytes[i / 2] >> (4 * (i % 2))) & 15);
}

void PutIq1(unsigned row, float scale, float delta, float* out) {
  for (int i = 0; i < 8; ++i) {
    const int value = kIq1Values[(kGridIQ1S[row] >> (2 * i)) & 3];
    out[i] = scale * (static_cast<float>(value) + delta);
  }
}

// Digit i of a byte that holds base-3 digits as a fraction of 243.
float Ternary(uint8_t byte, int i) {
  constexpr uint8_t kPowers[5] = {1, 3, 9, 27, 81};
  const auto shifted = static_cast<uint8_t>(byte * kPowers[i]);
  return static_cast<float>((shifted * 3) >> 8) - 1.0f;
}

}  // namespace

void Expand(const IQ2_XXS& block, float* out) {
  for (int part = 0; part < 8; ++part) {
    const uint32_t word = Word(block.qs + 8 * part + 4);
    const float scale = block.d.get() * (0.5f + static_cast<float>(word >> 28)) * 0.25f;
    for (int g = 0; g < 4; ++g, out += 8) {
      PutRow8(kGridIQ2XXS[block.qs[8 * part + g]], kIq2Values, scale,
              EvenSigns((word >> (7 * g)) & 127), out);
    }
  }
}

void Expand(const IQ2_XS& block, float* out) {
  for (int g = 0; g < 32; ++g, out += 8) {
    const float scale = block.d.get() * (0.5f + Nibble(block.scales, g / 2)) * 0.25f;
    const unsigned q = block.qs[g].get();
    PutRow8(kGridIQ2XS[q & 511], kIq2Values, scale, EvenSigns(q >> 9), out);
  }
}

void Expand(const IQ2_S& block, float* out) {
  for (int g = 0; g < 32; ++g, out += 8) {
    const float scale = block.d.get() * (0.5f + Nibble(block.scales, g / 2)) * 0.25f;
    const unsigned high = (block.qh[g / 4] >> (2 * (g % 4))) & 3;
    PutRow8(kGridIQ2S[block.qs[g] | high << 8], kIq2Values, scale, block.signs[g], out);
  }
}

void Expand(const IQ3_XXS& block, float* out) {
  for (int part = 0; part < 8; ++part) {
    const uint32_t word = Word(block.scales + 4 * part);
    const float scale = block.d.get() * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
    for (int g = 0; g < 4; ++g, out += 8) {
      const uint8_t* rows = block.qs + 8 * part + 2 * g;
      PutRows4(kGridIQ3XXS[rows[0]], kGridIQ3XXS[rows[1]], kIq3XxsValues, scale,
               EvenSigns((word >> (7 * g)) & 127), out);
    }
  }
}

void Expand(const IQ3_S& block, float* out) {
  for (int g = 0; g < 32; ++g, out += 8) {
    const float scale = block.d.get() * (1.0f + 2.0f * Nibble(block.scales, g / 4));
    const auto row = [&](int i) {
      const unsigned high = (block.qh[i / 8] >> (i % 8)) & 1;
      return kGridIQ3S[block.qs[i] | high << 8];
    };
    PutRows4(row(2 * g), row(2 * g + 1), kIq3SValues, scale, block.signs[g], out);
  }
}

void Expand(const IQ1_S& block, float* out) {
  for (int part = 0; part < 8; ++part) {
    const unsigned qh = block.qh[part].get();
    const float scale = block.d.get() * static_cast<float>(2 * ((qh >> 12) & 7) + 1);
    const float delta = qh & 0x8000 ? -kIq1Delta : kIq1Delta;
    for (int g = 0; g < 4; ++g, out += 8) {
      PutIq1(block.qs[4 * part + g] | ((qh >> (3 * g)) & 7) << 8, scale, delta, out);
    }
  }
}

void Expand(const IQ1_M& block, float* out) {
  unsigned bits = 0;
  for (int i = 0; i < 4; ++i) bits |= (block.scales[i].get() & 0xf000u) >> (12 - 4 * i);
  const float d = HalfToFloat(static_cast<uint16_t>(bits));
  for (int g = 0; g < 32; ++g, out += 8) {
    const int pair = g / 2;  // 16 values
    const unsigned three = (block.scales[pair / 4].get() >> (3 * (pair % 4))) & 7;
    const unsigned qh = (block.qh[pair] >> (4 * (g % 2))) & 15;
    PutIq1(block.qs[g] | (qh & 7) << 8, d * static_cast<float>(2 * three + 1),
           qh & 8 ? -kIq1Delta : kIq1Delta, out);
  }
}

void Expand(const TQ1_0& block, float* out) {
  const float d = block.d.get();
  for (int i = 0; i < 160; ++i) out[i] = d * Ternary(block.qs[i % 32], i / 32);
  for (int i = 0; i < 80; ++i) out[160 + i] = d * Ternary(block.qs[32 + i % 16], i / 16);
  for (int i = 0; i < 16; ++i) out[240 + i] = d * Ternary(block.qh[i % 4], i / 4);
}

void Expand(const TQ2_0& block, float* out) {
  const float d = block.d.get();
  for (int i = 0; i < 256; ++i) {
    const int q = (block.qs[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32))) & 3;
    out[i] = d * static_cast<float>(q - 1);
  }
}

}  // namespace vivace::quant
