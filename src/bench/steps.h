// Times of steps on the real Executor: plans made by hand with random tokens over a real KV cache.
// What a prompt of n tokens takes, and a decoding step of B sequences at a context, without
// scheduler, text or sockets; each with the least time the machine could need.
//
// Takes the memory an engine of this configuration takes. Thread: one; it becomes the engine
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/machine_limits.h"
#include "bench/roofline.h"
#include "engine/config.h"

namespace vivace::bench {

// Either a prompt alone, or a decoding step of `batch` sequences at `context`.
struct StepCase {
  int32_t prompt = 0;   // tokens of the prompt, cut into chunks of max_num_batched_tokens
  int32_t batch = 0;    // sequences, one token each
  int32_t context = 0;  // tokens each has in the cache
  bool is_prompt() const { return prompt > 0; }
};
std::string Name(const StepCase& step);  // "prompt 512", "decode 8 at 128"

struct StepOptions {
  EngineConfig
      engine;  // model, threads, isa, max_num_batched_tokens, kv_cache_dtype; sizes are set
  std::vector<int32_t> prompts = {32, 128, 512, 2048};
  std::vector<int32_t> batches = {1, 2, 4, 8, 16, 32, 64};
  std::vector<int32_t> contexts = {128, 1024, 4096};
  int32_t rounds = 5;
  const MachineLimits* limits = nullptr;  // measured in this run already; null: measure them
};

struct StepFigures {
  StepCase step;
  double seconds = 0;  // median: of the whole prompt, of one decoding step
  double fastest = 0, slowest = 0;
  double tokens_per_second = 0;
  double kernel_share = 0, sample_share = 0;  // of the time; what is left is the step's overhead
  StepLimit limit;
  double fraction_of_limit = 0;
};

struct StepReport {
  std::string model, isa, kv_dtype;
  int threads = 0;
  size_t weight_bytes = 0;  // packed
  MachineLimits limits;
  std::vector<StepFigures> figures;
  std::vector<std::string> left_out;  // cases that do not fit, and why
};

// `progress(done, total)` counts cases; may be empty. A fraction of the limit above kMostFraction
// is measured against limits taken once more, and does not fail here: see CheckFractions.
Result<StepReport> RunStepBench(const StepOptions& options,
                                const std::function<void(int, int)>& progress);

// An error that names the first case above kMostFraction.
Status CheckFractions(const StepReport& report);

}  // namespace vivace::bench
