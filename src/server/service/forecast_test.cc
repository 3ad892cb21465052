#include "server/service/forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

namespace vivace::server {
namespace {

EngineStats Queued(int64_t tokens, int64_t tokens_per_s) {
  EngineStats stats;
  stats.queued_tokens = tokens;
  stats.prompt_tokens_per_s = tokens_per_s;
  return stats;
}

TEST(Forecast, IsTheQueueOverItsSpeed) {
  EXPECT_DOUBLE_EQ(QueueSeconds(Queued(3'000, 1'000)), 3.0);
  EXPECT_DOUBLE_EQ(QueueSeconds(Queued(0, 1'000)), 0.0);
  EXPECT_DOUBLE_EQ(QueueSeconds(Queued(3'000, 0)), 0.0) << "nothing is known";
  EXPECT_EQ(RetryAfterSeconds(Queued(3'500, 1'000)), 4);
  EXPECT_EQ(RetryAfterSeconds(EngineStats{}), 1);
}

TEST(Forecast, RetryAfterIsWholeSecondsFromOneToSixty) {
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

}  // namespace
}  // namespace vivace::server
