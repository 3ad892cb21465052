#include "engine/decayed_rate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace vivace {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(DecayedRate, IsTheAmountOverItsTime) {
  DecayedRate rate(10);
  EXPECT_EQ(rate.per_second(), 0);
  for (int i = 0; i < 1'000; ++i) rate.Add(4, kSecond / 10);
  EXPECT_NEAR(rate.per_second(), 40, 1e-6);
  for (int i = 0; i < 1'000; ++i) rate.Add(1, kSecond);
  EXPECT_NEAR(rate.per_second(), 1, 1e-6);  // the old is forgotten
}

TEST(DecayedRate, TimeThatBringsNothingCountsWhenSomethingCame) {
  DecayedRate rate(60);
  rate.Add(256, kSecond);
  for (int i = 0; i < 100; ++i) rate.Add(0, kSecond);
  EXPECT_EQ(rate.per_second(), 256);
  rate.Add(1, 0);  // for a minute of the hundred seconds
  EXPECT_NEAR(rate.per_second(), (256 * std::exp(-1) + 1) / (std::exp(-1) + 60), 1e-6);
}

TEST(DecayedRate, TimeInWhichNothingWasToComeDoesNotCount) {
  DecayedRate rate(60);
  rate.Add(10, kSecond);
  rate.Add(0, 50 * kSecond);
  rate.Rest();
  rate.Add(10, kSecond);
  EXPECT_NEAR(rate.per_second(), 10, 1e-6);
}

}  // namespace
}  // namespace vivace
