// What a setting would give: the real scheduler on the real traffic, with a clock that moves by
// what a StepTimeModel says each step takes. No tensors, no threads.
//
// The answer is what a measured run leaves (records, the engine's use), so both are judged by the
// same arithmetic. Deterministic. Cost: some 20 us a step; thousands of times faster than the
// steps.
#pragma once

#include <functional>

#include "base/result.h"
#include "bench/offline.h"
#include "sched/scheduler.h"
#include "sched/step_plan.h"
#include "tune/traffic.h"

namespace vivace::tune {

struct ForecastOptions {
  SchedulerConfig scheduler;
  std::function<double(const StepPlan&)> step_seconds;  // such as a StepTimeModel's
  double noise = 0.02;      // steps take this share more or less, evenly; 0: exactly as fitted
  double most_seconds = 0;  // of the forecast time; what has not ended is left out; 0: all
  std::function<bool()> over = {};  // asked now and then; true ends it with "forecast_stopped"
};

// Fails where a request of the traffic can never fit the cache.
Result<bench::OfflineRun> Forecast(const ForecastOptions& options, const Traffic& traffic);

}  // namespace vivace::tune
