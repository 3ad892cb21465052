#include "kernels/x86/pack.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/linear_fixture.h"
#include "quant/dequantize.h"

namespace vivace::kernels::x86 {
namespace {

using fixture::Bytes;
using fixture::Fill;
using fixture::kFormats;
using fixture::MakeWeights;

// Every value of a packed matrix is the file's, bit for bit.
void ExpectRoundTrip(DType dtype, int rows, int cols, Fill fill) {
  SCOPED_TRACE(std::string(Info(dtype).name) + " " + std::to_string(rows) + "x" +
               std::to_string(cols));
  const auto data = MakeWeights(dtype, rows, cols, 1, fill);
  const Bytes packed(PackedBytes(dtype, rows, cols));
  Pack({dtype, rows, cols, data.data()}, 0, NumPanels(rows), packed.data());
  const PackedMatrix matrix{dtype, rows, cols, packed.data()};
  std::vector<float> got(static_cast<size_t>(cols)), want(static_cast<size_t>(cols));
  for (int row = 0; row < rows; ++row) {
    quant::DequantizeRow(dtype, data.data() + row * RowBytes(Info(dtype), cols), cols, want.data());
    UnpackRow(matrix, row, 1.0f, got.data());
    ASSERT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0) << "row " << row;
  }
}

TEST(Pack, LosesNothing) {
  for (DType dtype : kFormats) {
    for (Fill fill : {Fill::kRandom, Fill::kZeros, Fill::kOnes}) {
      for (int rows : {1, 16, 37}) {
        for (int cols : {256, 768}) ExpectRoundTrip(dtype, rows, cols, fill);
      }
    }
    if (Info(dtype).block_elems == 32) ExpectRoundTrip(dtype, 18, 96, Fill::kRandom);
    if (Info(dtype).block_elems == 1) ExpectRoundTrip(dtype, 18, 45, Fill::kRandom);
  }
}

TEST(Pack, WritesTheSameBytesInAnyParts) {
  const int rows = 70, cols = 512;
  for (DType dtype : kFormats) {
    const auto data = MakeWeights(dtype, rows, cols, 1);
    const WeightView view{dtype, rows, cols, data.data()};
    const Bytes whole(PackedBytes(dtype, rows, cols)), parts(whole.size());
    Pack(view, 0, 5, whole.data());
    for (int tile : {3, 0, 4, 1, 2}) Pack(view, tile, tile + 1, parts.data());
    EXPECT_EQ(std::memcmp(whole.data(), parts.data(), whole.size()), 0) << Info(dtype).name;
  }
}

TEST(Pack, SizesAreTheTiles) {
  const auto bits = [](DType dtype) {
    return 8.0 * static_cast<double>(PackedBytes(dtype, 1600, 2560)) / (1600.0 * 2560.0);
  };
  EXPECT_EQ(bits(DType::kQ4_0), 4.5);
  EXPECT_EQ(bits(DType::kQ4_1), 5);
  EXPECT_EQ(bits(DType::kQ5_0), 5.5);
  EXPECT_EQ(bits(DType::kQ5_1), 6);
  EXPECT_EQ(bits(DType::kQ8_0), 8.5);
  EXPECT_EQ(bits(DType::kQ4_K), 4.625);
  EXPECT_EQ(bits(DType::kQ5_K), 5.625);
  EXPECT_EQ(bits(DType::kQ6_K), 6.5625);
  EXPECT_EQ(bits(DType::kBF16), 16);
}

}  // namespace
}  // namespace vivace::kernels::x86
