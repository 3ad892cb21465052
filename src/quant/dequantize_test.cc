#include "quant/dequantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "quant/half.h"
#include "quant/testing/golden.h"
#include "support/paths.h"

namespace vivace::quant {
namespace {

struct Golden {
  std::vector<std::byte> data;
  std::vector<float> values;
};

// Made by tests/oracles/quant_golden.py with gguf-py.
std::map<std::string, Golden> ReadGolden() {
  std::map<std::string, Golden> golden;
  std::ifstream file(vivace::testing::SourceDir() + "/tests/golden/dequantize.txt");
  for (std::string name, data, values; file >> name >> data >> values;) {
    Golden& row = golden[name];
    row.data = FromHex(data);
    row.values = FloatsFromHex(values);
  }
  return golden;
}

TEST(Dequantize, EqualsGgufPy) {
  const auto golden = ReadGolden();
  ASSERT_EQ(golden.size(), kNumDTypes - 1u) << "every format but F32";
  for (const auto& [name, row] : golden) {
    SCOPED_TRACE(name);
    const DTypeInfo& info = Info(TypeNamed(name));
    ASSERT_EQ(info.name, name);
    const auto elems = static_cast<int64_t>(row.values.size());
    ASSERT_EQ(RowBytes(info, elems), static_cast<int64_t>(row.data.size()));
    std::vector<std::byte> shifted(row.data.size() + 1);  // blocks need no alignment
    std::memcpy(shifted.data() + 1, row.data.data(), row.data.size());
    std::vector<float> out(row.values.size());
    DequantizeRow(info.dtype, shifted.data() + 1, elems, out.data());
    for (size_t i = 0; i < out.size(); ++i) {
      // The oracle multiplies in another order for some formats: one rounding apart at most.
      ASSERT_NEAR(out[i], row.values[i], std::abs(row.values[i]) * 2.5e-7f + 1e-7f) << i;
    }
  }
}

TEST(Dequantize, F32IsACopy) {
  const float values[3] = {1.5f, -0.0f, std::numeric_limits<float>::infinity()};
  float out[3];
  DequantizeRow(DType::kF32, reinterpret_cast<const std::byte*>(values), 3, out);
  EXPECT_EQ(std::memcmp(values, out, sizeof(values)), 0);
}

TEST(Dequantize, AnyBitPatternIsAccepted) {
  std::vector<float> out(256);
  for (int fill : {0x00, 0xff, 0x7f, 0x80}) {
    const std::vector<std::byte> data(1024, static_cast<std::byte>(fill));
    for (int i = 0; i < kNumDTypes; ++i) {
      DequantizeRow(static_cast<DType>(i), data.data(), 256, out.data());
      if (fill == 0) {
        for (float value : out)
          ASSERT_EQ(std::abs(value), 0.0f) << Info(static_cast<DType>(i)).name;
      }
    }
  }
}

TEST(Half, AllValues) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    const int exponent = static_cast<int>(bits >> 10 & 31),
              mantissa = static_cast<int>(bits & 1023);
    ASSERT_EQ(std::signbit(value), bits >> 15 == 1) << bits;
    if (exponent == 31) {
      ASSERT_EQ(mantissa == 0 ? std::isinf(value) : std::isnan(value), true) << bits;
    } else {
      const double magnitude =
          exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
      ASSERT_EQ(std::abs(static_cast<double>(value)), magnitude) << bits;
    }
  }
}

}  // namespace
}  // namespace vivace::quant
