// One step through the model: rows of tokens in, hidden rows out, K and V into the paged cache;
// logits of chosen rows on demand. All memory is taken at construction.
// Thread: the engine thread, which is worker 0 of the pool.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "engine/arena.h"
#include "engine/memory_plan.h"
#include "engine/prefault.h"
#include "engine/prefix_groups.h"
#include "engine/rope_table.h"
#include "engine/weights.h"
#include "sched/step_plan.h"

namespace vivace {

class Forward {
 public:
  // Bytes of `memory`.
  static size_t ArenaBytes(const MemoryPlan& plan);

  Forward(const MemoryPlan& plan, const model::ModelSpec& spec, const kernels::BlockOps& ops,
          Weights weights, Arena memory, ThreadPool* pool);

  // Lays out the rows of a step: what Run computes. `plan` stays unchanged until then.
  void Prepare(const StepPlan& plan);
  // Computes the hidden rows of the step prepared last; they stay until the next Run.
  void Run(const StepPlan& plan);

  // Logits of rows of the last Run, at most plan.logit_rows of them: [rows.size(), logits_stride].
  // Valid until the next call.
  float* Logits(std::span<const int32_t> rows);
  // The best token of rows of the last Run, any number of them; -1 for a row that is not finite.
  void Argmax(std::span<const int32_t> rows, TokenId* best);
  int64_t logits_stride() const { return logits_stride_; }

 private:
  // What a layer needs beside its weights.
  struct LayerPlan {
    int32_t heads;
    float scale;
    int32_t window;
    size_t rope;  // index into ropes_
    kernels::Activation activation;
    kernels::KvCacheView kv;
  };

  void RunLayer(const LayerPlan& layer, const LayerWeights& weights);
  size_t RopeOf(const model::RopeSpec& rope, const MemoryPlan& plan);

  const kernels::BlockOps& ops_;
  const Weights weights_;
  Arena memory_;
  ThreadPool* const pool_;
  const int32_t hidden_;
  const float norm_eps_;
  const float embedding_scale_;
  const int64_t logits_stride_;
  const int32_t block_size_;
  std::vector<LayerPlan> layers_;
  std::vector<RopeTable> ropes_;  // one for each distinct kind

  float *x_, *q_, *attended_, *ffn_, *logits_;
  kernels::Workspace workspace_;

  // The step at hand.
  kernels::StepRows rows_;
  std::vector<kernels::SequenceRows> sequences_;
  std::vector<int32_t> positions_;
  PrefixGroups prefix_groups_;
  Prefault prefault_;
};

}  // namespace vivace
