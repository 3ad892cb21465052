// The door between deciding and computing. An executor owns weights, KV memory, sampling state and
// scratch; it computes what a plan says and knows nothing of requests or policy.
// Thread: every call comes from the engine thread. Depth (launches before the first Await) is 1 on
// CPU, more on devices. A CPU executor computes in Launch itself: the engine thread would only
// wait.
#pragma once

#include <cstdint>
#include <span>

#include "kv/kv_groups.h"
#include "sample/sampling_params.h"
#include "sample/token_constraint.h"
#include "sched/step_plan.h"

namespace vivace {

struct ExecutorLimits {
  int32_t vocab = 0;
  int32_t hidden = 0;              // of a pooled vector; 0: it pools none
  int32_t max_sequences = 0;       // slots
  int32_t max_batched_tokens = 0;  // rows of a step
  int32_t max_model_len = 0;       // tokens of a sequence
  int32_t block_size = 0;
  int32_t num_blocks = 0;
  // Sequences have states beside the cache, which hold no earlier position: whoever goes on from a
  // cached prefix would have none.
  bool recurrent = false;
  // Above 0: what prompts of more tokens put into the cache is not what shorter ones would.
  int32_t long_prompt = 0;
  KvWindows kv_windows = {};  // of the cache's groups; a plan has block tables for each

  // Tokens that the cache can keep in every layer.
  int64_t kv_tokens() const { return int64_t{num_blocks} / kv_windows.size() * block_size; }
};

// Where a step's time went, by the engine thread's clock. What is in neither of the first two is
// the step's own overhead: laying out rows, RoPE tables, bookkeeping.
struct StepTimes {
  int64_t kernel_ns = 0;  // block ops, logits included
  int64_t sample_ns = 0;  // from logits to tokens
  int64_t total_ns = 0;   // all of Launch
};

// The sequence a slot is given to.
struct SlotBinding {
  const SamplingParams& params;
  int32_t choice = 0;               // part of the RNG's key
  std::span<const TokenId> tokens;  // the prompt, then the output before a preemption
  int32_t prompt_len = 0;
  // Has accepted that output. Used only in steps that sample a token for the slot, so it need not
  // outlive the sequence's last one. Null: none.
  TokenConstraint* constraint = nullptr;
};

class Executor {
 public:
  virtual ~Executor() = default;

  virtual const ExecutorLimits& limits() const = 0;

  // Gives `slot` to a sequence and sets its sampling state. May allocate; called between steps
  // only. Copies what it needs. Tokens that later plans bring beyond those bound and sampled became
  // output without being sampled (jump-forward).
  virtual void BindSlot(SeqSlot slot, const SlotBinding& binding) = 0;
  virtual void ReleaseSlot(SeqSlot slot) = 0;

  // Starts computing, or computes; `plan` must stay unchanged until Await returns. Never fails:
  // what can go wrong with one row (non-finite logits) is that row's SampleError.
  virtual void Launch(const StepPlan& plan) = 0;
  // Waits for the oldest launch and fills `result`.
  virtual void Await(StepResult* result) = 0;

  // Of the step Await handed over last; zeros where nobody measures.
  virtual StepTimes last_times() const { return {}; }
};

}  // namespace vivace
