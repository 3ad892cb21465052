#include "server/service/forecast.h"

#include <cmath>

namespace vivace::server {

double QueueSeconds(const EngineStats& stats) {
  if (stats.queued_tokens <= 0 || stats.prompt_tokens_per_s <= 0) return 0.0;
  return static_cast<double>(stats.queued_tokens) / static_cast<double>(stats.prompt_tokens_per_s);
}

int RetryAfterSeconds(double wait_seconds) {
  // Written so that NaN is the least.
  if (!(wait_seconds > kMinRetryAfterSeconds)) return kMinRetryAfterSeconds;
  if (wait_seconds >= kMaxRetryAfterSeconds) return kMaxRetryAfterSeconds;
  return static_cast<int>(std::ceil(wait_seconds));
}

}  // namespace vivace::server
