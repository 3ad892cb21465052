// argmax: the best output of every row, by the very numbers `multiply` stores.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "kernels/linear.h"
#include "kernels/linear_fixture.h"

namespace vivace::kernels {
namespace {

using fixture::Apply;
using fixture::Bytes;
using fixture::Call;
using fixture::kFormats;
using fixture::MakeRows;
using fixture::MakeWeights;
using fixture::Matrix;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<TokenId> Argmax(const LinearOps& ops, const Call& call, const std::vector<float>& x,
                            int count, ThreadPool& pool) {
  const Bytes buffer(ops.input_bytes(count, call.cols, pool.size()));
  const InputRows input{
      .x = x.data(), .stride = call.cols, .rows = count, .cols = call.cols, .norm = call.norm};
  const PreparedInput prepared = ops.prepare(input, call.group, buffer.data(), pool);
  std::vector<TokenId> best(static_cast<size_t>(count), -7);
  ops.argmax(call.group, prepared, best.data(), pool);
  return best;
}

// The definition.
TokenId BestOf(const float* outputs, int count) {
  TokenId best = -1;
  float value = -kInf;
  for (int n = 0; n < count; ++n) {
    if (!(outputs[n] < kInf)) return -1;
    if (outputs[n] > value) value = outputs[best = n];
  }
  return best;
}

class LinearArgmax : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!Supported(GetParam())) GTEST_SKIP() << "this machine lacks " << Name(GetParam());
  }
  const LinearOps& ops() const { return GetLinearOps(GetParam()); }

  void ExpectBestOfOutputs(const Call& call, const std::vector<float>& x, int count, int threads) {
    ThreadPool pool(threads);
    const auto outputs = Apply(ops(), call, x, 0, count, pool);
    const auto best = Argmax(ops(), call, x, count, pool);
    for (int row = 0; row < count; ++row) {
      ASSERT_EQ(best[static_cast<size_t>(row)],
                BestOf(outputs.data() + int64_t{row} * call.outputs, call.outputs))
          << "row " << row << " of " << count << ", " << threads << " threads";
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Tiers, LinearArgmax, testing::ValuesIn(kIsas),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST_P(LinearArgmax, IsTheFirstGreatestOutput) {
  const int outputs = 1003, cols = 256;
  const auto x = MakeRows(40, cols, 5), weight = MakeRows(1, cols, 6);
  const auto bias = MakeRows(1, outputs, 7);
  for (DType dtype : kFormats) {
    SCOPED_TRACE(std::string(Info(dtype).name));
    const Matrix matrix(ops(), dtype, outputs, cols, MakeWeights(dtype, outputs, cols, 1));
    Call call{.group = {.parts = {matrix.get()}, .num_parts = 1},
              .norm = {weight.data(), 1e-5f},
              .cols = cols,
              .outputs = outputs};
    for (int threads : {1, 2, 3}) ExpectBestOfOutputs(call, x, 40, threads);
    call.group.bias = bias.data();
    ExpectBestOfOutputs(call, x, 7, 2);
  }
}

TEST_P(LinearArgmax, ServesAnyCountOfRowsAndOutputs) {
  const int cols = 32;
  const auto x = MakeRows(40, cols, 5);
  for (int outputs : {1, 8, 9, 16, 17, 300}) {
    const auto data = MakeWeights(DType::kQ8_0, outputs, cols, 1);
    const Matrix matrix(ops(), DType::kQ8_0, outputs, cols, data);
    const Call call{
        .group = {.parts = {matrix.get()}, .num_parts = 1}, .cols = cols, .outputs = outputs};
    for (int rows = 0; rows <= 40; ++rows) ExpectBestOfOutputs(call, x, rows, 1 + rows % 3);
  }
}

// Outputs that are just the biases: weights are zero.
class Biases {
 public:
  Biases(const LinearOps& ops, std::vector<float> bias)
      : ops_(ops),
        bias_(std::move(bias)),
        matrix_(ops, DType::kF32, Outputs(), 1,
                std::vector<std::byte>(bias_.size() * sizeof(float))) {}

  TokenId Best(int threads) const {
    const Call call{.group = {.parts = {matrix_.get()}, .num_parts = 1, .bias = bias_.data()},
                    .cols = 1,
                    .outputs = Outputs()};
    ThreadPool pool(threads);
    const auto best = Argmax(ops_, call, {1.0f, 2.0f}, 2, pool);
    EXPECT_EQ(best[0], best[1]);
    return best[0];
  }

 private:
  int Outputs() const { return static_cast<int>(bias_.size()); }

  const LinearOps& ops_;
  std::vector<float> bias_;
  Matrix matrix_;
};

TEST_P(LinearArgmax, OfEqualOutputsTheFirst) {
  for (int threads : {1, 2, 3}) {
    std::vector<float> bias(500, -3.0f);
    EXPECT_EQ(Biases(ops(), bias).Best(threads), 0);
    for (size_t i : {499u, 250u, 249u, 33u, 32u}) {  // ever earlier, across panels and inside one
      bias[i] = 2.5f;
      EXPECT_EQ(Biases(ops(), bias).Best(threads), static_cast<TokenId>(i));
    }
    std::vector<float> zeros(40, -1.0f);
    zeros[20] = 0.0f;
    zeros[5] = -0.0f;
    EXPECT_EQ(Biases(ops(), zeros).Best(threads), 5) << "-0 is no less than 0";
  }
}

TEST_P(LinearArgmax, NanAndInfinityAreNoBest) {
  for (int threads : {1, 3}) {
    for (size_t at : {0u, 9u, 17u, 499u}) {
      for (float bad : {kNan, -kNan, kInf}) {
        auto bias = MakeRows(1, 500, 1);
        bias[100] = 1e30f;
        bias[at] = bad;
        EXPECT_EQ(Biases(ops(), bias).Best(threads), -1) << bad << " at " << at;
      }
      std::vector<float> bias(500, -kInf);
      EXPECT_EQ(Biases(ops(), bias).Best(threads), -1) << "none is above -infinity";
      bias[at] = -std::numeric_limits<float>::max();
      EXPECT_EQ(Biases(ops(), bias).Best(threads), static_cast<TokenId>(at));
    }
  }
}

TEST_P(LinearArgmax, ANanRowLeavesTheOthersAlone) {
  const int outputs = 90, cols = 64;
  const auto data = MakeWeights(DType::kQ4_1, outputs, cols, 1);
  const Matrix matrix(ops(), DType::kQ4_1, outputs, cols, data);
  const Call call{
      .group = {.parts = {matrix.get()}, .num_parts = 1}, .cols = cols, .outputs = outputs};
  auto x = MakeRows(14, cols, 5);
  ThreadPool pool(2);
  const auto clean = Argmax(ops(), call, x, 14, pool);
  x[static_cast<size_t>(3 * cols + 8)] = kNan;
  auto want = clean;
  want[3] = -1;
  EXPECT_EQ(Argmax(ops(), call, x, 14, pool), want);
}

}  // namespace
}  // namespace vivace::kernels
