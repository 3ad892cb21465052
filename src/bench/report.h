// What was measured, for people and for programs.
#pragma once

#include <string>

#include "bench/machine_limits.h"
#include "bench/steps.h"

namespace vivace::bench {

std::string Text(const MachineLimits& limits);
std::string Text(const StepReport& report);  // without the limits

// One JSON object, without a newline at its end.
std::string Json(const MachineLimits& limits);
std::string Json(const StepReport& report);  // the limits are its "limits"

}  // namespace vivace::bench
