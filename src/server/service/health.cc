#include "server/service/health.h"

namespace vivace::server {

Status CheckEngine(const EngineStats& stats, int64_t now_ns) {
  if (stats.step_started_ns == 0) return {};
  const int64_t seconds = (now_ns - stats.step_started_ns) / 1'000'000'000;
  if (seconds <= kHungStepSeconds) return {};
  return Fail(ErrorCode::kUnavailable, "engine_unavailable", "",
              "the engine has been computing one step for {} seconds", seconds);
}

}  // namespace vivace::server
