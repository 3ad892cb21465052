#include "sched/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vivace {
namespace {

// Tokens whose KV is ever needed: the last output is never fed.
int64_t MaxComputed(int64_t prompt_len, int64_t max_tokens) {
  return prompt_len + std::max<int64_t>(max_tokens - 1, 0);
}

KvCacheConfig KvConfigOf(const SchedulerConfig& config) {
  KvCacheConfig kv = config.kv;
  kv.max_chunk = config.max_num_batched_tokens;
  return kv;
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config, std::unique_ptr<BlockHasher> hasher)
    : config_(config),
      max_running_(std::min(config.max_num_seqs, config.max_num_batched_tokens)),
      kv_(KvConfigOf(config), std::move(hasher)),
      budget_(config.max_itl_ns) {
  VIVACE_CHECK(max_running_ >= 1 && config.max_model_len >= 1);
  slots_.resize(static_cast<size_t>(max_running_), nullptr);
  running_.reserve(slots_.size());
  growing_.reserve(slots_.size());
  released_.reserve(slots_.size());
  free_slots_.reserve(slots_.size());
  for (int32_t i = max_running_ - 1; i >= 0; --i) free_slots_.push_back(SeqSlot(i));
}

void Scheduler::Reserve(StepPlan* plan, PlanChanges* changes, Effects* effects) const {
  const size_t seqs = slots_.size();
  const KvWindows& windows = config_.kv.windows;
  int32_t blocks = kv_.BlocksFor(config_.max_model_len);  // of a table
  if (windows.num_full() > 0) blocks = std::min(blocks, config_.kv.num_blocks);
  plan->items.reserve(seqs);
  plan->tokens.reserve(static_cast<size_t>(config_.max_num_batched_tokens));
  plan->block_ids.reserve(seqs * static_cast<size_t>(blocks) * static_cast<size_t>(windows.size()));
  changes->released.reserve(seqs);
  changes->bound.reserve(seqs);
  changes->preempted.reserve(seqs);
  effects->outputs.reserve(seqs);
  effects->prompt_rows.reserve(seqs);
  effects->pooled.reserve(seqs);
}

bool Scheduler::CanEverFit(const SchedulerConfig& config, int64_t prompt_len, int64_t max_tokens) {
  if (prompt_len < 1 || prompt_len > config.max_model_len) return false;
  if (max_tokens < 0 || (max_tokens > 0 && prompt_len == config.max_model_len)) return false;
  const int64_t outputs = std::min(max_tokens, config.max_model_len - prompt_len);
  return MostBlocks(config.kv.windows, config.kv.block_size, MaxComputed(prompt_len, outputs),
                    config.max_num_batched_tokens) <= config.kv.num_blocks;
}

void Scheduler::Add(const NewSequence& added) {
  const int64_t prompt_len = static_cast<int64_t>(added.prompt.size());
  VIVACE_CHECK(CanEverFit(prompt_len, added.max_tokens));
  VIVACE_CHECK(added.pooling == Pooling::kNone || added.max_tokens == 0);
  retired_.clear();

  auto owned = std::make_unique<Sequence>();
  Sequence* sequence = owned.get();
  sequence->key = added.key;
  sequence->group = added.group;
  sequence->choice = added.choice;
  sequence->priority = added.priority;
  sequence->arrival = next_arrival_++;
  sequence->prompt_len = static_cast<int32_t>(prompt_len);
  sequence->max_tokens =
      static_cast<int32_t>(std::min<int64_t>(added.max_tokens, config_.max_model_len - prompt_len));
  sequence->min_tokens = added.min_tokens;
  sequence->max_len = static_cast<int32_t>(MaxComputed(prompt_len, sequence->max_tokens));
  sequence->wants_prompt_rows = added.prompt_logprobs;
  sequence->pooling = added.pooling;
  sequence->stop_ids.assign(added.stop_ids.begin(), added.stop_ids.end());
  sequence->tokens.reserve(static_cast<size_t>(prompt_len + sequence->max_tokens));
  sequence->tokens.assign(added.prompt.begin(), added.prompt.end());
  sequence->kv = kv_.Open(added.cache_salt, added.adapter, sequence->max_len);
  JoinGroup(sequence);

  VIVACE_CHECK(sequences_.emplace(added.key, std::move(owned)).second);
  retired_.reserve(sequences_.size());
  waiting_.reserve(sequences_.size());
  InsertOrdered(&waiting_, sequence);
}

// A later choice waits for the first one's prompt if there is a block of it to share.
void Scheduler::JoinGroup(Sequence* sequence) {
  if (sequence->choice == 0 || !config_.kv.enable_prefix_caching) return;
  if (sequence->prompt_len <= config_.kv.block_size) return;
  const auto leads = [sequence](const Sequence* other) {
    return other->group == sequence->group && !other->waits_for_leader && !other->abort_pending &&
           !other->prompt_done;
  };
  for (const std::vector<Sequence*>* list : {&waiting_, &running_}) {
    const auto leader = std::find_if(list->begin(), list->end(), leads);
    if (leader == list->end()) continue;
    (*leader)->leads_group = true;
    sequence->waits_for_leader = true;
    return;
  }
}

// The prompt is in the cache: those who waited for it may start.
void Scheduler::FreeFollowers(const Sequence& leader) {
  for (Sequence* other : waiting_) {
    if (other->group == leader.group) other->waits_for_leader = false;
  }
}

// The leader goes before its prompt is computed: the next choice computes it.
void Scheduler::PassLead(const Sequence& leader) {
  Sequence* heir = nullptr;
  for (Sequence* other : waiting_) {
    if (other->group != leader.group || !other->waits_for_leader) continue;
    if (heir != nullptr) {
      heir->leads_group = true;
      return;
    }
    heir = other;
    heir->waits_for_leader = false;
  }
}

void Scheduler::Abort(SeqKey key) {
  const auto found = sequences_.find(key);
  if (found == sequences_.end()) return;
  Sequence* sequence = found->second.get();
  if (in_flight_ && sequence->planned > 0) {
    sequence->abort_pending = true;
  } else {
    Retire(sequence);
  }
}

Scheduler::Appended Scheduler::Append(SeqKey key, std::span<const TokenId> tokens, bool complete) {
  Appended out;
  const auto found = sequences_.find(key);
  if (found == sequences_.end()) return out;
  Sequence* sequence = found->second.get();
  VIVACE_CHECK(sequence->planned == 0);
  VIVACE_CHECK(sequence->outputs() + std::ssize(tokens) <= sequence->max_tokens);
  for (const TokenId token : tokens) {
    sequence->tokens.push_back(token);
    ++out.count;
    out.finish = FinishOf(*sequence, token);
    if (out.finish == SeqFinish::kStop) out.stop_token = token;
    if (out.finish != SeqFinish::kNone) break;
  }
  if (complete && out.stop_token < 0) out.finish = SeqFinish::kStop;
  if (out.finish != SeqFinish::kNone) Retire(sequence);
  return out;
}

void Scheduler::Retire(Sequence* sequence) {
  if (sequence->slot.valid()) {
    released_.push_back(sequence->slot);
    LeaveSlot(sequence);
  } else {
    std::erase(waiting_, sequence);
  }
  if (sequence->leads_group) PassLead(*sequence);
  kv_.End(&sequence->kv);
  const auto found = sequences_.find(sequence->key);
  retired_.push_back(std::move(found->second));
  sequences_.erase(found);
}

void Scheduler::LeaveSlot(Sequence* sequence) {
  slots_[sequence->slot.value] = nullptr;
  free_slots_.push_back(sequence->slot);
  sequence->slot = SeqSlot();
  std::erase(running_, sequence);
}

// New arrivals belong at the end, so the search is short where it matters.
void Scheduler::InsertOrdered(std::vector<Sequence*>* list, Sequence* sequence) {
  const auto before = [](const Sequence* a, const Sequence* b) { return Before(*a, *b); };
  list->insert(std::upper_bound(list->begin(), list->end(), sequence, before), sequence);
}

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats = counters_;
  stats.running = static_cast<int64_t>(running_.size());
  stats.waiting = static_cast<int64_t>(waiting_.size());
  stats.blocks_total = kv_.pool().num_total();
  stats.blocks_used = kv_.pool().num_used();
  stats.blocks_cached = kv_.pool().num_retained_free();
  return stats;
}

}  // namespace vivace
