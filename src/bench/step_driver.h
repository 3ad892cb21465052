// Sequences without a scheduler: each has blocks of its own in the executor's cache, and a step
// computes the next tokens of some of them.
// Thread: the engine thread. Reuses its plan; blocks and slots are fixed at construction.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "engine/executor.h"

namespace vivace::bench {

class StepDriver {
 public:
  // `sequences` of up to `max_tokens` each; the executor must hold them all.
  StepDriver(Executor* executor, int32_t sequences, int32_t max_tokens);

  // Writes once into every block, so that its memory is there, as after serving for a while.
  void TouchCache();

  // Binds the slots of the first `sequences` to a context of that many tokens.
  void Bind(int32_t sequences, int32_t context);

  // One chunk of a prompt of sequence 0, [first, first + count); draws a token if `last`.
  void Chunk(int32_t first, int32_t count, bool last);
  // One token of each of the first `sequences`, at `position`.
  void Decode(int32_t sequences, int32_t position);
  // Chunks [first, first + count) of the prompts of the first `prompts` sequences, which draw
  // nothing, beside one token of each of the `decodes` sequences after them, at `position`.
  void Mix(int32_t decodes, int32_t position, int32_t prompts, int32_t first, int32_t count);

  const StepTimes& times() const { return times_; }
  int64_t wall_ns() const { return wall_ns_; }  // of the last step, Launch and Await

 private:
  void AddItem(int32_t sequence, int32_t first_position, int32_t count, bool sample);
  void RunStep();

  Executor& executor_;
  const int32_t groups_;               // of the cache; windows are not made use of
  const int32_t blocks_per_sequence_;  // of each
  StepPlan plan_;
  StepResult result_;
  StepTimes times_;
  int64_t wall_ns_ = 0;
  uint64_t drawn_ = 0;  // random tokens so far
};

}  // namespace vivace::bench
