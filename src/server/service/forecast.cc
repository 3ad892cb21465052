#include "server/service/forecast.h"

#include <algorithm>
#include <cmath>

namespace vivace::server {

namespace {

double SecondsFor(int64_t amount, double per_second) {
  return amount > 0 && per_second > 0 ? static_cast<double>(amount) / per_second : 0;
}

}  // namespace

double LeastQueueSeconds(const EngineStats& stats) {
  return SecondsFor(stats.queued_tokens, stats.prompt_tokens_per_s);
}

double QueueSeconds(const EngineStats& stats) {
  const double by_tokens = SecondsFor(stats.queued_tokens, stats.queue_tokens_per_s);
  const double by_requests = SecondsFor(stats.queued_requests, stats.queue_requests_per_s);
  return std::max(LeastQueueSeconds(stats), std::min(by_tokens, by_requests));
}

int RetryAfterSeconds(double wait_seconds) {
  // Written so that NaN is the least.
  if (!(wait_seconds > kMinRetryAfterSeconds)) return kMinRetryAfterSeconds;
  if (wait_seconds >= kMaxRetryAfterSeconds) return kMaxRetryAfterSeconds;
  return static_cast<int>(std::ceil(wait_seconds));
}

}  // namespace vivace::server
