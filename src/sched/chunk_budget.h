// How many tokens of prompts a step may compute, so that streams that decode beside them see no gap
// longer than the target. Counts time, as a StepCostModel predicts it; rows are the scheduler's.
//
// - With a decode in the step, prompts get what the target leaves of its time. A part of the target
//   stays free for publishing and sockets, and a margin that grows while steps filled up to the
//   limit exceed that part all the same, and shrinks while they do not.
// - Without one nobody waits for a token, but a request that arrives meanwhile waits for the whole
//   step: it may take a few times the target.
// - The first prompt in a step always gets kMinChunk tokens, so prompts advance however long the
//   decodes take by themselves.
// - Output that was not sampled (jump-forward) is computed in rows that cost what decodes cost.
// - A target of 0 puts no limit.
//
// Deterministic given the observed times. One thread; nothing allocates.
#pragma once

#include <cstdint>

#include "sched/step_cost_model.h"

namespace vivace {

class ChunkBudget {
 public:
  static constexpr int32_t kMinChunk = 16;      // tokens
  static constexpr int32_t kUntimedChunk = 64;  // beside decodes, before any step was timed
  static constexpr int32_t kQuietChunk = 256;   // without decodes a step is worth its fixed cost
  static constexpr int32_t kQuietTargets = 4;   // and may last this many targets

  explicit ChunkBudget(int64_t target_ns) : target_ns_(target_ns) {}

  // A new step, with these decodes in it and no prompt yet.
  void Begin(int32_t decodes, int64_t decode_context);

  // Whether another prompt, at `position`, may join the step; asked before it takes a slot.
  bool HasRoom(int32_t position) const;

  // Adds a prompt's next tokens to the step; how many of those wanted it may have. 0: the step is
  // full, which it is not if HasRoom.
  struct Request {
    int32_t position = 0;     // of the first
    int32_t wanted = 0;       // rows are left for these
    bool ends = false;        // with all of them the prompt is complete
    bool all_logits = false;  // else of its last token only
  };
  int32_t Take(const Request& request);

  // Adds output tokens from `position` on that were not sampled, beside one that Begin counts as
  // its sequence's decode; how many of those wanted have time. Asked before any prompt's.
  int32_t TakeAppended(int32_t position, int32_t wanted);

  // The step took this long; 0: nobody measured.
  void Observe(int64_t elapsed_ns);

  // Of the step begun last; 0: unknown.
  int64_t predicted_ns() const { return static_cast<int64_t>(model_.Predict(shape_)); }
  bool mixed() const { return shape_.decodes > 0 && shape_.prompt_rows > 0; }

 private:
  bool governed() const { return target_ns_ > 0; }
  double LimitNs() const;
  void AdjustMargin(int64_t elapsed_ns);
  bool Fits(const Request& request, int32_t count) const;
  int32_t LargestThatFits(const Request& request) const;
  int32_t Least() const;

  const int64_t target_ns_;
  StepCostModel model_;
  StepShape shape_;    // of the step being planned or in flight
  double margin_ = 0;  // what steps with decodes may have to take longer, as a share
};

}  // namespace vivace
