// The Engine: its thread and the doors into it. See engine.h for the contract.
#pragma once

#include <atomic>
#include <limits>
#include <mutex>
#include <thread>

#include "engine/decayed_rate.h"
#include "engine/engine.h"
#include "engine/mpsc_list.h"
#include "engine/stats_board.h"
#include "sched/scheduler.h"

namespace vivace {

// The scheduler of an engine with this configuration and executor.
SchedulerConfig SchedulerConfigOf(const EngineConfig& config, const ExecutorLimits& limits);

class StepLoop final : public Engine {
 public:
  StepLoop(const EngineConfig& config, std::unique_ptr<Executor> executor,
           std::vector<TokenId> eos_ids);
  ~StepLoop() override;

  const ExecutorLimits& limits() const override { return limits_; }
  const EngineConfig& config() const override { return config_; }
  Result<RequestPtr> Submit(GenerationRequest request, void* consumer) override;
  void Abort(const RequestPtr& request, int32_t choice) override;
  void OnReady(std::function<void()> notify) override { notify_ = std::move(notify); }
  void TakeReady(std::vector<RequestPtr>* out) override;
  EngineStats stats() const override { return board_.Read(); }
  void ResetPrefixCache() override;
  void BeginDrain() override;
  void Stop() override;

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  enum class State : uint8_t { kRunning, kDraining, kStopped };
  // One sequence in the scheduler. Addressed by SeqKey: generation in the high half, index below.
  struct Live {
    RequestPtr request;
    int32_t choice = 0;
    uint32_t generation = 0;
    TokenConstraint* forces = nullptr;  // asked for tokens that must follow; null: nobody
    std::vector<TokenId> opening;       // these, from before the first; not published yet
  };
  using Inbox = MpscList<ActiveRequest, &ActiveRequest::inbox_hook>;
  using Ready = MpscList<ActiveRequest, &ActiveRequest::ready_hook>;

  // Any thread.
  Status Admit(GenerationRequest* request);
  void WakeEngine();

  // Engine thread.
  void Run();
  void TakeInbox();
  void AddSequences(const RequestPtr& request);
  void TakeAborts(ActiveRequest* request);
  void EndLate();
  void EndRequest(const ActiveRequest& request, FinishReason reason);
  bool Step();
  void CountTime(int64_t step_ns);
  void RecordChange(const PlanChanges::Bound& bound);
  void RecordStep(int64_t began_ns, int64_t ended_ns);
  void MeasureQueue(int64_t prompt_tokens, int64_t requests, int64_t step_ns);
  void ApplyChanges();
  void Deliver(const Effects& effects, const StepResult& result);
  void DeliverPromptRows(const Effects::PromptRows& rows, const StepResult& result);
  void DeliverPooled(const Effects::Pooled& pooled);
  void DeliverToken(const Effects::Output& output, const StepResult& result);
  void StartForced(SeqKey key);
  void JumpForward(SeqKey key);
  bool TakeForced(SeqKey key, int32_t limit, Scheduler::Appended* appended);
  void Publish(Live* live, std::span<const TokenId> tokens);
  void FinishChoice(SeqKey key, FinishReason reason, TokenId stop_token);
  void EndAll();
  void Tell(const RequestPtr& request);
  void NotifyConsumer();
  void Park(uint32_t seen);
  Live* Find(SeqKey key);
  SeqKey NewKey(const RequestPtr& request, int32_t choice);
  void LeaveQueue(ActiveRequest* request);
  void PublishStats(int64_t step_started_ns);

  const EngineConfig config_;
  const std::unique_ptr<Executor> executor_;
  const ExecutorLimits limits_;
  const std::vector<TokenId> eos_ids_;
  const SchedulerConfig scheduler_config_;
  std::function<void()> notify_;

  // Shared.
  std::mutex submit_mutex_;  // orders Submit against Stop; never the engine thread's
  std::atomic<State> state_{State::kRunning};
  std::atomic<uint64_t> next_id_{1};
  std::atomic<int64_t> queued_requests_{0};  // submitted, never scheduled yet
  std::atomic<int64_t> queued_tokens_{0};
  std::atomic<bool> reset_prefix_cache_{false};
  std::atomic<uint32_t> wake_{0};
  Inbox inbox_;
  Ready ready_;
  StatsBoard board_;

  // Engine thread's.
  Scheduler scheduler_;
  StepPlan plan_;
  PlanChanges changes_;
  Effects effects_;
  StepResult result_;
  std::vector<TokenId> forced_;
  std::vector<Live> live_;
  std::vector<uint32_t> free_live_;
  std::vector<SeqKey> slot_keys_;            // [max_sequences], by SeqSlot: who has it
  WaitCause last_cause_ = WaitCause::kNone;  // of the plan before this one
  int64_t last_plan_ns_ = 0;                 // when that was made
  int64_t plan_ns_ = 0;
  std::vector<RequestPtr> timed_;     // open ones whose time may run out
  int64_t next_timeout_ns_ = kNever;  // nobody's before this
  int64_t left_queue_ = 0;            // requests, ever
  // A prompt's chunk takes a moment, an answer that holds a place seconds.
  DecayedRate prompt_rate_{10}, queue_token_rate_{20}, queue_request_rate_{20};
  bool consumer_stale_ = false;  // news since the last notify
  EngineStats totals_;

  std::thread thread_;
};

}  // namespace vivace
