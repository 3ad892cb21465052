// Which requests of a workload follow each other: each chain has an arrival of its own, each
// request of it is sent after the answer to the one before. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "load/workload.h"

namespace vivace::load {

// The requests of a conversation in order, or one that stands alone.
struct Chain {
  std::vector<size_t> requests;  // indices in the workload
  double at_s = -1;              // of the first, in a trace
};
// In the order of the workload; a trace in the order of its times.
std::vector<Chain> ChainsOf(const Workload& workload);

// Whether chains, in their order, have times of their own: a trace.
bool HaveOwnTimes(const std::vector<Chain>& chains);

}  // namespace vivace::load
