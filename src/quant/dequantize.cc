#include "quant/dequantize.h"

#include <cstring>

#include "base/check.h"
#include "quant/blocks.h"
#include "quant/iq_blocks.h"

namespace vivace::quant {
namespace {

void Expand(const Q4_0& block, float* out) {
  const float d = block.d.get();
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>((block.qs[j] & 15) - 8);
    out[j + 16] = d * static_cast<float>((block.qs[j] >> 4) - 8);
  }
}

void Expand(const Q4_1& block, float* out) {
  const float d = block.d.get(), m = block.m.get();
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>(block.qs[j] & 15) + m;
    out[j + 16] = d * static_cast<float>(block.qs[j] >> 4) + m;
  }
}

// Value j of a 5-bit block: its nibble and its bit of the plane `qh`.
template <typename Block>
int FiveBits(const Block& block, int j) {
  const int low = j < 16 ? block.qs[j] & 15 : block.qs[j - 16] >> 4;
  return low | ((block.qh[j / 8] >> (j % 8)) & 1) << 4;
}

void Expand(const Q5_0& block, float* out) {
  const float d = block.d.get();
  for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(FiveBits(block, j) - 16);
}

void Expand(const Q5_1& block, float* out) {
  const float d = block.d.get(), m = block.m.get();
  for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(FiveBits(block, j)) + m;
}

void Expand(const Q8_0& block, float* out) {
  const float d = block.d.get();
  for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(block.qs[j]);
}

void ExpandCodebook(const uint8_t* qs, const int8_t* values, float d, float* out) {
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>(values[qs[j] & 15]);
    out[j + 16] = d * static_cast<float>(values[qs[j] >> 4]);
  }
}

void Expand(const IQ4_NL& block, float* out) {
  ExpandCodebook(block.qs, kIq4Values, block.d.get(), out);
}

void Expand(const MXFP4& block, float* out) {
  // 2^(e - 128), subnormal for e < 2.
  const uint32_t bits = block.e < 2 ? 0x00200000u << block.e : (block.e - 1u) << 23;
  ExpandCodebook(block.qs, kFp4Values, std::bit_cast<float>(bits), out);
}

void Expand(const IQ4_XS& block, float* out) {
  const float d = block.d.get();
  for (int i = 0; i < 8; ++i) {
    const float scale = d * static_cast<float>(block.Scale(i));
    ExpandCodebook(block.qs + 16 * i, kIq4Values, scale, out + 32 * i);
  }
}

void Expand(const Q2_K& block, float* out) {
  const float d = block.d.get(), dmin = block.dmin.get();
  for (int i = 0; i < 256; ++i) {
    const uint8_t scale = block.scales[i / 16];
    const int q = (block.qs[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32))) & 3;
    out[i] = d * static_cast<float>(scale & 15) * static_cast<float>(q) -
             dmin * static_cast<float>(scale >> 4);
  }
}

void Expand(const Q3_K& block, float* out) {
  const float d = block.d.get();
  for (int i = 0; i < 256; ++i) {
    const int low = (block.qs[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32))) & 3;
    const int high = (block.hmask[i % 32] >> (i / 32)) & 1;
    const float scale = d * static_cast<float>(block.Scale(i / 16));
    out[i] = scale * static_cast<float>((low | high << 2) - 4);
  }
}

void Expand(const Q4_K& block, float* out) {
  const float d = block.d.get(), dmin = block.dmin.get();
  for (int i = 0; i < 256; ++i) {
    const auto [scale, min] = KScale(block.scales, i / 32);
    const int q = (block.qs[32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2))) & 15;
    out[i] = d * static_cast<float>(scale) * static_cast<float>(q) - dmin * static_cast<float>(min);
  }
}

void Expand(const Q5_K& block, float* out) {
  const float d = block.d.get(), dmin = block.dmin.get();
  for (int i = 0; i < 256; ++i) {
    const auto [scale, min] = KScale(block.scales, i / 32);
    const int low = (block.qs[32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2))) & 15;
    const int q = low | ((block.qh[i % 32] >> (i / 32)) & 1) << 4;
    out[i] = d * static_cast<float>(scale) * static_cast<float>(q) - dmin * static_cast<float>(min);
  }
}

void Expand(const Q6_K& block, float* out) {
  const float d = block.d.get();
  for (int i = 0; i < 256; ++i) {
    const float scale = d * static_cast<float>(block.scales[i / 16]);
    out[i] = scale * static_cast<float>(block.Value(i) - 32);
  }
}

template <typename Block, int kElems>
void ExpandRow(const std::byte* data, int64_t elems, float* out) {
  for (int64_t i = 0; i < elems / kElems; ++i) {
    Block block;
    std::memcpy(&block, data + i * static_cast<int64_t>(sizeof(Block)), sizeof(Block));
    Expand(block, out + i * kElems);
  }
}

template <float (*kConvert)(uint16_t)>
void Widen(const std::byte* data, int64_t elems, float* out) {
  for (int64_t i = 0; i < elems; ++i) {
    uint16_t bits;
    std::memcpy(&bits, data + 2 * i, 2);
    out[i] = kConvert(bits);
  }
}

}  // namespace

void DequantizeRow(DType dtype, const std::byte* data, int64_t elems, float* out) {
  VIVACE_DCHECK(elems % Info(dtype).block_elems == 0);
  switch (dtype) {
    case DType::kF32:
      std::memcpy(out, data, static_cast<size_t>(elems) * 4);
      return;
    case DType::kF16:
      return Widen<HalfToFloat>(data, elems, out);
    case DType::kBF16:
      return Widen<BFloatToFloat>(data, elems, out);
    case DType::kQ4_0:
      return ExpandRow<Q4_0, 32>(data, elems, out);
    case DType::kQ4_1:
      return ExpandRow<Q4_1, 32>(data, elems, out);
    case DType::kQ5_0:
      return ExpandRow<Q5_0, 32>(data, elems, out);
    case DType::kQ5_1:
      return ExpandRow<Q5_1, 32>(data, elems, out);
    case DType::kQ8_0:
      return ExpandRow<Q8_0, 32>(data, elems, out);
    case DType::kQ2_K:
      return ExpandRow<Q2_K, 256>(data, elems, out);
    case DType::kQ3_K:
      return ExpandRow<Q3_K, 256>(data, elems, out);
    case DType::kQ4_K:
      return ExpandRow<Q4_K, 256>(data, elems, out);
    case DType::kQ5_K:
      return ExpandRow<Q5_K, 256>(data, elems, out);
    case DType::kQ6_K:
      return ExpandRow<Q6_K, 256>(data, elems, out);
    case DType::kIQ4_NL:
      return ExpandRow<IQ4_NL, 32>(data, elems, out);
    case DType::kIQ4_XS:
      return ExpandRow<IQ4_XS, 256>(data, elems, out);
    case DType::kMXFP4:
      return ExpandRow<MXFP4, 32>(data, elems, out);
    case DType::kIQ1_S:
      return ExpandRow<IQ1_S, 256>(data, elems, out);
    case DType::kIQ1_M:
      return ExpandRow<IQ1_M, 256>(data, elems, out);
    case DType::kIQ2_XXS:
      return ExpandRow<IQ2_XXS, 256>(data, elems, out);
    case DType::kIQ2_XS:
      return ExpandRow<IQ2_XS, 256>(data, elems, out);
    case DType::kIQ2_S:
      return ExpandRow<IQ2_S, 256>(data, elems, out);
    case DType::kIQ3_XXS:
      return ExpandRow<IQ3_XXS, 256>(data, elems, out);
    case DType::kIQ3_S:
      return ExpandRow<IQ3_S, 256>(data, elems, out);
    case DType::kTQ1_0:
      return ExpandRow<TQ1_0, 256>(data, elems, out);
    case DType::kTQ2_0:
      return ExpandRow<TQ2_0, 256>(data, elems, out);
  }
}

}  // namespace vivace::quant
