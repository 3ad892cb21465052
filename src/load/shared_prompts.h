// How much of a workload's prompts a server can know from the workload itself: what it finds in its
// prefix cache beyond that, it was asked before the run. Pure; sorts the prompts: O(n log n).
#pragma once

#include "load/workload.h"

namespace vivace::load {

// Of all tokens of all prompts, the share that stands at the start of another prompt of the
// workload as well, or in the turns before it. By the tokens where they are known, by bytes
// otherwise.
double SharedPrompts(const Workload& workload);

}  // namespace vivace::load
