// Decides what each step computes: iteration-level continuous batching over a paged KV cache.
//
// Pure and deterministic: no threads, no clock, no tensors; the same calls, with the same times in
// their results, give the same plans. Used by one thread (the engine's), in this cycle:
//
//   Add / Abort / ResetPrefixCache ...   any number of times, any time (see Abort)
//   Plan(&plan, &changes)                then executor: ReleaseSlot for changes.released,
//                                        BindSlot for changes.bound, Launch(plan), Await(&result)
//   Commit(plan, result, &effects)       only if the plan was not empty
//
// Rules
// - One budget of tokens a step. Sampled sequences (decodes) come first, then prompt chunks of
//   those running, then new ones; a prompt may be cut anywhere. With max_itl_ns the chunks are also
//   held to a time, by what steps have taken so far (chunk_budget.h).
// - Output that was appended without being sampled is fed like a prompt's chunk, after the decodes:
//   at least one token a step, so it is never later than sampling would have been, and more as
//   tokens and time allow, up to half of the budget's rest.
// - Order: priority, then arrival. Nobody overtakes an earlier one of its priority, except that
//   choices 2..n of a request wait, without holding up others, until the first has computed the
//   prompt they share. A preempted sequence keeps its arrival, so it stands before all that came
//   later.
// - A sequence starts only when the cache has room for all its tokens so far plus one more block
//   for itself and for each running sequence that will need one: preemption is the exception.
// - In a window group (kv/kv_groups.h) a sequence claims, when it starts, what its window and the
//   largest chunk need together; it then takes and gives back blocks within the claim. Where the
//   text above says room or blocks, claims of others are not free.
// - Out of blocks: cached contents go first, then the last sequence in order that frees something
//   is preempted (its KV is recomputed later). The first in order never is, so something always
//   ends.
//
// Cost: Plan and Commit are linear in the running sequences and their blocks; neither allocates
// when the plan, changes and effects were Reserved. Add and Abort may allocate and free.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "kv/kv_cache_manager.h"
#include "sched/chunk_budget.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"
#include "sched/wait_cause.h"

namespace vivace {

struct SchedulerConfig {
  int32_t max_num_seqs = 64;             // slots; also capped by the budget, one token each
  int32_t max_num_batched_tokens = 512;  // the budget
  int32_t max_model_len = 0;             // tokens of a sequence, prompt and output
  int64_t max_itl_ns = 0;  // most time between tokens of a stream, if it can be; 0: any
  KvCacheConfig kv;        // max_chunk is the budget, whatever it says
};

enum class SeqFinish : uint8_t { kNone, kStop, kLength, kError };

// What the executor has to be told before the plan is launched. `released` come before `bound`.
struct PlanChanges {
  struct Bound {
    SeqSlot slot;
    SeqKey key = 0;
    int32_t choice = 0;
    std::span<const TokenId> tokens;  // prompt and output so far; valid until Commit
    int32_t prompt_len = 0;
    int32_t cached_tokens = 0;  // of `tokens`, found in the prefix cache
    bool first_time = false;    // false: back from a preemption
  };

  std::vector<SeqSlot> released;  // since the last Plan: ended, aborted or preempted
  std::vector<Bound> bound;
  std::vector<SeqKey> preempted;

  void Clear() {
    released.clear();
    bound.clear();
    preempted.clear();
  }
};

// What came of a step, in the order of the plan's items.
struct Effects {
  // A sampled token, an end, or both. The token that stops a sequence is reported as its token too.
  struct Output {
    SeqKey key = 0;
    TokenId token = -1;        // -1: none (max_tokens 0, error)
    int32_t logprob_row = -1;  // index into StepResult::logprob_rows, or -1
    SeqFinish finish = SeqFinish::kNone;
    TokenId stop_token = -1;  // kStop: the id that did it
  };
  // Prompt log-probabilities: rows [first_row, + count) belong to the prompt's tokens at positions
  // [first_position, + count). After a preemption the same positions may come again, with equal
  // values.
  struct PromptRows {
    SeqKey key = 0;
    int32_t first_position = 0;
    int32_t first_row = 0;
    int32_t count = 0;
  };

  // A pooled prompt; its end follows in outputs.
  struct Pooled {
    SeqKey key = 0;
    std::span<const float> values;  // the result's
  };

  std::vector<Output> outputs;
  std::vector<PromptRows> prompt_rows;  // stands before the sequence's outputs of the same step
  std::vector<Pooled> pooled;           // the same

  void Clear() {
    outputs.clear();
    pooled.clear();
    prompt_rows.clear();
  }
};

struct SchedulerStats {
  int64_t running = 0;  // sequences with a slot
  int64_t waiting = 0;
  int64_t blocks_total = 0;
  int64_t blocks_used = 0;     // held by a sequence
  int64_t blocks_cached = 0;   // free, contents still findable
  int64_t prefix_queries = 0;  // prompt tokens looked up, at first schedule
  int64_t prefix_hits = 0;     // of these, found
  int64_t preemptions = 0;
  // Steps in which prompts advanced beside decodes and were timed: how long they took, and were
  // thought to take when they were planned.
  int64_t mixed_steps = 0;
  int64_t mixed_prompt_tokens = 0;
  int64_t mixed_ns = 0;
  int64_t mixed_predicted_ns = 0;
};

class Scheduler final {
 public:
  explicit Scheduler(const SchedulerConfig& config,
                     std::unique_ptr<BlockHasher> hasher = std::make_unique<Sha256Hasher>());
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  const SchedulerConfig& config() const { return config_; }

  // Grows the three to what a step can need at most; Plan and Commit then never allocate.
  void Reserve(StepPlan* plan, PlanChanges* changes, Effects* effects) const;

  // Whether a sequence can run when it is alone; one that cannot must be refused, not added. The
  // last output token is never fed, so it needs no room. Reads the configuration only: any thread.
  static bool CanEverFit(const SchedulerConfig& config, int64_t prompt_len, int64_t max_tokens);
  bool CanEverFit(int64_t prompt_len, int64_t max_tokens) const {
    return CanEverFit(config_, prompt_len, max_tokens);
  }

  // Queues a sequence. Requires CanEverFit, a prompt and an unused key.
  void Add(const NewSequence& sequence);

  // Ends a sequence in whatever state; nothing more is reported of it. Unknown and ended keys are
  // ignored. Safe while a step is in flight: a sequence in it keeps its blocks and slot until
  // Commit (the fence), so no block is reused while the executor may still touch it.
  void Abort(SeqKey key);

  // Fills the next step. Not while a step is in flight. An empty plan is not committed, and means
  // that there is nothing to do until the next Add; `changes` hold all the same.
  void Plan(StepPlan* plan, PlanChanges* changes);

  // Puts tokens behind a sequence's output that nobody sampled, to be computed by the next steps.
  // Not while a step of the sequence is in flight. Stops at a token that ends it, and ends it too
  // if `complete`. Unknown keys are ignored.
  struct Appended {
    int32_t count = 0;  // of the tokens, taken
    SeqFinish finish = SeqFinish::kNone;
    TokenId stop_token = -1;  // the id that did it, if one did
  };
  Appended Append(SeqKey key, std::span<const TokenId> tokens, bool complete);

  // Takes in what the executor made of the last plan.
  void Commit(const StepPlan& plan, const StepResult& result, Effects* effects);

  // Forgets cached contents that no sequence holds.
  void ResetPrefixCache() { kv_.ResetPrefixCache(); }

  bool idle() const { return running_.empty() && waiting_.empty(); }
  SchedulerStats stats() const;
  // Why the first that waits did not start in the last Plan.
  WaitCause wait_cause() const { return wait_cause_; }

  // For tests: recomputes counts from the sequences themselves; empty if all is as it should be,
  // else what is not.
  std::string CheckInvariants() const;
  const KvCacheManager& kv() const { return kv_; }

 private:
  // scheduler.cc: coming and going
  void JoinGroup(Sequence* sequence);
  void FreeFollowers(const Sequence& leader);
  void PassLead(const Sequence& leader);
  void Retire(Sequence* sequence);
  void LeaveSlot(Sequence* sequence);
  static void InsertOrdered(std::vector<Sequence*>* list, Sequence* sequence);

  // scheduler_plan.cc
  void PlanOutputs(StepPlan* plan, PlanChanges* changes);
  void PlanAppended(StepPlan* plan);
  void PlanRunningPrompts(StepPlan* plan);
  WaitCause PlanWaiting(StepPlan* plan, PlanChanges* changes);
  bool MakeRoom(size_t running_index, PlanChanges* changes);
  Sequence* LastThatFrees(size_t running_index) const;
  void Preempt(Sequence* sequence, PlanChanges* changes);
  bool TryStart(Sequence* sequence, PlanChanges* changes);
  int32_t Headroom(const Sequence& candidate) const;
  int32_t BudgetLeft(const StepPlan& plan) const;
  int32_t TakeChunk(const Sequence& sequence, const StepPlan& plan);
  void AddItem(Sequence* sequence, int32_t num_tokens, StepPlan* plan);
  static LogitRows RowsOf(const Sequence& sequence, int32_t end, bool sample);

  // scheduler_commit.cc
  void ObserveTime(const StepPlan& plan, int64_t elapsed_ns);
  void CommitItem(const PlanItem& item, const SampledToken* sampled, Effects* effects);
  static bool IsStop(const Sequence& sequence, TokenId token);
  static SeqFinish FinishOf(const Sequence& sequence, TokenId token);

  // scheduler_check.cc
  std::string CheckRunning(std::vector<int32_t>* refs) const;
  std::string CheckWaiting() const;
  std::string CheckClaims() const;

  SchedulerConfig config_;
  int32_t max_running_;
  KvCacheManager kv_;
  ChunkBudget budget_;

  std::unordered_map<SeqKey, std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> slots_;  // [max_running], by SeqSlot; null: free
  std::vector<SeqSlot> free_slots_;
  std::vector<Sequence*> running_;                  // in policy order
  std::vector<Sequence*> growing_;                  // of these, those of PlanOutputs
  std::vector<Sequence*> waiting_;                  // in policy order
  std::vector<std::unique_ptr<Sequence>> retired_;  // ended in Commit; freed by the next Add
  std::vector<SeqSlot> released_;                   // to be told by the next Plan

  uint64_t next_arrival_ = 0;
  uint64_t step_ = 0;
  bool in_flight_ = false;
  WaitCause wait_cause_ = WaitCause::kNone;
  SchedulerStats counters_;  // prefix_*, preemptions, mixed_*
};

}  // namespace vivace
