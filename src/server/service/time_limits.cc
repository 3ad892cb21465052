#include "server/service/time_limits.h"

#include <algorithm>

#include "base/clock.h"
#include "server/service/engine_failure.h"
#include "server/service/forecast.h"

namespace vivace::server {

Status CheckTimeLimits(const RequestParams& params, const EngineStats& stats, int64_t arrived_ns,
                       int64_t now_ns) {
  const double queue = LeastQueueSeconds(stats);
  const double expected_ms = static_cast<double>(now_ns - arrived_ns) * 1e-6 + queue * 1e3;
  if (params.deadline_ms && now_ns >= arrived_ns + *params.deadline_ms * kNanosPerMs) {
    return tl::unexpected<Error>(EngineFailure(FinishReason::kDeadline));
  }
  if (params.deadline_ms && expected_ms > static_cast<double>(*params.deadline_ms)) {
    return Fail(
        ErrorCode::kResourceExhausted, "deadline_exceeded", "deadline_ms",
        "the prompts that wait take {:.1f} s, longer than the deadline of {} ms; try again later",
        queue, *params.deadline_ms);
  }
  if (params.max_queue_ms && expected_ms > static_cast<double>(*params.max_queue_ms)) {
    return Fail(ErrorCode::kResourceExhausted, "queue_timeout", "max_queue_ms",
                "the prompts that wait take {:.1f} s, longer than max_queue_ms allows ({} ms); try "
                "again later",
                queue, *params.max_queue_ms);
  }
  return {};
}

void AddTimeLimits(const RequestParams& params, int64_t arrived_ns, int64_t now_ns, bool queued,
                   GenerationRequest* request) {
  if (params.deadline_ms) request->deadline_ns = arrived_ns + *params.deadline_ms * kNanosPerMs;
  if (params.max_queue_ms && queued) {
    const int64_t until = arrived_ns + *params.max_queue_ms * kNanosPerMs;
    request->max_queue_ns = std::max<int64_t>(until - now_ns, 1);
  }
}

}  // namespace vivace::server
