// One random life of a scheduler, from a seed: requests arrive, are aborted before, between and
// during steps, fail, stop, run out of cache; after each stage everything is checked.
#pragma once

#include <cstdint>
#include <string>

namespace vivace::sim {

struct SimulationReport {
  std::string failure;  // empty: all held; else what did not, with the step
  int64_t steps = 0;
  int64_t sequences = 0;
  int64_t tokens = 0;  // sampled
  int64_t forced = 0;  // put down without sampling
  int64_t preemptions = 0;
  int64_t prefix_hits = 0;  // tokens
  int64_t aborts = 0;       // of live sequences
  uint64_t digest = 0;      // of all plans: equal for equal seeds
};

SimulationReport Simulate(uint64_t seed);

}  // namespace vivace::sim
