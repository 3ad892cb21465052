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

// One place: four short prompts have waited for long answers, 1 of 4 tokens a second; now a long
// prompt waits. It takes as long as to compute it, and the answer before it about a second.
TEST(Forecast, WaitingForPlacesIsNotWaitingForPrompts) {
  EngineStats stats = Queued(2'500, 1'000);
  stats.queued_requests = 1;
  stats.queue_tokens_per_s = 4;
  stats.queue_requests_per_s = 1;
  EXPECT_DOUBLE_EQ(QueueSeconds(stats), 2.5);
  stats = Queued(40, 1'000);  // ten short ones: 4 of them a second
  stats.queued_requests = 10;
  stats.queue_tokens_per_s = 16;
  stats.queue_requests_per_s = 4;
  EXPECT_DOUBLE_EQ(QueueSeconds(stats), 2.5);
  stats.queue_requests_per_s = 0.1;  // long ones before them
  EXPECT_DOUBLE_EQ(QueueSeconds(stats), 2.5);
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
