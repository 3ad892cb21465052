// A model of a few lines whose output shows every mistake of the block tables.
//
// Each position of the KV cache holds one cell in each group, a hash of the group, the token there,
// its position and the cell before it; the next token is a hash of the cells that its group's
// window lets it see, read back through the block tables, so a wrong, stale or shared block, or one
// given back too early, changes the output. OutputAlone says what a sequence must produce, computed
// without blocks, batches or a scheduler. Beside the cells the model notes what text each block was
// written for, and compares that wherever a kernel may read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "kv/kv_cache_manager.h"
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
  int32_t error_at = -1;     // the output whose logits are not finite
  int32_t forced_every = 0;  // behind outputs of such a multiple, tokens are put without sampling
  int32_t num_forced = 0;    // so many

  // Prompt log-probabilities are of what the prompt's chunks compute, so nothing joins them.
  int32_t MostForced(int32_t outputs, int32_t max_tokens) const;
};

// What is put behind an output of so many tokens; `most` as the spec says.
std::vector<TokenId> ForcedBehind(const SequenceSpec& spec, int32_t outputs, int32_t most);

struct ExpectedOutput {
  std::vector<TokenId> tokens;
  SeqFinish finish = SeqFinish::kNone;
  std::vector<float> prompt_rows;  // [prompt - 1], of the prompt's tokens from the second on
};

ExpectedOutput OutputAlone(const SequenceSpec& spec, int32_t max_model_len,
                           const KvWindows& windows);

// Executes plans on a fake KV cache.
class FakeModel {
 public:
  FakeModel(const KvCacheConfig& config, int32_t num_slots);

  // `spec` must live until the slot is released; `tokens` are those it has so far. Binding a bound
  // slot is reported by error().
  void BindSlot(SeqSlot slot, const SequenceSpec* spec, std::span<const TokenId> tokens);
  void ReleaseSlot(SeqSlot slot);
  void Run(const StepPlan& plan, StepResult* result);

  // Whether `block` holds the group's KV of the last block of `tokens`, computed after the others
  // under `salt`.
  bool Holds(BlockId block, int32_t group, std::span<const TokenId> tokens,
             const std::string& salt) const;

  const SequenceSpec* bound(SeqSlot slot) const { return slots_[slot.value].spec; }
  const std::string& error() const { return error_; }

 private:
  struct Slot {
    const SequenceSpec* spec = nullptr;
    std::vector<uint64_t> texts;  // [i]: hash of the salt and the first i tokens
  };
  struct Contents {
    int32_t group = -1;
    uint64_t text = 0;  // up to and with the last token written into the block
  };

  BlockId Block(const StepPlan& plan, const PlanItem& item, int32_t group, int32_t position) const {
    return plan.block_ids[item.first_block + group * item.num_blocks + position / block_size_];
  }
  uint64_t& Cell(const StepPlan& plan, const PlanItem& item, int32_t group, int32_t position);
  void CheckReads(const StepPlan& plan, const PlanItem& item);
  void Write(const StepPlan& plan, const PlanItem& item);
  void Read(const StepPlan& plan, int32_t item_index, StepResult* result);

  const KvWindows windows_;
  const int32_t block_size_;
  std::vector<uint64_t> cells_;     // [num_blocks, block_size]
  std::vector<Contents> contents_;  // [num_blocks]
  std::vector<Slot> slots_;         // [num_slots]
  std::string error_;
};

}  // namespace vivace::sim
