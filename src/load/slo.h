// Promises on a command line, and whether a run kept them.
//   --goodput ttft:200 tpot:50         of each request, at most so many milliseconds (vLLM's form)
//   --slo p99:ttft:500 mean:itl:50     of a run: a statistic of a figure; without one it is p99
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "load/figures.h"
#include "load/workload.h"

namespace vivace::load {

// Words separated by commas or spaces. `flag` is named in the error.
Result<std::vector<Promise>> ParsePromises(std::string_view text, const std::string& flag);

struct Slo {
  std::string statistic = "p99";  // mean, p50 (median), p90, p95, p99, max
  Promise promise;
};
Result<std::vector<Slo>> ParseSlos(std::string_view text, const std::string& flag);

// "p99 ttft <= 500 ms"
std::string Name(const Slo& slo);
// The figure that the promise is about, in milliseconds; -1: the run has none.
double ValueOf(const Slo& slo, const Figures& figures);
// A promise about a figure that no request has is not kept.
bool Keeps(const Slo& slo, const Figures& figures);
// Refuses promises about figures that no request of the workload can have: answers of one token
// have no time between tokens.
Status CheckSlos(const std::vector<Slo>& slos, const Workload& workload, const std::string& flag);

}  // namespace vivace::load
