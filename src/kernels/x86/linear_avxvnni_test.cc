// The AVX-VNNI tier is the AVX2 tier with other products: their bits are equal, in every kernel.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/linear_fixture.h"
#include "kernels/x86/linear_x86.h"
#include "kernels/x86/pack.h"

namespace vivace::kernels::x86 {

extern const TierKernels kAvxVnniEvexKernels;

namespace {

using fixture::Bytes;
using fixture::Fill;
using fixture::kFormats;
using fixture::MakeRows;
using fixture::MakeWeights;
using fixture::Matrix;

// The products of one panel with a group of `width` rows.
std::vector<float> Multiply(const TierKernels& kernels, const Matrix& matrix,
                            const std::vector<float>& x, int width) {
  const int cols = matrix.get().cols, blocks = NumBlocks(cols);
  const Format format = *FormatOf(matrix.get().dtype);
  const size_t rows = static_cast<size_t>(width) * static_cast<size_t>(blocks);
  const Bytes int8(rows * kInt8BlockBytes), fp32(rows * kFp32BlockBytes);
  GroupRows group{.rows = {},
                  .width = width,
                  .cols = cols,
                  .norm_weight = nullptr,
                  .norm_eps = 0,
                  .first_block = 0,
                  .last_block = blocks,
                  .int8 = int8.data(),
                  .fp32 = fp32.data()};
  for (int i = 0; i < width; ++i) group.rows[i] = x.data() + int64_t{i} * cols;
  kernels.prepare(group);
  std::vector<float> c(static_cast<size_t>(width) * kTileRows);
  kernels.multiply[format][width](matrix.get().data, (TakesInt8(format) ? int8 : fp32).data(),
                                  blocks, c.data());
  return c;
}

void ExpectTheBitsOfAvx2(const TierKernels& kernels) {
  ASSERT_EQ(kernels.max_width, kAvx2Kernels.max_width);
  constexpr int kCols = 512;
  auto extremes = MakeRows(kernels.max_width, kCols, 3);
  for (size_t i = 0; i < extremes.size(); ++i) extremes[i] = i % 3 ? 127.0f : -127.0f;
  for (DType dtype : kFormats) {
    for (Fill fill : {Fill::kRandom, Fill::kZeros, Fill::kOnes}) {
      const auto data = MakeWeights(dtype, kTileRows, kCols, 1, fill);
      const Matrix matrix(kAvx2LinearOps, dtype, kTileRows, kCols, data);
      for (const auto& x : {MakeRows(kernels.max_width, kCols, 2), extremes}) {
        for (int width = 1; width <= kernels.max_width; ++width) {
          const auto got = Multiply(kernels, matrix, x, width);
          const auto want = Multiply(kAvx2Kernels, matrix, x, width);
          ASSERT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)), 0)
              << Info(dtype).name << " width " << width << " fill " << static_cast<int>(fill);
        }
      }
    }
  }
}

TEST(LinearAvxVnni, IsAvx2BitForBit) {
  if (!Supported(Isa::kAvxVnni)) GTEST_SKIP() << "this machine lacks avxvnni";
  ExpectTheBitsOfAvx2(kAvxVnniKernels);
}

TEST(LinearAvxVnni, IsAvx2BitForBitInTheOtherEncoding) {
  if (!Supported(Isa::kAvx512)) GTEST_SKIP() << "this machine lacks avx512";
  ExpectTheBitsOfAvx2(kAvxVnniEvexKernels);
}

}  // namespace
}  // namespace vivace::kernels::x86
