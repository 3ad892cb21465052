// One step through the model: rows of tokens in, K and V into the paged cache, and hidden rows out
// of those whose logits are needed; logits of chosen ones on demand. All memory is taken at
// construction.
// Thread: the engine thread, which is worker 0 of the pool.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "engine/arena.h"
#include "engine/memory_plan.h"
#include "engine/prefault.h"
#include "engine/rope_table.h"
#include "engine/step_layout.h"
#include "engine/weights.h"
#include "sched/step_plan.h"

namespace vivace {

class Forward {
 public:
  // Bytes of `memory`.
  static size_t ArenaBytes(const MemoryPlan& plan);

  Forward(const MemoryPlan& plan, const model::ModelSpec& spec, const kernels::BlockOps& ops,
          Weights weights, Arena memory, ThreadPool* pool);

  // `slot` is a sequence's whose prompt has so many tokens; before its first step.
  void Bind(SeqSlot slot, int32_t prompt_len) {
    prompt_lens_[static_cast<size_t>(slot.value)] = prompt_len;
  }

  // Lays out the rows of a step: what Run computes. `plan` stays unchanged until then.
  void Prepare(const StepPlan& plan);
  // Computes the step prepared last, with hidden rows of what its items call their logit rows, one
  // after the other. They stay until the next Run.
  void Run(const StepPlan& plan);

  // Logits of the last Run's hidden rows with these numbers, at most plan.logit_rows of them:
  // [rows.size(), logits_stride]. Valid until the next call.
  float* Logits(std::span<const int32_t> rows);
  // The best token of hidden rows, any number of them; -1 for a row that is not finite.
  void Argmax(std::span<const int32_t> rows, TokenId* best);
  // One of the last Run's hidden rows after the final norm; at most once a row, which then has no
  // logits any more. Any worker.
  std::span<const float> NormedHidden(int32_t row);
  int64_t logits_stride() const { return logits_stride_; }

 private:
  // What a layer needs beside its weights.
  struct LayerPlan {
    int32_t heads;
    int64_t mixer_cols;  // floats of a row that the mixer leaves in q_ before the last rows go on
    float scale;
    float softcap;
    int32_t window;
    bool whole_norms;
    size_t rope;   // index into ropes_
    size_t group;  // of the cache
    kernels::ActivationSpec activation;
    bool parallel;
    kernels::KvCacheView kv;
    // Of a recurrent layer, but for what a step brings.
    kernels::RecurrentArgs recurrent;
  };

  LayerPlan PlanOf(const model::LayerSpec& layer, const LayerWeights& weights,
                   const MemoryPlan& plan);
  void PlaceInCache(const MemoryPlan& plan);
  void StartMixer(const LayerPlan& layer, const LayerWeights& weights);
  void FillCache(const LayerPlan& layer, const LayerWeights& weights);
  void FillLatents(const LayerPlan& layer, const LayerWeights& weights);
  void Recur(const LayerPlan& layer);
  void KeepLogitRows(int64_t mixer_cols);
  void FinishLayer(const LayerPlan& layer, const LayerWeights& weights,
                   const kernels::StepRows& step);
  const float* FinishMixer(const LayerPlan& layer, const LayerWeights& weights,
                           const kernels::StepRows& step);
  void Project(const float* y, const kernels::MatrixGroup& weight, const kernels::Norm& norm,
               int32_t rows);
  void StartMlp(const LayerPlan& layer, const LayerWeights& weights, int32_t rows);
  void FinishMlp(const LayerWeights& weights, int32_t rows);
  size_t RopeOf(const model::RopeSpec& rope, const MemoryPlan& plan);

  const kernels::BlockOps& ops_;
  const Weights weights_;
  Arena memory_;
  ThreadPool* const pool_;
  const int32_t hidden_;
  const float embedding_scale_;
  const float residual_scale_;
  const float logit_softcap_;
  const int32_t vocab_;
  const int64_t logits_stride_;
  const int32_t logit_rows_;
  std::vector<LayerPlan> layers_;
  std::vector<RopeTable> ropes_;      // one for each distinct kind
  std::vector<int32_t> prompt_lens_;  // [slot]
  std::vector<int32_t> row_prompts_;  // of the step's rows; only where ropes_ read it

  float *x_, *q_, *attended_, *ffn_, *experts_, *logits_;
  kernels::Workspace workspace_;

  StepLayout layout_;  // of the step at hand
  Prefault prefault_;
};

}  // namespace vivace
