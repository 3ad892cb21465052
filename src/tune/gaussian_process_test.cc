#include "tune/gaussian_process.h"

#include <gtest/gtest.h>

#include <vector>

namespace vivace::tune {
namespace {

Observation At(double x, double value, double noise) { return {{x, 0, 0, 0, 0}, value, noise}; }

TEST(GaussianProcess, GoesThroughWhatIsCertain) {
  const std::vector<Observation> seen = {At(0, 1, 0), At(2, 3, 0), At(5, -1, 0)};
  const GaussianProcess process(seen, 0.5, 1, 2);
  for (const Observation& o : seen) {
    EXPECT_NEAR(process.At(o.place).mean, o.value, 1e-6);
    EXPECT_NEAR(process.At(o.place).deviation, 0, 1e-3);
  }
}

TEST(GaussianProcess, KnowsNothingFarAway) {
  const std::vector<Observation> seen = {At(0, 3, 0.1)};
  const Belief belief = GaussianProcess(seen, 0.5, 2, 1).At({100, 0, 0, 0, 0});
  EXPECT_NEAR(belief.mean, 0.5, 1e-6);
  EXPECT_NEAR(belief.deviation, 2, 1e-6);
}

// One observation: the posterior is worked out by hand.
TEST(GaussianProcess, WeighsNoiseAgainstTheMean) {
  const std::vector<Observation> seen = {At(1, 4, 2)};
  const Belief belief = GaussianProcess(seen, 0, 2, 1).At({1, 0, 0, 0, 0});
  EXPECT_NEAR(belief.mean, 4 * 4.0 / (4 + 4), 1e-6);
  EXPECT_NEAR(belief.deviation * belief.deviation, 4 - 4 * 4.0 / (4 + 4), 1e-6);
}

TEST(GaussianProcess, EqualPlacesAverage) {
  const std::vector<Observation> seen = {At(0, 1, 0.01), At(0, 3, 0.01)};
  EXPECT_NEAR(GaussianProcess(seen, 0, 5, 1).At({0, 0, 0, 0, 0}).mean, 2, 1e-3);
}

TEST(GaussianProcess, NothingSeenIsTheMean) {
  const Belief belief = GaussianProcess({}, 7, 3, 1).At({});
  EXPECT_EQ(belief.mean, 7);
  EXPECT_EQ(belief.deviation, 3);
}

}  // namespace
}  // namespace vivace::tune
