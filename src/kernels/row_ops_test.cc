// Each pass against its definition in double, and the same bits for any rows beside and threads.
#include "kernels/row_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace vivace::kernels {
namespace {

std::vector<float> Random(size_t count, uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(count);
  for (auto& value : values) value = normal(random);
  return values;
}

// norm(x) by its definition.
std::vector<double> Normed(const Norm& norm, const float* x, int cols) {
  double mean = 0, squares = 0;
  if (norm.kind == NormKind::kLayer) {
    for (int k = 0; k < cols; ++k) mean += static_cast<double>(x[k]) / cols;
  }
  for (int k = 0; k < cols; ++k) squares += (x[k] - mean) * (x[k] - mean) / cols;
  std::vector<double> y;
  for (int k = 0; k < cols; ++k) {
    y.push_back((x[k] - mean) / std::sqrt(squares + static_cast<double>(norm.eps)) *
                    static_cast<double>(norm.weight[k]) +
                (norm.bias ? static_cast<double>(norm.bias[k]) : 0.0));
  }
  return y;
}

// Sums of some hundred terms in fp32.
constexpr double kRounding = 2e-6;

TEST(RowOps, NormsAreTheirDefinition) {
  ThreadPool pool(3);
  for (const int cols : {1, 7, 64, 300}) {
    const auto count = static_cast<size_t>(cols);
    auto x = Random(70 * count, 1);
    for (float& value : x) value += 3;  // a mean to take off
    const auto weight = Random(count, 2), bias = Random(count, 3);
    for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
      for (const float* b : {static_cast<const float*>(nullptr), bias.data()}) {
        if (kind == NormKind::kRms && b != nullptr) continue;
        const Norm norm{.kind = kind, .weight = weight.data(), .bias = b, .eps = 1e-3f};
        const std::vector<int32_t> index = {69, 0, 5, 5};
        std::vector<float> out(index.size() * count);
        NormRows(norm, x.data(), cols, index.data(), 4, cols, out.data(), pool);
        std::vector<float> residual(out.size(), 2.0f);
        AddRows({.y = x.data(),
                 .norm = norm,
                 .scale = 0.5f,
                 .num_rows = 4,
                 .cols = cols,
                 .x = residual.data()},
                pool);
        for (size_t i = 0; i < index.size(); ++i) {
          const auto want = Normed(norm, x.data() + index[i] * cols, cols);
          const auto added = Normed(norm, x.data() + i * count, cols);
          for (size_t k = 0; k < count; ++k) {
            ASSERT_NEAR(out[i * count + k], want[k], kRounding * (1 + std::abs(want[k])));
            ASSERT_NEAR(residual[i * count + k], 2 + 0.5 * added[k],
                        kRounding * (1 + std::abs(added[k])));
          }
        }
      }
    }
  }
}

TEST(RowOps, NoNormIsACopyAndAPlainAdd) {
  ThreadPool pool(2);
  const auto x = Random(3 * 20, 1);
  std::vector<float> out(x.size());
  NormRows({}, x.data(), 20, nullptr, 3, 20, out.data(), pool);
  EXPECT_EQ(out, x);
  AddRows({.y = x.data(), .scale = -1.0f, .num_rows = 3, .cols = 20, .x = out.data()}, pool);
  EXPECT_EQ(out, std::vector<float>(x.size(), 0.0f));
}

double Sigmoid64(double x) { return 1 / (1 + std::exp(-x)); }

TEST(RowOps, GatesAreSigmoids) {
  ThreadPool pool(3);
  for (const int rows : {1, 5, 200}) {
    constexpr int kCols = 300;
    auto gates = Random(static_cast<size_t>(rows) * kCols, 1);
    for (float& gate : gates) gate *= 8;
    gates[0] = 200, gates[1] = -200, gates[2] = std::nanf("");
    const auto y = Random(gates.size(), 2);
    auto out = y;
    GateRows(gates.data(), rows, kCols, out.data(), pool);
    for (size_t i = 0; i < y.size(); ++i) {
      if (i == 2) {
        EXPECT_TRUE(std::isnan(out[i]));
        continue;
      }
      const double want = y[i] * Sigmoid64(gates[i]);
      ASSERT_NEAR(out[i], want, 1e-6 * std::abs(want) + 1e-30) << i;
    }
  }
}

TEST(RowOps, ActivationsAreTheirDefinition) {
  ThreadPool pool(2);
  const ActivationSpec clamped{Activation::kSwigluClamped, 1.702f, 2.5f};
  const auto gelu_tanh = [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  const std::pair<ActivationSpec, std::function<double(double, double)>> cases[] = {
      {{Activation::kSilu}, [](double g, double u) { return g * Sigmoid64(g) * u; }},
      {{Activation::kGeluTanh}, [&](double g, double u) { return gelu_tanh(g) * u; }},
      {{Activation::kGelu},
       [](double g, double u) { return g * 0.5 * std::erfc(-g / std::sqrt(2)) * u; }},
      {{Activation::kRelu2}, [](double g, double u) { return g > 0 ? g * g * u : 0; }},
      {clamped, [](double g, double u) {
         g = std::min(g, 2.5);
         u = std::clamp(u, -2.5, 2.5);
         return (u + 1) * g * Sigmoid64(static_cast<double>(1.702f) * g);
       }}};
  constexpr int kFfn = 5000, kRows = 5;  // more than one item, and of a row too
  const auto raw = Random(size_t{kRows} * 2 * kFfn, 7, 4);
  for (const auto& [spec, want] : cases) {
    SCOPED_TRACE(static_cast<int>(spec.kind));
    std::vector<float> out(size_t{kRows} * kFfn);
    Activate(spec, true, raw.data(), kRows, kFfn, out.data(), pool);
    for (size_t row = 0; row < kRows; ++row) {
      for (size_t k = 0; k < kFfn; ++k) {
        const double g = raw[row * 2 * kFfn + k], u = raw[row * 2 * kFfn + kFfn + k];
        ASSERT_NEAR(out[row * kFfn + k], want(g, u), 1e-6 * (1 + std::abs(g * u) + g * g));
      }
    }
    if (spec.kind == Activation::kSwigluClamped) continue;  // has a gate
    auto in_place = std::vector<float>(raw.begin(), raw.begin() + kRows * kFfn);
    Activate(spec, false, in_place.data(), kRows, kFfn, in_place.data(), pool);
    for (size_t k = 0; k < in_place.size(); ++k) {
      ASSERT_NEAR(in_place[k], want(raw[k], 1.0), 1e-6 * (1 + std::abs(raw[k])));
    }
  }
}

TEST(RowOps, SoftcapLeavesWhatStandsBehindARow) {
  ThreadPool pool(2);
  constexpr int kCols = 9000, kStride = 9008;
  auto x = Random(size_t{3} * kStride, 4, 50);
  const auto before = x;
  SoftcapRows(30.0f, 3, kCols, kStride, x.data(), pool);
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % kStride >= kCols) {
      ASSERT_EQ(x[i], before[i]);
    } else {
      ASSERT_NEAR(x[i], 30 * std::tanh(static_cast<double>(before[i]) / 30), 1e-5);
    }
  }
}

TEST(RowOps, WhatIsNotANumberStaysInItsPlace) {
  ThreadPool pool(1);
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const Activation kind : {Activation::kSilu, Activation::kGeluTanh, Activation::kGelu,
                                Activation::kRelu2, Activation::kSwigluClamped}) {
    const std::vector<float> raw = {kNaN, 1, 1, 1, 1, 1, kNaN, 1};  // gate, up: of two rows
    std::vector<float> out(4);
    Activate({kind, 1.0f, 5.0f}, true, raw.data(), 2, 2, out.data(), pool);
    EXPECT_TRUE(std::isnan(out[0]) && !std::isnan(out[1]));
    EXPECT_TRUE(std::isnan(out[2]) && !std::isnan(out[3])) << static_cast<int>(kind);
  }
}

TEST(RowOps, TheBitsDoNotDependOnRowsBesideOrThreads) {
  constexpr int kCols = 1000, kRows = 40;
  const auto x = Random(size_t{kRows} * kCols, 5), weight = Random(kCols, 6);
  const Norm norm{.kind = NormKind::kLayer, .weight = weight.data(), .eps = 1e-5f};
  ThreadPool one(1), four(4);
  std::vector<float> all(x.size()), alone(kCols);
  NormRows(norm, x.data(), kCols, nullptr, kRows, kCols, all.data(), four);
  for (int32_t row = 0; row < kRows; ++row) {
    NormRows(norm, x.data(), kCols, &row, 1, kCols, alone.data(), one);
    ASSERT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + row * kCols)) << row;
  }
}

}  // namespace
}  // namespace vivace::kernels
