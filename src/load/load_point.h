// The load of a run as reports tell it, and what it is called where nobody named it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "load/arrivals.h"

namespace vivace::load {

struct LoadPoint {
  int32_t max_concurrency = 0;  // 0: unlimited
  double request_rate = 0;      // a second; 0: none, there may be a ramp
  double burstiness = 1;
  ArrivalOptions::Ramp ramp = ArrivalOptions::Ramp::kNone;
  double ramp_from = 0, ramp_to = 0;
  bool own_times = false;  // of the dataset: each request at its own (a trace)
};

// "linear"; empty for none.
std::string_view Name(ArrivalOptions::Ramp ramp);
ArrivalOptions::Ramp RampNamed(std::string_view name);

// When requests were due: "4/s", "1 to 20/s linear", "each at its own time"; empty: at once, or as
// places became free.
std::string RateText(const LoadPoint& load);

// "rate 4/s, c=8", "rate 1 to 20/s linear", "trace, c=8", "c=8", "all at once".
std::string LabelOf(const LoadPoint& load);

}  // namespace vivace::load
