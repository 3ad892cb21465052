// Whether a run counts, in sentences. Every report begins with these. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "load/run_result.h"

namespace vivace::load {

inline constexpr double kMostFailures = 0.01;  // of the requests that ended
inline constexpr double kLagOfTtft = 0.01;     // so late may a client send, as a share of the TTFT

// Why the figures are not to be used: too many failures, a client that was the bottleneck, nothing
// completed. Empty: the run is valid.
std::vector<std::string> InvalidBecause(const RunResult& run);

// Of the prompts' tokens, those that the server found in its prefix cache, as far as it tells.
double CachedShare(const Figures& figures);

// Why a p99 of so many completed requests says little; empty: it is of enough, or there is none.
std::string FewForP99(int64_t completed);

// What to know of a valid run: ended early, wrong output lengths, tokens counted by chunks, several
// tokens a chunk, few requests for a p99, prompts that the server's prefix cache knew from before.
std::vector<std::string> Warnings(const RunResult& run);

}  // namespace vivace::load
