// A model of a few lines whose output shows every mistake of the block tables.
//
// Each position of the KV cache holds one cell, a hash of the token there, its position and the
// cell before it; the next token is a hash of all cells of the sequence, read back through its
// block table, so a wrong, stale or shared block changes the output. OutputAlone says what a
// sequence must produce, computed without blocks, batches or a scheduler.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "sched/scheduler.h"
#include "sched/step_plan.h"

namespace vivace::sim {

inline constexpr int32_t kVocab = 13;  // small: stop ids turn up, prompts coincide

// One choice, as a workload makes it; NewSequence plus what the fake model goes by.
struct SequenceSpec {
  SeqKey key = 0;
  uint64_t group = 0;
  int32_t choice = 0;
  int32_t priority = 0;
  std::vector<TokenId> prompt;
  int32_t max_tokens = 0;
  int32_t min_tokens = 0;
  std::vector<TokenId> stop_ids;
  std::string salt;
  bool prompt_logprobs = false;
  uint64_t seed = 0;
  int32_t error_at = -1;  // the output whose logits are not finite
};

struct ExpectedOutput {
  std::vector<TokenId> tokens;
  SeqFinish finish = SeqFinish::kNone;
  std::vector<float> prompt_rows;  // [prompt - 1], of the prompt's tokens from the second on
};

ExpectedOutput OutputAlone(const SequenceSpec& spec, int32_t max_model_len);

// Executes plans on a fake KV cache.
class FakeModel {
 public:
  FakeModel(int32_t num_blocks, int32_t block_size, int32_t num_slots);

  // `spec` must live until the slot is released. Binding a bound slot is reported by error().
  void BindSlot(SeqSlot slot, const SequenceSpec* spec);
  void ReleaseSlot(SeqSlot slot);
  void Run(const StepPlan& plan, StepResult* result);

  // Whether `block` holds the KV of the last block of `tokens`, computed after the others under
  // `salt`.
  bool Holds(BlockId block, std::span<const TokenId> tokens, const std::string& salt) const;

  const SequenceSpec* bound(SeqSlot slot) const { return slots_[slot.value]; }
  const std::string& error() const { return error_; }

 private:
  struct Contents {
    std::string salt;
    std::vector<TokenId> tokens;  // all tokens up to the last one written into the block
  };

  uint64_t& Cell(const StepPlan& plan, const PlanItem& item, int32_t position);
  void Write(const StepPlan& plan, const PlanItem& item);
  void Read(const StepPlan& plan, int32_t item_index, StepResult* result);

  int32_t block_size_;
  std::vector<uint64_t> cells_;             // [num_blocks, block_size]
  std::vector<Contents> contents_;          // [num_blocks]
  std::vector<const SequenceSpec*> slots_;  // [num_slots]
  std::string error_;
};

}  // namespace vivace::sim
