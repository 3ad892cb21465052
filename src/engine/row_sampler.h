// From a step's hidden rows to its result: which rows need logits and which only the best token,
// what is drawn from them, and the log-probabilities that were asked for. Owns the sampling state
// of every slot.
//
// Per step: Begin; TakeBest, if there are greedy_rows; NextRows / Take until NextRows is empty;
// Finish. Bind allocates; the rest does not. Rows are sampled in parallel on the pool, each from
// its constraint's mask to the constraint's Accept by one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "engine/executor.h"
#include "kernels/vocab_ops.h"
#include "sample/sampler.h"
#include "sched/step_plan.h"

namespace vivace {

// One row that needs logits.
struct LogitRow {
  int32_t row = 0;            // of those whose logits are needed (PlanItem::first_logit_row)
  int32_t item = 0;           // index into StepPlan::items
  int32_t sampled = -1;       // index into StepResult::sampled, or -1
  int32_t logprob_row = -1;   // index into StepResult::logprob_rows, or -1
  TokenId prompt_token = -1;  // the prompt token that follows, whose log-probability is wanted
  int32_t num_top = 0;        // alternatives wanted
};

class RowSampler {
 public:
  // What it takes beside the state of bound slots: scratch, lists, and the results in turn.
  static size_t Bytes(const ExecutorLimits& limits, int threads);

  RowSampler(const ExecutorLimits& limits, int32_t rows_at_once, const kernels::VocabOps& ops,
             ThreadPool* pool, std::vector<TokenId> eos_ids);

  void Bind(SeqSlot slot, const SlotBinding& binding);
  void Release(SeqSlot slot) { At(slot).constraint = nullptr; }

  // Lists the plan's rows and lays out the result. `plan` must live until Finish.
  void Begin(const StepPlan& plan);
  // Rows (as LogitRow has them) of which only the best token is wanted, and where it goes, -1 for a
  // row that is not finite. All at once: no logits are stored.
  std::span<const int32_t> greedy_rows() const { return greedy_rows_; }
  TokenId* best() { return best_.data(); }
  void TakeBest();

  // The next rows to compute logits for, at most rows_at_once; empty when all were taken.
  std::span<const LogitRow> NextRows();
  // Their numbers, as the lm_head op wants them.
  std::span<const int32_t> row_indices() const { return indices_; }
  // `logits` [rows of NextRows, stride]; edited and restored.
  void Take(float* logits, int64_t stride);
  // Swaps the result out; the caller's vectors are reused for the next step.
  void Finish(StepResult* result);

 private:
  struct Slot {
    SamplerState state;
    TokenConstraint* constraint = nullptr;
  };

  Slot& At(SeqSlot slot) { return slots_[static_cast<size_t>(slot.value)]; }
  void Reserve(StepResult* result) const;  // for the largest step
  void ListItem(int32_t index, const PlanItem& item);
  void AddLogprobRow(LogitRow* row, int32_t wanted);
  void TakeRow(const LogitRow& row, std::span<float> logits, SampleScratch* scratch);
  void Draw(const PlanItem& item, std::span<float> logits, SampleScratch* scratch,
            SampledToken* sampled);

  const ExecutorLimits limits_;
  const int32_t rows_at_once_;
  const kernels::VocabOps& ops_;
  ThreadPool* const pool_;
  const std::vector<TokenId> eos_ids_;
  std::vector<Slot> slots_;
  std::vector<SampleScratch> scratch_;  // per worker
  const StepPlan* plan_ = nullptr;
  std::vector<int32_t> greedy_rows_;
  std::vector<int32_t> greedy_sampled_;  // index into StepResult::sampled of each
  std::vector<TokenId> best_;
  std::vector<LogitRow> rows_;  // of the step
  int32_t logit_rows_ = 0;      // rows of the items listed so far
  size_t taken_ = 0;            // rows of earlier batches
  std::span<const LogitRow> batch_;
  std::vector<int32_t> indices_;  // of batch_
  StepResult result_;
};

}  // namespace vivace
