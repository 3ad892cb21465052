#include "quant/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "quant/blocks.h"
#include "quant/dequantize.h"
#include "quant/testing/golden.h"
#include "support/paths.h"

namespace vivace::quant {
namespace {

// Made by tests/oracles/quantize_golden.py with gguf-py.
TEST(Quantize, EqualsGgufPy) {
  std::ifstream file(vivace::testing::SourceDir() + "/tests/golden/quantize.txt");
  int formats = 0;
  for (std::string name, values, data; file >> name >> values >> data; ++formats) {
    SCOPED_TRACE(name);
    const DType dtype = TypeNamed(name);
    ASSERT_TRUE(CanQuantize(dtype));
    const auto row = FloatsFromHex(values);
    const auto want = FromHex(data);
    std::vector<std::byte> got(want.size());
    QuantizeRow(dtype, row.data(), static_cast<int64_t>(row.size()), got.data());
    EXPECT_EQ(got, want);
  }
  EXPECT_EQ(formats, 7);
}

TEST(Quantize, NamesAreThoseOfTheFlag) {
  EXPECT_EQ(ParseQuantization("q8_0"), DType::kQ8_0);
  EXPECT_EQ(ParseQuantization("q5_1"), DType::kQ5_1);
  EXPECT_FALSE(ParseQuantization("q4_k"));
  EXPECT_FALSE(ParseQuantization(""));
  EXPECT_FALSE(CanQuantize(DType::kQ4_K));
}

TEST(Quantize, TakesWhatIsNotFinite) {
  std::vector<float> row(32, 1.0f);
  std::vector<std::byte> out(4 * 32);
  for (const float odd : {std::numeric_limits<float>::infinity(), NAN, -1e38f}) {
    row[7] = odd;
    for (const DType dtype : {DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_1,
                              DType::kQ5_0, DType::kQ5_1}) {
      QuantizeRow(dtype, row.data(), 32, out.data());
    }
  }
}

TEST(Half, RoundTripsEveryValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (const float value = HalfToFloat(half); !std::isnan(value)) {
      ASSERT_EQ(FloatToHalf(value), half) << bits;
    } else {
      ASSERT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value)))) << bits;
    }
    if (const float value = BFloatToFloat(half); !std::isnan(value)) {
      ASSERT_EQ(FloatToBFloat(value), half) << bits;
    }
  }
}

TEST(Half, RoundsToNearest) {
  std::mt19937 random(5);
  for (int i = 0; i < 100'000; ++i) {
    const float value = std::ldexp(static_cast<float>(random()) * 0x1p-32f + 0.5f,
                                   static_cast<int>(random() % 44) - 28);
    const uint16_t half = FloatToHalf(value);
    const float error = std::abs(HalfToFloat(half) - value);
    if (half == 0x7c00) {
      ASSERT_GE(value, 65520.0f);
      continue;
    }
    ASSERT_LE(error, std::abs(HalfToFloat(static_cast<uint16_t>(half + 1)) - value));
    if (half > 0) {
      ASSERT_LE(error, std::abs(HalfToFloat(static_cast<uint16_t>(half - 1)) - value));
    }
  }
}

TEST(RepackAsQ8_0, Mxfp4IsExact) {
  std::mt19937 random(6);
  for (int e = 104; e <= 143; ++e) {
    MXFP4 block;
    block.e = static_cast<uint8_t>(e);
    for (auto& q : block.qs) q = static_cast<uint8_t>(random());
    Q8_0 repacked;
    const auto* from = reinterpret_cast<const std::byte*>(&block);
    auto* to = reinterpret_cast<std::byte*>(&repacked);
    ASSERT_TRUE(RepackAsQ8_0(DType::kMXFP4, from, 32, to));
    float want[32], got[32];
    DequantizeRow(DType::kMXFP4, from, 32, want);
    DequantizeRow(DType::kQ8_0, to, 32, got);
    for (int j = 0; j < 32; ++j) ASSERT_EQ(got[j], want[j]) << e << " " << j;
  }
  for (const int e : {0, 103, 144, 255}) {
    MXFP4 block = {};
    block.e = static_cast<uint8_t>(e);
    block.qs[0] = 0x77;
    Q8_0 repacked;
    const bool fits = RepackAsQ8_0(DType::kMXFP4, reinterpret_cast<const std::byte*>(&block), 32,
                                   reinterpret_cast<std::byte*>(&repacked));
    EXPECT_EQ(fits, e < 144) << e;
    if (fits) {
      EXPECT_EQ(repacked.d.get(), 0.0f);
    }
  }
}

TEST(RepackAsQ8_0, Iq4XsRoundsItsScalesOnly) {
  std::mt19937 random(7);
  IQ4_XS block;
  for (size_t i = 0; i < sizeof(block); ++i) {
    reinterpret_cast<uint8_t*>(&block)[i] = static_cast<uint8_t>(random());
  }
  block.d.bits = {{0x34, 0x2a}};  // 0.0485
  Q8_0 repacked[8];
  const auto* from = reinterpret_cast<const std::byte*>(&block);
  ASSERT_TRUE(RepackAsQ8_0(DType::kIQ4_XS, from, 256, reinterpret_cast<std::byte*>(repacked)));
  std::vector<float> want(256), got(256);
  DequantizeRow(DType::kIQ4_XS, from, 256, want.data());
  DequantizeRow(DType::kQ8_0, reinterpret_cast<const std::byte*>(repacked), 256, got.data());
  for (size_t j = 0; j < 256; ++j) ASSERT_NEAR(got[j], want[j], std::abs(want[j]) * 0x1p-11f) << j;
}

}  // namespace
}  // namespace vivace::quant
