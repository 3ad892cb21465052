#include "server/service/forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

namespace vivace::server {
namespace {

EngineStats Queued(int64_t tokens, double tokens_per_s) {
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

// Requests have waited for places, as many tokens or as many requests: the less of the two. What
// refuses counts only what the prompts take.
TEST(Forecast, WaitingForPlacesIsNotWaitingForPrompts) {
  EngineStats stats = Queued(2'500, 1'000);  // a long one after short ones
  stats.queued_requests = 1;
  stats.queue_tokens_per_s = 4;
  stats.queue_requests_per_s = 1;
  EXPECT_DOUBLE_EQ(QueueSeconds(stats), 2.5);
  stats = Queued(40, 1'000);  // ten short ones
  stats.queued_requests = 10;
  stats.queue_tokens_per_s = 16;
  stats.queue_requests_per_s = 2;
  EXPECT_DOUBLE_EQ(QueueSeconds(stats), 2.5);
  stats.queue_requests_per_s = 5;  // after long ones
  EXPECT_DOUBLE_EQ(QueueSeconds(stats), 2.0);
  EXPECT_DOUBLE_EQ(LeastQueueSeconds(stats), 0.04);
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
