// What happened to a request inside the engine: when it started and what it had waited for, each
// chunk of its prompt and who shared the step, cached tokens, preemptions, its first token, its
// end.
//
// Fixed room, taken when the request is made. The engine thread writes, without a lock or an
// allocation; any thread reads what was published. Chunks that find no room are counted and left
// out, the other events have room of their own. Decode steps are sums, not events.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/limits.h"
#include "sched/wait_cause.h"

namespace vivace {

// What decided how long a step took, or how much of the waiting it could take up.
enum class StepBound : uint8_t {
  kDecode,   // the tokens of running answers alone
  kPrompts,  // prompts that were computed
  kKvRoom,   // the KV cache: somebody was set back, or could not start
};

enum class TimelineKind : uint8_t {
  kStarted,
  kPrompt,
  kFirstToken,
  kPreempted,
  kResumed,
  kFinished
};

struct TimelineEvent {
  int64_t at_ns =
      0;  // steady clock, end of its step; of kStarted, kPreempted, kResumed its beginning
  uint64_t step = 0;
  TimelineKind kind = TimelineKind::kStarted;
  StepBound bound = StepBound::kDecode;  // of the step
  WaitCause cause = WaitCause::kNone;    // kStarted, kResumed: what it had waited for
  int32_t choice = 0;
  int32_t tokens = 0;              // kPrompt: of the chunk; kStarted, kResumed: cached
  int32_t position = 0;            // kPrompt: of its first token
  int32_t step_answers = 0;        // running answers in the step
  int32_t step_prompts = 0;        // prompts in the step, this one included
  int32_t step_prompt_tokens = 0;  // all of their tokens
  int64_t step_ns = 0;             // how long the step took
};

// Sums over the steps in which a choice of the request had a share.
struct StepSums {
  int64_t steps = 0;
  int64_t ns = 0;
  int64_t answers = 0;       // running answers in these steps, itself included
  int64_t prompt_steps = 0;  // of these steps, those that computed prompts as well
  int64_t prompt_ns = 0;
  int64_t kv_bound_steps = 0;
};

class Timeline {
 public:
  Timeline() { events_.resize(limits::kMaxTimelineEvents); }

  // Engine thread.
  void Add(const TimelineEvent& event) {
    const int32_t count = count_.load(std::memory_order_relaxed);
    const auto room = static_cast<int32_t>(events_.size()) -
                      (event.kind == TimelineKind::kPrompt ? kKeptForOthers : 0);
    if (count >= room) {
      dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    events_[static_cast<size_t>(count)] = event;
    count_.store(count + 1, std::memory_order_release);
  }
  void AddDecode(int64_t step_ns, int32_t answers, bool with_prompts, bool kv_bound) {
    Bump(&steps_, 1);
    Bump(&ns_, step_ns);
    Bump(&answers_, answers);
    if (with_prompts) {
      Bump(&prompt_steps_, 1);
      Bump(&prompt_ns_, step_ns);
    }
    if (kv_bound) Bump(&kv_bound_steps_, 1);
  }

  // Any thread.
  std::span<const TimelineEvent> events() const {
    return std::span(events_).first(static_cast<size_t>(count_.load(std::memory_order_acquire)));
  }
  int32_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  StepSums decodes() const {
    const auto read = [](const std::atomic<int64_t>& value) {
      return value.load(std::memory_order_relaxed);
    };
    return {read(steps_),        read(ns_),        read(answers_),
            read(prompt_steps_), read(prompt_ns_), read(kv_bound_steps_)};
  }

 private:
  static constexpr int32_t kKeptForOthers = limits::kMaxTimelineEvents / 3;

  // One writer: no read-modify-write is needed.
  static void Bump(std::atomic<int64_t>* value, int64_t by) {
    value->store(value->load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::vector<TimelineEvent> events_;
  std::atomic<int32_t> count_{0};
  std::atomic<int32_t> dropped_{0};
  std::atomic<int64_t> steps_{0};
  std::atomic<int64_t> ns_{0};
  std::atomic<int64_t> answers_{0};
  std::atomic<int64_t> prompt_steps_{0};
  std::atomic<int64_t> prompt_ns_{0};
  std::atomic<int64_t> kv_bound_steps_{0};
};

}  // namespace vivace
