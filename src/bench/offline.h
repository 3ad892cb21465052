// A workload on a real engine in this process: what vLLM calls offline. Scheduler, cache, sampling
// and all; no HTTP, no text of answers.
//
// Requests are sent as a server's clients would: a number of conversations at a time (closed loop),
// by an absolute schedule (open loop), or all at once. What happened to each becomes a
// load::RequestRecord, stamped on the engine thread when tokens are published, so that no waking of
// another thread is in the figures.
//
// Threads: Load and Run are for one thread, which submits; the engine's thread stamps. An engine
// runs any number of workloads, one after another.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/machine_limits.h"
#include "bench/step_recorder.h"
#include "engine/config.h"
#include "engine/engine.h"
#include "engine/load_plan.h"
#include "engine/load_progress.h"
#include "engine/model_text.h"
#include "load/record.h"
#include "load/workload.h"
#include "model/loaded_model.h"

namespace vivace::bench {

struct OfflineOptions {
  int32_t max_concurrency = 0;  // conversations at a time; 0: any number
  std::vector<double> arrivals =
      {};  // of each conversation, seconds; empty: the trace's, or at once
  int32_t num_choices = 1;
  float temperature = 1;
  bool ignore_eos = true;
  uint64_t seed = 0;        // of sampling
  double most_seconds = 0;  // what has not ended by then is ended; 0: no bound
  const std::atomic<bool>* stop = nullptr;
  std::function<void(size_t done, size_t total)> progress = {};
};

// What the engine did with it.
struct EngineUse {
  int64_t steps = 0;
  double mean_step_ms = 0, p99_step_ms = 0;
  double mean_batch = 0;  // answers in a step that had any, by time
  int32_t peak_batch = 0;
  double mean_step_tokens = 0;
  int32_t peak_step_tokens = 0;
  double mean_waiting = 0;  // requests in the queue, over time
  int64_t preemptions = 0;
  double prefix_hit_rate = 0;                 // of prompt tokens
  double busy_share = 0;                      // of the time, in steps
  double kernel_share = 0, sample_share = 0;  // of the steps' time; the rest is overhead
};

struct OfflineRun {
  std::vector<load::RequestRecord> records;
  double elapsed_s = 0;
  EngineUse use;
  bool partial = false;  // ended by `stop` or by `most_seconds`
};

struct SchedulerCounts {
  int64_t preemptions = 0, prefix_queries = 0, prefix_hits = 0;
};

// From what a run left, or a forecast of one: `elapsed_s` is its whole duration.
EngineUse UseOf(const std::vector<load::RequestRecord>& records, double elapsed_s,
                const std::vector<RecordedStep>& steps, const SchedulerCounts& counts);

class OfflineEngine {
 public:
  // A model's file and text are opened once and serve any number of engines. `with_cost`: steps
  // know their bytes and multiply-adds, for limits. Raises the bounds of the queue to any length:
  // nobody is refused for being early.
  static Result<std::unique_ptr<OfflineEngine>> Load(EngineConfig config,
                                                     const model::ModelFile& file,
                                                     const ModelText& text, bool with_cost,
                                                     const LoadProgress& progress = {});
  ~OfflineEngine();
  OfflineEngine(const OfflineEngine&) = delete;
  OfflineEngine& operator=(const OfflineEngine&) = delete;

  // Fails where a prompt cannot be made or can never fit; the error names the request.
  Result<OfflineRun> Run(const load::Workload& workload, const OfflineOptions& options);

  // Between runs.
  void ResetPrefixCache() { engine_->ResetPrefixCache(); }

  const Engine& engine() const { return *engine_; }
  const LoadPlan& plan() const { return plan_; }
  // Of the last Run.
  const std::vector<RecordedStep>& steps() const { return recorder_->steps(); }

  // The least time those steps could take on a machine with these limits.
  double LeastSeconds(const MachineLimits& limits) const;

 private:
  OfflineEngine(LoadPlan plan, ModelText text);

  const LoadPlan plan_;
  const ModelText text_;
  StepRecorder* recorder_ = nullptr;  // the engine's
  std::function<void()> on_news_;     // of the run under way; engine thread
  std::atomic<bool> in_news_{false};
  std::unique_ptr<Engine> engine_;
};

}  // namespace vivace::bench
