// Times of steps of many shapes on the real Executor (decodes, prompts, both), for whoever fits a
// model of what a step costs. Takes the memory an engine of this configuration takes.
// Thread: one; it becomes the engine thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/config.h"
#include "model/loaded_model.h"
#include "sched/step_cost_model.h"

namespace vivace::bench {

struct StepSample {
  StepShape shape;
  double seconds = 0;
};

struct SampleOptions {
  EngineConfig engine;         // model, threads, isa, kv_cache_dtype; sizes are set from these:
  int32_t input_len = 512;     // tokens of a typical prompt
  int32_t output_len = 128;    // and answer
  int32_t sequences = 64;      // decoded at once, at most; fewer where the cache has no room
  int32_t step_tokens = 2048;  // of prompts in one step, at most
  double most_seconds = 8;     // cheap shapes come first; at least one of each kind is measured
  const std::atomic<bool>* stop = nullptr;
  int64_t deadline_ns = 0;  // SteadyNanos by which all is over, loading too; 0: none
};

// One of these for each time a shape was measured; few or none where `stop` or the deadline came
// first. A step that would end behind the deadline, going by the last one, is not begun.
Result<std::vector<StepSample>> SampleSteps(const SampleOptions& options,
                                            const model::ModelFile& file);

}  // namespace vivace::bench
