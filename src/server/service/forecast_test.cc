#include "server/service/forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/clock.h"

namespace vivace::server {
namespace {

constexpr int64_t kSecond = kNanosPerSecond;

EngineStats Computed(int64_t tokens, int64_t ns) {
  EngineStats stats;
  stats.prompt_step_tokens = tokens;
  stats.prompt_step_ns = ns;
  return stats;
}

TEST(RetryAfter, IsWholeSecondsFromOneToSixty) {
  for (const auto& [wait, seconds] : {std::pair{0.0, 1},
                                      {0.4, 1},
                                      {1.0, 1},
                                      {1.01, 2},
                                      {12.0, 12},
                                      {59.5, 60},
                                      {60.0, 60},
                                      {1e30, 60},
                                      {-5.0, 1},
                                      {std::numeric_limits<double>::infinity(), 60},
                                      {std::nan(""), 1}}) {
    EXPECT_EQ(RetryAfterSeconds(wait), seconds) << wait;
  }
}

TEST(Forecast, WithoutMeasurementsNothingIsKnown) {
  const Forecast now = {.pending_tokens = 1'000'000, .sequences = 100, .max_sequences = 8};
  EXPECT_EQ(now.FirstTokenSeconds(1'000'000), 0.0);
}

TEST(Forecast, PromptsAheadAndTheOwnAreComputed) {
  const Forecast now = {
      .pending_tokens = 3'000, .sequences = 4, .max_sequences = 8, .tokens_per_s = 1'000};
  EXPECT_DOUBLE_EQ(now.FirstTokenSeconds(500), 3.5);
  EXPECT_DOUBLE_EQ(now.QueueSeconds(), 3.0);
}

TEST(Forecast, APlaceMustBeFree) {
  Forecast now = {.pending_tokens = 0,
                  .sequences = 11,
                  .max_sequences = 8,
                  .tokens_per_s = 1'000,
                  .ends_per_s = 0.5};
  EXPECT_DOUBLE_EQ(now.QueueSeconds(), 8.0);  // four must end
  now.sequences = 7;
  EXPECT_DOUBLE_EQ(now.QueueSeconds(), 0.0);
}

TEST(LoadMeter, MeasuresTheSpeedOfPrompts) {
  LoadMeter meter(8);
  meter.Observe(Computed(1'000, kSecond), kSecond);
  EXPECT_DOUBLE_EQ(meter.now().tokens_per_s, 1'000.0);
  // Just now: not again. Too few: with the next.
  meter.Observe(Computed(9'000, kSecond + 1), kSecond + 1);
  meter.Observe(Computed(1'001, kSecond + 1), 2 * kSecond);
  EXPECT_DOUBLE_EQ(meter.now().tokens_per_s, 1'000.0);
  for (int64_t i = 1; i < 40; ++i) {
    meter.Observe(Computed(1'000 + i * 500, kSecond + i * kSecond), (2 + i) * kSecond);
  }
  EXPECT_NEAR(meter.now().tokens_per_s, 500.0, 1.0);
}

TEST(LoadMeter, CountsWhatIsUnderWay) {
  LoadMeter meter(8);
  meter.Observe(Computed(1'000, kSecond), kSecond);
  meter.Submitted(10'000, 2);
  meter.Submitted(500, 1);
  EXPECT_EQ(meter.now().sequences, 3);
  EXPECT_EQ(meter.retry_after_s(), 11);
  meter.Started(10'000);
  EXPECT_EQ(meter.retry_after_s(), 1);
  meter.Started(500);
  meter.Ended(3, 2 * kSecond);
  EXPECT_EQ(meter.now().sequences, 0);
  EXPECT_EQ(meter.now().pending_tokens, 0);
}

TEST(LoadMeter, MeasuresHowSoonPlacesBecomeFree) {
  LoadMeter meter(2);
  meter.Submitted(10, 10);
  for (int64_t i = 1; i <= 5; ++i) meter.Ended(1, i * 2 * kSecond);
  EXPECT_DOUBLE_EQ(meter.now().ends_per_s, 0.5);
  EXPECT_DOUBLE_EQ(meter.now().QueueSeconds(), 8.0);
}

TEST(LoadMeter, EndsWhilePlacesAreFreeSayNothing) {
  LoadMeter meter(8);
  meter.Submitted(10, 3);
  for (int64_t i = 1; i <= 3; ++i) meter.Ended(1, i * kSecond);
  EXPECT_EQ(meter.now().ends_per_s, 0.0);
}

}  // namespace
}  // namespace vivace::server
