#include "load/arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "load/random.h"

namespace vivace::load {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;

std::vector<double> Gaps(const std::vector<double>& at) {
  std::vector<double> gaps = {at[0]};
  for (size_t i = 1; i < at.size(); ++i) gaps.push_back(at[i] - at[i - 1]);
  return gaps;
}

// Squared deviation over squared mean: 1 / shape for a gamma distribution.
double Dispersion(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (double v : values) sum += v, squares += v * v;
  const double mean = sum / values.size();
  return (squares / values.size() - mean * mean) / (mean * mean);
}

TEST(Arrivals, AtOnceWithoutARateOrWithAnInfiniteOne) {
  EXPECT_THAT(Arrivals({}, 3), ElementsAre(0, 0, 0));
  EXPECT_THAT(Arrivals({.rate = INFINITY}, 2), ElementsAre(0, 0));
  EXPECT_TRUE(Arrivals({.rate = 4}, 0).empty());
}

TEST(Arrivals, ConstantGaps) {
  EXPECT_THAT(Arrivals({.rate = 4, .burstiness = INFINITY}, 4),
              ElementsAre(DoubleNear(0.25, 1e-12), DoubleNear(0.5, 1e-12), DoubleNear(0.75, 1e-12),
                          DoubleNear(1, 1e-12)));
}

TEST(Arrivals, TakeNOverTheRateWhateverTheDraw) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto at = Arrivals({.rate = 5, .burstiness = 0.3, .seed = seed}, 50);
    EXPECT_TRUE(std::is_sorted(at.begin(), at.end()));
    EXPECT_GE(at.front(), 0);
    EXPECT_NEAR(at.back(), 10, 1e-9);
  }
}

TEST(Arrivals, SpreadIsTheShapes) {
  constexpr size_t kMany = 40'000;
  EXPECT_NEAR(Dispersion(Gaps(Arrivals({.rate = 10, .seed = 1}, kMany))), 1, 0.05);
  EXPECT_NEAR(Dispersion(Gaps(Arrivals({.rate = 10, .burstiness = 4, .seed = 2}, kMany))), 0.25,
              0.02);
  EXPECT_NEAR(Dispersion(Gaps(Arrivals({.rate = 10, .burstiness = 0.5, .seed = 3}, kMany))), 2,
              0.15);
}

TEST(Arrivals, GapsTooSmallForADoubleAreNotNone) {
  const auto at = Arrivals({.rate = 2, .burstiness = 1e-9, .seed = 1}, 4);
  EXPECT_NEAR(at.back(), 2, 1e-9);
  EXPECT_NEAR(Arrivals({.rate = 5, .burstiness = kLeastBurstiness, .seed = 1}, 50).back(), 10,
              1e-9);
}

TEST(Arrivals, SeedDecides) {
  EXPECT_EQ(Arrivals({.rate = 3, .seed = 7}, 30), Arrivals({.rate = 3, .seed = 7}, 30));
  EXPECT_NE(Arrivals({.rate = 3, .seed = 7}, 30), Arrivals({.rate = 3, .seed = 8}, 30));
}

// vLLM: the rate of request i of n is from + (to - from) i / (n - 1); no rescaling.
TEST(Arrivals, RampsFromOneRateToTheOther) {
  const auto linear = Gaps(Arrivals(
      {.burstiness = INFINITY, .ramp = ArrivalOptions::Ramp::kLinear, .ramp_from = 1, .ramp_to = 5},
      5));
  EXPECT_THAT(linear, ElementsAre(DoubleNear(1, 1e-12), DoubleNear(1 / 2., 1e-12),
                                  DoubleNear(1 / 3., 1e-12), DoubleNear(1 / 4., 1e-12),
                                  DoubleNear(1 / 5., 1e-12)));
  const auto exponential = Gaps(Arrivals({.burstiness = INFINITY,
                                          .ramp = ArrivalOptions::Ramp::kExponential,
                                          .ramp_from = 1,
                                          .ramp_to = 16},
                                         3));
  EXPECT_THAT(exponential, ElementsAre(DoubleNear(1, 1e-12), DoubleNear(0.25, 1e-12),
                                       DoubleNear(1 / 16., 1e-12)));
}

TEST(Random, DrawsAreOfTheirDistributions) {
  Random random(1, 2);
  double normal = 0, squares = 0, gamma = 0;
  constexpr int kMany = 50'000;
  for (int i = 0; i < kMany; ++i) {
    const double x = random.Normal();
    normal += x;
    squares += x * x;
    gamma += random.Gamma(2.5);
    ASSERT_LT(random.Below(3), 3u);
  }
  EXPECT_NEAR(normal / kMany, 0, 0.02);
  EXPECT_NEAR(squares / kMany, 1, 0.03);
  EXPECT_NEAR(gamma / kMany, 2.5, 0.05);
}

TEST(Random, PurposesAreApart) {
  Random a(1, 1), b(1, 2), again(1, 1);
  const uint64_t first = a.Bits();
  EXPECT_NE(first, b.Bits());
  EXPECT_EQ(first, again.Bits());
}

}  // namespace
}  // namespace vivace::load
