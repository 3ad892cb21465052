// Streams on a machine of random speed, and long prompts that arrive while they run: what gaps the
// streams see, and how long the prompts take.
#pragma once

#include <cstdint>
#include <string>

namespace vivace::sim {

struct LatencyReport {
  std::string description;  // of the machine and the load, for a failure's message
  double target_ms = 0;
  double decodes_alone_ms = 0;  // the slowest step of only the streams
  double least_mixed_ms = 0;    // the slowest step with no more of a prompt than it must have
  int64_t gaps = 0;             // between the streams' tokens while a prompt was being computed
  int64_t long_gaps = 0;        // of these, longer than the target
  // (Time to first token - the decodes' own time) / time alone, without the machine's noise.
  double worst_prompt_ratio = 0;
  int64_t unfinished_prompts = 0;
  uint64_t digest = 0;  // of all plans
};

LatencyReport SimulateLatency(uint64_t seed);

}  // namespace vivace::sim
