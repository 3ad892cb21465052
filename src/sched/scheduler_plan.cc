// Scheduler::Plan: what the next step computes.
#include <algorithm>

#include "base/check.h"
#include "sched/scheduler.h"

namespace vivace {
namespace {

constexpr int32_t kWatermarkDivisor = 100;  // starting a sequence leaves at least 1 % of the blocks

}  // namespace

void Scheduler::Plan(StepPlan* plan, PlanChanges* changes) {
  VIVACE_CHECK(!in_flight_);
  plan->Clear();
  changes->Clear();
  changes->released.assign(released_.begin(), released_.end());
  released_.clear();

  PlanOutputs(plan, changes);
  PlanRunningPrompts(plan);
  // What a preemption has just freed belongs to those it was done for.
  wait_cause_ = changes->preempted.empty() ? PlanWaiting(plan, changes) : WaitCause::kKvRoom;

  plan->step = ++step_;
  in_flight_ = !plan->empty();
}

int32_t Scheduler::BudgetLeft(const StepPlan& plan) const {
  return config_.max_num_batched_tokens - static_cast<int32_t>(plan.tokens.size());
}

// The share of a prompt that has its slot; 0: there is no room left in the step.
int32_t Scheduler::TakeChunk(const Sequence& sequence, const StepPlan& plan) {
  const int32_t wanted = std::min(sequence.remaining(), BudgetLeft(plan));
  return budget_.Take({.position = sequence.computed,
                       .wanted = wanted,
                       .ends = wanted == sequence.remaining(),
                       .all_logits = sequence.wants_prompt_rows});
}

// Those past their prompts have at least a token each in every step; there are never more of them
// than the budget: max_running_ sees to it.
void Scheduler::PlanOutputs(StepPlan* plan, PlanChanges* changes) {
  growing_.clear();
  for (size_t i = 0; i < running_.size();) {
    Sequence* sequence = running_[i];
    if (sequence->continues() && MakeRoom(i, changes)) growing_.push_back(sequence);
    // Unless it was preempted and the next one has moved up.
    if (i < running_.size() && running_[i] == sequence) ++i;
  }
  int64_t context = 0;
  for (Sequence* sequence : growing_) {
    context += sequence->computed + 1;
    if (sequence->remaining() > 1) continue;
    AddItem(sequence, 1, plan);
    ++plan->decode_tokens;
  }
  budget_.Begin(static_cast<int32_t>(growing_.size()), context);
  PlanAppended(plan);
}

// Half of what is left beside one token for each stays for prompts.
void Scheduler::PlanAppended(StepPlan* plan) {
  const auto tokens = static_cast<int32_t>(growing_.size());
  int32_t extra = (config_.max_num_batched_tokens - tokens) / 2;
  for (Sequence* sequence : growing_) {
    if (sequence->planned > 0) continue;
    const int32_t wanted = std::min(sequence->remaining() - 1, extra);
    const int32_t more = budget_.TakeAppended(sequence->computed + 1, wanted);
    extra -= more;
    AddItem(sequence, 1 + more, plan);
    plan->appended_tokens += 1 + more;
  }
}

// Room for what running_[i] feeds next, at the cost of those after it in order. False: it was
// preempted itself, or it sits this step out because nothing that could go would free a block.
bool Scheduler::MakeRoom(size_t running_index, PlanChanges* changes) {
  Sequence* sequence = running_[running_index];
  const int32_t chunk = std::min(sequence->remaining(), config_.max_num_batched_tokens);
  while (!kv_.TryGrow(&sequence->kv, sequence->length(), chunk)) {
    Sequence* victim = LastThatFrees(running_index);
    if (victim == nullptr) return false;
    Preempt(victim, changes);
    if (victim == sequence) return false;
  }
  return true;
}

// The first in order is never preempted. When it is short of a block, another one can always free
// one: it fits alone, so others hold blocks that it does not; of the sequences holding these, the
// last to start has computed a tail of its own that nobody else has matched. Of a window group each
// has a claim of its own.
Sequence* Scheduler::LastThatFrees(size_t running_index) const {
  const size_t first = std::max<size_t>(running_index, 1);
  for (size_t i = running_.size(); i > first; --i) {
    if (running_[i - 1]->kv.CountSoleBlocks() > 0) return running_[i - 1];
  }
  return nullptr;
}

void Scheduler::Preempt(Sequence* sequence, PlanChanges* changes) {
  changes->released.push_back(sequence->slot);
  changes->preempted.push_back(sequence->key);
  LeaveSlot(sequence);
  kv_.End(&sequence->kv);
  sequence->computed = 0;
  InsertOrdered(&waiting_, sequence);
  ++counters_.preemptions;
}

// Their blocks were all taken or claimed when they started, so nothing can fail.
void Scheduler::PlanRunningPrompts(StepPlan* plan) {
  for (Sequence* sequence : running_) {
    if (sequence->continues()) continue;
    const int32_t chunk = TakeChunk(*sequence, *plan);
    if (chunk == 0) return;
    AddItem(sequence, chunk, plan);
    plan->prefill_tokens += chunk;
  }
}

// Says why it ended before all had started.
WaitCause Scheduler::PlanWaiting(StepPlan* plan, PlanChanges* changes) {
  for (size_t i = 0; i < waiting_.size();) {
    if (free_slots_.empty()) return WaitCause::kSequences;
    if (BudgetLeft(*plan) == 0) return WaitCause::kTokens;
    Sequence* sequence = waiting_[i];
    if (sequence->waits_for_leader) {
      ++i;
      continue;
    }
    if (!budget_.HasRoom(sequence->length())) return WaitCause::kTokens;
    if (!TryStart(sequence, changes)) return WaitCause::kKvRoom;
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    const int32_t chunk = TakeChunk(*sequence, *plan);
    AddItem(sequence, chunk, plan);
    plan->prefill_tokens += chunk;
  }
  return WaitCause::kNone;
}

// Takes the cache and a slot, if there is room.
bool Scheduler::TryStart(Sequence* sequence, PlanChanges* changes) {
  // A row of log-probabilities exists only for a token that is computed, and so does what a mean
  // is taken over.
  const bool all_rows = sequence->wants_prompt_rows || sequence->pooling == Pooling::kMean;
  const bool use_index = config_.kv.enable_prefix_caching && !all_rows;
  const auto cached = kv_.TryBegin(&sequence->kv, sequence->tokens, use_index, Headroom(*sequence));
  if (!cached) return false;

  sequence->computed = *cached;
  sequence->started_with = sequence->length();
  sequence->slot = free_slots_.back();
  free_slots_.pop_back();
  slots_[sequence->slot.value] = sequence;
  InsertOrdered(&running_, sequence);
  if (!sequence->scheduled_before && use_index) {
    counters_.prefix_queries += sequence->prompt_len;
    counters_.prefix_hits += std::min(*cached, sequence->prompt_len);
  }
  changes->bound.push_back({.slot = sequence->slot,
                            .key = sequence->key,
                            .choice = sequence->choice,
                            .tokens = sequence->tokens,
                            .prompt_len = sequence->prompt_len,
                            .cached_tokens = *cached,
                            .first_time = !sequence->scheduled_before});
  sequence->scheduled_before = true;
  return true;
}

// Blocks to leave available when `candidate` starts: those that each sequence will yet need, so
// that all can cross their next block boundary without a preemption.
int32_t Scheduler::Headroom(const Sequence& candidate) const {
  if (running_.empty()) return 0;  // alone, whatever fits may start
  int32_t growing = kv_.NextGrowth(candidate.length(), candidate.max_len);
  for (const Sequence* sequence : running_) {
    growing += kv_.NextGrowth(sequence->kv, sequence->max_len);
  }
  return std::max(growing, config_.kv.num_blocks / kWatermarkDivisor);
}

LogitRows Scheduler::RowsOf(const Sequence& sequence, int32_t end, bool sample) {
  if (sequence.wants_prompt_rows) return LogitRows::kAll;
  if (sample) return LogitRows::kLast;
  switch (sequence.pooling) {
    case Pooling::kMean:
      return LogitRows::kPoolAll;
    case Pooling::kLast:
      return end == sequence.length() ? LogitRows::kPoolLast : LogitRows::kNone;
    case Pooling::kNone:
      break;
  }
  return LogitRows::kNone;
}

void Scheduler::AddItem(Sequence* sequence, int32_t num_tokens, StepPlan* plan) {
  const int32_t begin = sequence->computed;
  const int32_t end = begin + num_tokens;
  kv_.Advance(&sequence->kv, end);
  const bool wants_rows = sequence->wants_prompt_rows;

  PlanItem item;
  item.slot = sequence->slot;
  item.first_token = static_cast<int32_t>(plan->tokens.size());
  item.num_tokens = num_tokens;
  item.first_position = begin;
  item.first_block = static_cast<int32_t>(plan->block_ids.size());
  item.num_blocks = kv_.BlocksFor(end);
  item.sample = end == sequence->length() && sequence->max_tokens > 0;
  item.logit_rows = RowsOf(*sequence, end, item.sample);
  item.pool_ends = sequence->pooling != Pooling::kNone && end == sequence->length();
  if (wants_rows && end < sequence->prompt_len) item.next_prompt_token = sequence->tokens[end];
  plan->items.push_back(item);

  const TokenId* tokens = sequence->tokens.data();
  plan->tokens.insert(plan->tokens.end(), tokens + begin, tokens + end);
  for (int32_t group = 0; group < sequence->kv.num_groups(); ++group) {
    const auto blocks = sequence->kv.blocks(group).first(static_cast<size_t>(item.num_blocks));
    plan->block_ids.insert(plan->block_ids.end(), blocks.begin(), blocks.end());
  }
  sequence->planned = num_tokens;
}

}  // namespace vivace
