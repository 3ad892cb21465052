#include "quant/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "quant/blocks.h"

namespace vivace::quant {
namespace {

struct Name {
  std::string_view name;
  DType dtype;
};
constexpr Name kNames[] = {{"q8_0", DType::kQ8_0},
                           {"q4_0", DType::kQ4_0},
                           {"q4_1", DType::kQ4_1},
                           {"q5_0", DType::kQ5_0},
                           {"q5_1", DType::kQ5_1}};

void Put(F16& field, float value) {
  const uint16_t bits = FloatToHalf(value);
  field.bits.bytes[0] = static_cast<uint8_t>(bits);
  field.bits.bytes[1] = static_cast<uint8_t>(bits >> 8);
}

// A float as an integer of a range; NaN is its low end.
int Clamped(float value, int low, int high) {
  return value >= static_cast<float>(high) ? high
         : value > static_cast<float>(low) ? static_cast<int>(value)
                                           : low;
}

float Inverse(float d) { return d != 0.0f ? 1.0f / d : 0.0f; }

void Compress(const float* x, Q8_0& block) {
  float largest = 0.0f;
  for (int j = 0; j < 32; ++j) largest = std::max(largest, std::abs(x[j]));
  const float d = largest / 127.0f, inverse = Inverse(d);
  Put(block.d, d);
  for (int j = 0; j < 32; ++j) {
    block.qs[j] = static_cast<int8_t>(Clamped(std::round(x[j] * inverse), -127, 127));
  }
}

// The integers of a block of 4 or 5 bits into its nibbles, and into the plane of fifth bits.
template <typename Block>
void PutIntegers(const int (&q)[32], Block& block) {
  for (int j = 0; j < 16; ++j) {
    block.qs[j] = static_cast<uint8_t>((q[j] & 15) | (q[j + 16] & 15) << 4);
  }
  if constexpr (requires { block.qh; }) {
    std::fill(std::begin(block.qh), std::end(block.qh), uint8_t{0});
    for (int j = 0; j < 32; ++j) {
      block.qh[j / 8] = static_cast<uint8_t>(block.qh[j / 8] | (q[j] >> 4) << (j % 8));
    }
  }
}

// d * (q - half): the value farthest from zero becomes q = 0.
template <typename Block>
void CompressSymmetric(const float* x, int half, Block& block) {
  float farthest = 0.0f;
  for (int j = 0; j < 32; ++j) {
    if (std::abs(x[j]) > std::abs(farthest)) farthest = x[j];
  }
  const float d = farthest / static_cast<float>(-half), inverse = Inverse(d);
  Put(block.d, d);
  int q[32];
  for (int j = 0; j < 32; ++j) {
    q[j] = Clamped(x[j] * inverse + static_cast<float>(half) + 0.5f, 0, 2 * half - 1);
  }
  PutIntegers(q, block);
}

// d * q + m: m is the least value.
template <typename Block>
void CompressAffine(const float* x, int levels, Block& block) {
  const auto [low, high] = std::minmax_element(x, x + 32);
  const float d = (*high - *low) / static_cast<float>(levels), inverse = Inverse(d);
  Put(block.d, d);
  Put(block.m, *low);
  int q[32];
  for (int j = 0; j < 32; ++j) q[j] = Clamped((x[j] - *low) * inverse + 0.5f, 0, levels);
  PutIntegers(q, block);
}

void Compress(const float* x, Q4_0& block) { CompressSymmetric(x, 8, block); }
void Compress(const float* x, Q5_0& block) { CompressSymmetric(x, 16, block); }
void Compress(const float* x, Q4_1& block) { CompressAffine(x, 15, block); }
void Compress(const float* x, Q5_1& block) { CompressAffine(x, 31, block); }

template <typename Block>
void CompressRow(const float* values, int64_t elems, std::byte* data) {
  for (int64_t i = 0; i < elems / 32; ++i) {
    Block block;
    Compress(values + 32 * i, block);
    std::memcpy(data + i * static_cast<int64_t>(sizeof(Block)), &block, sizeof(Block));
  }
}

template <uint16_t (*kConvert)(float)>
void Narrow(const float* values, int64_t elems, std::byte* data) {
  for (int64_t i = 0; i < elems; ++i) {
    const uint16_t bits = kConvert(values[i]);
    std::memcpy(data + 2 * i, &bits, 2);
  }
}

void PutCodebook(const uint8_t* qs, const int8_t* values, float d, Q8_0& out) {
  Put(out.d, d);
  for (int j = 0; j < 16; ++j) {
    out.qs[j] = values[qs[j] & 15];
    out.qs[j + 16] = values[qs[j] >> 4];
  }
}

bool Repack(const MXFP4& block, Q8_0* out) {
  constexpr int kBias = 128, kLeast = -24, kMost = 15;  // powers of two of fp16
  const int exponent = block.e - kBias;
  if (exponent > kMost) return false;
  PutCodebook(block.qs, kFp4Values, exponent < kLeast ? 0.0f : std::ldexp(1.0f, exponent), *out);
  return true;
}

bool Repack(const IQ4_XS& block, Q8_0* out) {
  for (int i = 0; i < 8; ++i) {
    const float scale = block.d.get() * static_cast<float>(block.Scale(i));
    PutCodebook(block.qs + 16 * i, kIq4Values, scale, out[i]);
  }
  return true;
}

template <typename Block, int kElems>
bool RepackRow(const std::byte* data, int64_t elems, std::byte* out) {
  constexpr int kBlocks = kElems / 32;
  for (int64_t i = 0; i < elems / kElems; ++i) {
    Block block;
    Q8_0 repacked[kBlocks];
    std::memcpy(&block, data + i * static_cast<int64_t>(sizeof(Block)), sizeof(Block));
    if (!Repack(block, repacked)) return false;
    std::memcpy(out + i * static_cast<int64_t>(sizeof(repacked)), repacked, sizeof(repacked));
  }
  return true;
}

}  // namespace

bool CanQuantize(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return true;
    default:
      return std::ranges::find(kNames, dtype, &Name::dtype) != std::end(kNames);
  }
}

std::optional<DType> ParseQuantization(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name, &Name::name);
  if (found == std::end(kNames)) return std::nullopt;
  return found->dtype;
}

void QuantizeRow(DType dtype, const float* values, int64_t elems, std::byte* data) {
  VIVACE_DCHECK(CanQuantize(dtype) && elems % Info(dtype).block_elems == 0);
  switch (dtype) {
    case DType::kF32:
      std::memcpy(data, values, static_cast<size_t>(elems) * sizeof(float));
      return;
    case DType::kF16:
      return Narrow<FloatToHalf>(values, elems, data);
    case DType::kBF16:
      return Narrow<FloatToBFloat>(values, elems, data);
    case DType::kQ8_0:
      return CompressRow<Q8_0>(values, elems, data);
    case DType::kQ4_0:
      return CompressRow<Q4_0>(values, elems, data);
    case DType::kQ4_1:
      return CompressRow<Q4_1>(values, elems, data);
    case DType::kQ5_0:
      return CompressRow<Q5_0>(values, elems, data);
    case DType::kQ5_1:
      return CompressRow<Q5_1>(values, elems, data);
    default:
      return;
  }
}

bool RepackAsQ8_0(DType from, const std::byte* data, int64_t elems, std::byte* out) {
  VIVACE_DCHECK(elems % Info(from).block_elems == 0);
  if (from == DType::kIQ4_XS) return RepackRow<IQ4_XS, 256>(data, elems, out);
  return from == DType::kMXFP4 && RepackRow<MXFP4, 32>(data, elems, out);
}

}  // namespace vivace::quant
