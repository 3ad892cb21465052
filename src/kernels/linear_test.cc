#include "kernels/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/linear_fixture.h"
#include "quant/dequantize.h"

namespace vivace::kernels {
namespace {

using fixture::Apply;
using fixture::Bytes;
using fixture::Call;
using fixture::Fill;
using fixture::HalfFields;
using fixture::kFormats;
using fixture::MakeRows;
using fixture::MakeWeights;
using fixture::Matrix;

class Linear : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!Supported(GetParam())) GTEST_SKIP() << "this machine lacks " << Name(GetParam());
  }
  const LinearOps& ops() const { return GetLinearOps(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Tiers, Linear, testing::ValuesIn(kIsas),
                         [](const auto& info) { return std::string(Name(info.param)); });

void ExpectSameBits(const std::vector<float>& a, const float* b, const std::string& what) {
  ASSERT_EQ(std::memcmp(a.data(), b, a.size() * sizeof(float)), 0) << what;
}

// Up to a few groups of rows, and more than what is computed panel by panel.
std::vector<int> AllCounts() {
  std::vector<int> counts{64, 129};
  for (int count = 1; count <= 40; ++count) counts.push_back(count);
  return counts;
}

// Design rule 1, for one call: rows together, in any number and with any thread count, are the rows
// alone, bit for bit.
void CheckRule1(const LinearOps& ops, const Call& call, const std::string& what,
                const std::vector<int>& counts = AllCounts()) {
  constexpr int kMost = 129;
  const auto x = MakeRows(kMost, call.cols, 7);
  ThreadPool one(1);
  std::vector<float> alone;
  for (int row = 0; row < kMost; ++row) {
    const auto y = Apply(ops, call, x, row, 1, one);
    alone.insert(alone.end(), y.begin(), y.end());
  }
  for (int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (int count : counts) {
      const int first = (kMost - count) / 2;
      const auto together = Apply(ops, call, x, first, count, pool);
      ExpectSameBits(
          together, &alone[static_cast<size_t>(first) * static_cast<size_t>(call.outputs)],
          what + ", " + std::to_string(count) + " rows, " + std::to_string(threads) + " threads");
    }
  }
}

TEST_P(Linear, RowsTogetherAreTheRowsAloneInEveryFormat) {
  for (DType dtype : kFormats) {
    const int rows = 75, cols = 512;
    const Matrix matrix(ops(), dtype, rows, cols, MakeWeights(dtype, rows, cols, 1));
    Call call{.cols = cols, .outputs = rows};
    call.group.parts[0] = matrix.get();
    call.group.num_parts = 1;
    CheckRule1(ops(), call, std::string(Info(dtype).name));
  }
}

TEST_P(Linear, RowsTogetherAreTheRowsAloneWithNormBiasAndEveryEpilogue) {
  const int rows = 40, cols = 96;
  const Matrix a(ops(), DType::kQ4_1, rows, cols, MakeWeights(DType::kQ4_1, rows, cols, 1));
  const Matrix b(ops(), DType::kF16, rows, cols, MakeWeights(DType::kF16, rows, cols, 2));
  const Matrix c(ops(), DType::kQ8_0, 9, cols, MakeWeights(DType::kQ8_0, 9, cols, 3));
  const auto weight = MakeRows(1, cols, 4);
  const auto bias = MakeRows(1, 2 * rows + 9, 5);
  for (Epilogue epilogue :
       {Epilogue::kStore, Epilogue::kAdd, Epilogue::kSiluMul, Epilogue::kGeluTanhMul}) {
    const bool pairs = epilogue == Epilogue::kSiluMul || epilogue == Epilogue::kGeluTanhMul;
    const Call call{.group = {.parts = {a.get(), b.get(), c.get()},
                              .num_parts = pairs ? 2 : 3,
                              .bias = bias.data()},
                    .epilogue = epilogue,
                    .norm = {weight.data(), 1e-5f},
                    .cols = cols,
                    .outputs = pairs ? rows : 2 * rows + 9};
    CheckRule1(ops(), call, "epilogue " + std::to_string(static_cast<int>(epilogue)));
  }
}

// Many rows over a panel too wide to be unpacked at once, alone and in pairs of one kind.
TEST_P(Linear, ManyRowsTogetherAreTheRowsAloneInWideMatrices) {
  const int rows = 20, cols = 1280;
  for (DType dtype : {DType::kQ4_1, DType::kQ5_0, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
    const Matrix a(ops(), dtype, rows, cols, MakeWeights(dtype, rows, cols, 1));
    const Matrix b(ops(), dtype, rows, cols, MakeWeights(dtype, rows, cols, 2));
    for (Epilogue epilogue : {Epilogue::kStore, Epilogue::kSiluMul}) {
      const bool pairs = epilogue == Epilogue::kSiluMul;
      const Call call{.group = {.parts = {a.get(), b.get()}, .num_parts = 2},
                      .epilogue = epilogue,
                      .cols = cols,
                      .outputs = pairs ? rows : 2 * rows};
      CheckRule1(ops(), call, std::string(Info(dtype).name) + (pairs ? " pairs" : ""), {61, 129});
    }
  }
}

TEST_P(Linear, MoreThreadsThanSharesOfTheWork) {
  const int rows = 16 * 200, cols = 32;
  const Matrix matrix(ops(), DType::kQ8_0, rows, cols, MakeWeights(DType::kQ8_0, rows, cols, 1));
  const Call call{
      .group = {.parts = {matrix.get()}, .num_parts = 1}, .cols = cols, .outputs = rows};
  const auto x = MakeRows(1, cols, 2);
  ThreadPool one(1), many(70);
  ExpectSameBits(Apply(ops(), call, x, 0, 1, one), Apply(ops(), call, x, 0, 1, many).data(),
                 "70 threads");
}

// What the tier should give for W x, in double, with a bound on how far off it may be: fp32
// rounding of every term, and for int8 activations half a step of each block's scale.
struct Expected {
  double value;
  double bound;
};

// The largest minimum of a block: q and m are added up apart, and each may be far larger than their
// sum. fp16 fields of MakeWeights are under 0.3; minimums of the K formats have 6-bit factors.
double LargestMinimum(DType dtype) {
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
      return 0.3;
    case DType::kQ4_K:
    case DType::kQ5_K:
      return 0.3 * 63;
    default:
      return 0;
  }
}

Expected ExpectDot(DType dtype, Isa isa, const float* w, const float* x, int cols) {
  // AVX-512 rounds a block's scale up to one of four a binade: up to a quarter coarser.
  const double step = isa >= Isa::kAvx512 ? 1.25 : 1.0;
  double value = 0, magnitude = 0, quantisation = 0;
  for (int first = 0; first < cols; first += 32) {
    float max = 0;
    double weights = 0;
    for (int k = first; k < std::min(first + 32, cols); ++k) {
      value += double{w[k]} * double{x[k]};
      magnitude += std::abs(double{w[k]} * double{x[k]});
      weights += std::abs(double{w[k]});
      max = std::max(max, std::abs(x[k]));
    }
    quantisation += weights * double{max} / 127 * 0.5 * step;
    magnitude += 32 * double{max} * 2 * LargestMinimum(dtype);
  }
  const double rounding = magnitude * (cols + 8) * 0x1p-24;
  if (isa == Isa::kAvx512Bf16 && dtype == DType::kBF16) {  // rows are rounded to bf16
    return {value, rounding + magnitude * 0x1p-9 + 1e-30};
  }
  const bool quantised = isa != Isa::kReference && Info(dtype).block_elems > 1;
  return {value, rounding + (quantised ? quantisation * 1.001 : 0) + 1e-30};
}

void CheckAgainstDefinition(const LinearOps& ops, DType dtype, int rows, int cols, Fill fill,
                            const std::vector<float>& x) {
  SCOPED_TRACE(std::string(Info(dtype).name) + " " + std::to_string(rows) + "x" +
               std::to_string(cols) + " fill " + std::to_string(static_cast<int>(fill)));
  const auto data = MakeWeights(dtype, rows, cols, 11, fill);
  const Matrix matrix(ops, dtype, rows, cols, data);
  const int count = static_cast<int>(x.size()) / cols;
  const Call call{
      .group = {.parts = {matrix.get()}, .num_parts = 1}, .cols = cols, .outputs = rows};
  ThreadPool pool(2);
  const auto y = Apply(ops, call, x, 0, count, pool);
  std::vector<float> w(static_cast<size_t>(cols));
  for (int n = 0; n < rows; ++n) {
    quant::DequantizeRow(dtype, data.data() + n * RowBytes(Info(dtype), cols), cols, w.data());
    for (int m = 0; m < count; ++m) {
      const auto [value, bound] =
          ExpectDot(dtype, ops.isa, w.data(), &x[static_cast<size_t>(m * cols)], cols);
      ASSERT_NEAR(y[static_cast<size_t>(m * rows + n)], value, bound)
          << "row " << m << " out " << n;
    }
  }
}

TEST_P(Linear, ComputesWhatTheFormatMeans) {
  for (DType dtype : kFormats) {
    const int unit = Info(dtype).block_elems;
    for (int rows : {1, 7, 15, 16, 17, 50}) {
      for (int multiple : {1, 2, 3, 5}) {
        const int cols = unit == 1 ? 27 * multiple + 1 : unit * multiple;
        for (int count : {1, 3, 13}) {
          CheckAgainstDefinition(ops(), dtype, rows, cols, Fill::kRandom,
                                 MakeRows(count, cols, static_cast<uint32_t>(cols + count)));
        }
      }
    }
  }
}

TEST_P(Linear, ExtremesDoNotSaturate) {
  for (DType dtype : kFormats) {
    if (Info(dtype).block_elems == 1) continue;
    // As many blocks as any kernel sums up in integers.
    const int cols = Info(dtype).block_elems == 256 ? 1024 : 1152;
    for (Fill fill : {Fill::kZeros, Fill::kOnes, Fill::kRandom}) {
      for (float low : {127.0f, -127.0f}) {
        // All activations at the edge of int8: same sign, and opposite signs side by side.
        std::vector<float> x(static_cast<size_t>(2 * cols));
        for (int k = 0; k < cols; ++k) {
          x[static_cast<size_t>(k)] = low;
          x[static_cast<size_t>(cols + k)] = k % 2 ? low : -low;
        }
        CheckAgainstDefinition(ops(), dtype, 17, cols, fill, x);
      }
    }
  }
}

TEST_P(Linear, LargeAndTinyActivationsKeepTheirScale) {
  for (float scale : {1e-25f, 1e-6f, 1e6f, 1e25f}) {
    auto x = MakeRows(3, 256, 3);
    for (auto& value : x) value *= scale;
    for (DType dtype : kFormats) CheckAgainstDefinition(ops(), dtype, 20, 256, Fill::kRandom, x);
  }
}

TEST_P(Linear, ZeroRowsGiveZeroAndDenormalsDoNoHarm) {
  const auto data = MakeWeights(DType::kQ8_0, 16, 64, 1);
  const Matrix matrix(ops(), DType::kQ8_0, 16, 64, data);
  const Call call{.group = {.parts = {matrix.get()}, .num_parts = 1}, .cols = 64, .outputs = 16};
  ThreadPool pool(1);
  std::vector<float> x(3 * 64, 0.0f);
  std::fill(x.begin() + 64, x.begin() + 128, 1e-42f);
  std::fill(x.begin() + 128, x.end(), -0.0f);
  for (float y : Apply(ops(), call, x, 0, 3, pool)) EXPECT_NEAR(y, 0.0f, 1e-30f);
  EXPECT_TRUE(Apply(ops(), call, x, 0, 0, pool).empty()) << "no rows is fine";
}

TEST_P(Linear, NanAndInfinityStayInTheirRow) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const int rows = 33, cols = 256;
  ThreadPool pool(2);
  for (DType dtype : kFormats) {
    const Matrix matrix(ops(), dtype, rows, cols, MakeWeights(dtype, rows, cols, 1));
    for (float bad : {kNan, kInf, -kInf}) {
      Call call{.group = {.parts = {matrix.get(), matrix.get()}, .num_parts = 1},
                .cols = cols,
                .outputs = rows};
      auto x = MakeRows(5, cols, 2);
      const auto clean = Apply(ops(), call, x, 0, 5, pool);
      x[static_cast<size_t>(2 * cols + 100)] = bad;
      const auto y = Apply(ops(), call, x, 0, 5, pool);
      for (int n = 0; n < rows; ++n) {
        for (int m : {0, 1, 3, 4}) {
          ASSERT_EQ(y[static_cast<size_t>(m * rows + n)], clean[static_cast<size_t>(m * rows + n)]);
        }
        ASSERT_FALSE(std::isfinite(y[static_cast<size_t>(2 * rows + n)])) << Info(dtype).name;
      }
      call.group.num_parts = 2;
      const auto weight = MakeRows(1, cols, 4);
      call.norm = {weight.data(), 1e-5f};
      for (Epilogue epilogue : {Epilogue::kSiluMul, Epilogue::kGeluTanhMul}) {
        call.epilogue = epilogue;
        const auto gated = Apply(ops(), call, x, 0, 5, pool);
        for (int n = 0; n < rows; ++n) {
          ASSERT_TRUE(std::isnan(gated[static_cast<size_t>(2 * rows + n)])) << Info(dtype).name;
          ASSERT_TRUE(std::isfinite(gated[static_cast<size_t>(3 * rows + n)])) << Info(dtype).name;
        }
      }
    }
  }
}

// Puts `half` in place of each of a row's scales in turn: that row's outputs and no others are bad.
void CheckBadScale(const LinearOps& ops, DType dtype, uint16_t half, bool (*bad)(float)) {
  ThreadPool pool(2);
  for (int field : HalfFields(dtype)) {
    SCOPED_TRACE(std::string(Info(dtype).name) + " field at " + std::to_string(field));
    const int rows = 18, cols = 256;
    auto data = MakeWeights(dtype, rows, cols, 1);
    const auto row_bytes = static_cast<size_t>(RowBytes(Info(dtype), cols));
    std::memcpy(&data[17 * row_bytes + static_cast<size_t>(field)], &half, 2);
    const Matrix matrix(ops, dtype, rows, cols, data);
    const Call call{
        .group = {.parts = {matrix.get()}, .num_parts = 1}, .cols = cols, .outputs = rows};
    for (int count : {1, 20, 80}) {
      const auto y = Apply(ops, call, MakeRows(count, cols, 3), 0, count, pool);
      for (int i = 0; i < count * rows; ++i) {
        ASSERT_EQ(bad(y[static_cast<size_t>(i)]), i % rows == 17) << count << " rows";
      }
    }
  }
}

TEST_P(Linear, NanScalesGiveNanOutputs) {
  const uint16_t nan = 0x7e00;
  for (DType dtype : kFormats) {
    CheckBadScale(ops(), dtype, nan, [](float y) { return std::isnan(y); });
  }
}

TEST_P(Linear, InfiniteScalesGiveNoFiniteOutputs) {
  const uint16_t infinity = 0x7c00;
  for (DType dtype : kFormats) {
    CheckBadScale(ops(), dtype, infinity, [](float y) { return !std::isfinite(y); });
  }
}

TEST_P(Linear, NormBiasAndEpiloguesAreTheirFormulas) {
  // fp32 weights: every tier computes in fp32, so the tolerance is rounding alone.
  const int rows = 21, cols = 70, count = 14;
  const auto gate_data = MakeWeights(DType::kF32, rows, cols, 1);
  const auto up_data = MakeWeights(DType::kF32, rows, cols, 2);
  const Matrix gate(ops(), DType::kF32, rows, cols, gate_data);
  const Matrix up(ops(), DType::kF32, rows, cols, up_data);
  const auto* wg = reinterpret_cast<const float*>(gate_data.data());
  const auto* wu = reinterpret_cast<const float*>(up_data.data());
  const auto x = MakeRows(count, cols, 3), weight = MakeRows(1, cols, 4);
  const auto bias = MakeRows(1, 2 * rows, 5);
  ThreadPool pool(2);
  Call call{.group = {.parts = {gate.get(), up.get()}, .num_parts = 2, .bias = bias.data()},
            .norm = {weight.data(), 1e-5f},
            .cols = cols};
  for (Epilogue epilogue :
       {Epilogue::kStore, Epilogue::kAdd, Epilogue::kSiluMul, Epilogue::kGeluTanhMul}) {
    call.epilogue = epilogue;
    const bool pairs = epilogue == Epilogue::kSiluMul || epilogue == Epilogue::kGeluTanhMul;
    call.outputs = pairs ? rows : 2 * rows;
    const auto y = Apply(ops(), call, x, 0, count, pool);
    for (int m = 0; m < count; ++m) {
      double squares = 0;
      for (int k = 0; k < cols; ++k)
        squares += std::pow(double{x[static_cast<size_t>(m * cols + k)]}, 2);
      const double inverse = 1 / std::sqrt(squares / cols + 1e-5);
      for (int n = 0; n < rows; ++n) {
        double g = double{bias[static_cast<size_t>(n)]},
               u = double{bias[static_cast<size_t>(rows + n)]};
        for (int k = 0; k < cols; ++k) {
          const double v = double{x[static_cast<size_t>(m * cols + k)]} * inverse *
                           double{weight[static_cast<size_t>(k)]};
          g += double{wg[n * cols + k]} * v;
          u += double{wu[n * cols + k]} * v;
        }
        const auto at = [&](int column) {
          return double{y[static_cast<size_t>(m * call.outputs + column)]};
        };
        const double tolerance = 2e-4;
        switch (epilogue) {
          case Epilogue::kStore:
            ASSERT_NEAR(at(n), g, tolerance);
            ASSERT_NEAR(at(rows + n), u, tolerance);
            break;
          case Epilogue::kAdd:
            ASSERT_NEAR(at(n), 1 + g, tolerance);
            ASSERT_NEAR(at(rows + n), 1 + u, tolerance);
            break;
          case Epilogue::kSiluMul:
            ASSERT_NEAR(at(n), g / (1 + std::exp(-g)) * u, tolerance * 30);
            break;
          case Epilogue::kGeluTanhMul: {
            const double t = std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g));
            ASSERT_NEAR(at(n), 0.5 * g * (1 + t) * u, tolerance * 30);
            break;
          }
        }
      }
    }
  }
}

TEST_P(Linear, ActivationsAreAccurateOverTheirRange) {
  // One column: gate = x * 1, up = x * 0 + bias 1, so out = act(x).
  const float one = 1.0f, zero = 0.0f, bias[2] = {0.0f, 1.0f};
  std::vector<std::byte> ones(4), zeros(4);
  std::memcpy(ones.data(), &one, 4);
  std::memcpy(zeros.data(), &zero, 4);
  const Matrix gate(ops(), DType::kF32, 1, 1, ones), up(ops(), DType::kF32, 1, 1, zeros);
  std::vector<float> x;
  for (float v = -100; v <= 100; v += 0.0371f) x.push_back(v);
  for (float v : {-1e4f, 1e4f, -88.5f, 88.5f, -1e-7f, 1e-7f, 0.0f}) x.push_back(v);
  ThreadPool pool(1);
  Call call{.group = {.parts = {gate.get(), up.get()}, .num_parts = 2, .bias = bias},
            .cols = 1,
            .outputs = 1};
  const int count = static_cast<int>(x.size());
  call.epilogue = Epilogue::kSiluMul;
  const auto silu = Apply(ops(), call, x, 0, count, pool);
  call.epilogue = Epilogue::kGeluTanhMul;
  const auto gelu = Apply(ops(), call, x, 0, count, pool);
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = double{x[i]};
    const double s = v / (1 + std::exp(-v));
    const double g = 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    // An exponential's error grows with its argument, as that is rounded.
    ASSERT_NEAR(silu[i], s, std::abs(s) * (3e-7 + 8e-8 * std::abs(v)) + 1e-30) << v;
    ASSERT_NEAR(gelu[i], g, std::abs(v) * 2e-7 + std::abs(g) * 1e-6) << v;
  }
}

TEST_P(Linear, InputMayBeGatheredAndStrided) {
  const int rows = 5, cols = 32, stride = 40;
  const Matrix matrix(ops(), DType::kQ8_0, rows, cols, MakeWeights(DType::kQ8_0, rows, cols, 1));
  const MatrixGroup group{.parts = {matrix.get()}, .num_parts = 1};
  const auto x = MakeRows(6, stride, 2);
  const int32_t index[3] = {5, 0, 5};
  ThreadPool pool(1);
  const Bytes buffer(ops().input_bytes(3, cols, 1));
  const InputRows input{.x = x.data(), .stride = stride, .rows = 3, .cols = cols, .index = index};
  const PreparedInput prepared = ops().prepare(input, group, buffer.data(), pool);
  std::vector<float> out(3 * 8, -7.0f);  // wider rows than outputs: the rest is left alone
  ops().multiply(group, prepared, Epilogue::kStore, out.data(), 8, pool);
  for (int m = 0; m < 3; ++m) {
    const std::vector<float> row(x.begin() + index[m] * stride,
                                 x.begin() + index[m] * stride + cols);
    const Call call{.group = group, .cols = cols, .outputs = rows};
    ExpectSameBits(Apply(ops(), call, row, 0, 1, pool), &out[static_cast<size_t>(8 * m)],
                   "gathered");
    for (int n = rows; n < 8; ++n) EXPECT_EQ(out[static_cast<size_t>(8 * m + n)], -7.0f);
  }
}

TEST_P(Linear, EmbedGivesTheRowsOfTheTable) {
  ThreadPool pool(2);
  for (DType dtype : kFormats) {
    const int rows = 37, cols = 256;
    const auto data = MakeWeights(dtype, rows, cols, 1);
    const Matrix table(ops(), dtype, rows, cols, data);
    std::vector<TokenId> tokens;
    for (int i = 0; i < rows; ++i) tokens.push_back(i * 17 % rows);
    std::vector<float> out(static_cast<size_t>(rows * cols)), want(cols);
    ops().embed({.table = &table.get(), .tokens = tokens, .scale = 2.0f, .out = out.data()}, pool);
    for (int i = 0; i < rows; ++i) {
      quant::DequantizeRow(
          dtype, data.data() + tokens[static_cast<size_t>(i)] * RowBytes(Info(dtype), cols), cols,
          want.data());
      for (auto& value : want) value *= 2.0f;
      ExpectSameBits(want, &out[static_cast<size_t>(i * cols)], std::string(Info(dtype).name));
    }
  }
}

TEST_P(Linear, RefusesShapesTheFormatsCannotHave) {
  EXPECT_FALSE(ops().can_pack(DType::kQ4_1, 16, 33));
  EXPECT_FALSE(ops().can_pack(DType::kQ6_K, 16, 128));
  EXPECT_FALSE(ops().can_pack(DType::kF32, 0, 32));
  EXPECT_FALSE(ops().can_pack(DType::kF32, 32, 0));
  for (DType dtype : kFormats) EXPECT_TRUE(ops().can_pack(dtype, 1, 256));
  for (DType dtype : {DType::kQ2_K, DType::kIQ4_XS, DType::kMXFP4}) {
    EXPECT_EQ(ops().can_pack(dtype, 1, 256), GetParam() == Isa::kReference) << Info(dtype).name;
  }
  EXPECT_TRUE(ops().can_pack(DType::kF16, 3, 5));
  EXPECT_GE(ops().packed_bytes(DType::kQ8_0, 1 << 20, 8192), size_t{1} << 33)
      << "no 32-bit overflow";
}

}  // namespace
}  // namespace vivace::kernels
