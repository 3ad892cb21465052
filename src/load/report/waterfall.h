// One bar per request over time: waiting to be sent, waiting for the first token, streaming, with
// its stalls. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "load/run_result.h"

namespace vivace::load {

inline constexpr double kStallFactor = 3;  // a gap of so many median gaps is a stall

// At most `most` requests, evenly chosen from the run; empty without records.
std::string SvgWaterfall(const RunResult& run, size_t most);

}  // namespace vivace::load
