// The plots of a report, each as SVG; empty where the runs have nothing for them. Pure.
#pragma once

#include <string>
#include <vector>

#include "load/run_result.h"

namespace vivace::load {

inline constexpr size_t kMostCurves = 8;  // in one plot; of more runs, as many evenly chosen

// Of several load points.
std::string TtftAgainstThroughput(const std::vector<RunResult>& runs);
std::string TpotAgainstThroughput(const std::vector<RunResult>& runs);
std::string ParetoPlot(const std::vector<RunResult>& runs);
std::string GoodputPlot(const std::vector<RunResult>& runs);

// Cumulative distributions: TTFT, TPOT, ITL, E2EL. Of one run with its percentiles marked.
std::vector<std::string> DistributionPlots(const std::vector<RunResult>& runs);

// What the server said of itself over time: requests, KV cache use, preemptions and cache hits.
std::vector<std::string> ServerPlots(const RunResult& run);

// The runs that no other run beats in both tokens/s per user and tokens/s of the machine, by rising
// tokens/s per user.
std::vector<size_t> ParetoFront(const std::vector<RunResult>& runs);

}  // namespace vivace::load
