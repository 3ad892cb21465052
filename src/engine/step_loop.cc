#include "engine/step_loop.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"

namespace vivace {
namespace {

uint64_t RandomSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Spreads consecutive request ids over the seed space (SplitMix64's finaliser).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

EngineConfig WithSeed(EngineConfig config) {
  if (config.seed == 0) config.seed = RandomSeed();
  return config;
}

constexpr int32_t kManyTokens = 32;  // of prompts in a step: their number decides its time

// Adds to the histogram `buckets`, whose last bucket is for what is above all bounds.
template <size_t N>
void CountIn(const std::array<double, N>& bounds, double value,
             std::array<int64_t, N + 1>* buckets) {
  const auto bound = std::lower_bound(bounds.begin(), bounds.end(), value);
  (*buckets)[static_cast<size_t>(bound - bounds.begin())] += 1;
}

FinishReason ReasonOf(SeqFinish finish) {
  switch (finish) {
    case SeqFinish::kNone:
      return FinishReason::kNone;
    case SeqFinish::kStop:
      return FinishReason::kStop;
    case SeqFinish::kLength:
      return FinishReason::kLength;
    case SeqFinish::kError:
      return FinishReason::kError;
  }
  return FinishReason::kError;
}

}  // namespace

SchedulerConfig SchedulerConfigOf(const EngineConfig& config, const ExecutorLimits& limits) {
  return {.max_num_seqs = limits.max_sequences,
          .max_num_batched_tokens = limits.max_batched_tokens,
          .max_model_len = limits.max_model_len,
          .max_itl_ns = static_cast<int64_t>(config.max_itl_ms * 1e6),
          .kv = {.num_blocks = limits.num_blocks,
                 .block_size = limits.block_size,
                 .enable_prefix_caching = config.enable_prefix_caching && !limits.recurrent,
                 .windows = limits.kv_windows}};
}

StepLoop::StepLoop(const EngineConfig& config, std::unique_ptr<Executor> executor,
                   std::vector<TokenId> eos_ids)
    : config_(WithSeed(config)),
      executor_(std::move(executor)),
      limits_(executor_->limits()),
      eos_ids_(std::move(eos_ids)),
      scheduler_config_(SchedulerConfigOf(config_, limits_)),
      scheduler_(scheduler_config_) {
  scheduler_.Reserve(&plan_, &changes_, &effects_);
  slot_keys_.resize(static_cast<size_t>(limits_.max_sequences));
  forced_.reserve(limits::kMaxForcedTokens);
  PublishStats(0);
  thread_ = std::thread([this] { Run(); });
}

StepLoop::~StepLoop() { Stop(); }

// ---- any thread ---------------------------------------------------------------------------------

Status StepLoop::Admit(GenerationRequest* request) {
  const auto prompt = static_cast<int64_t>(request->prompt.size());
  SamplingParams& sampling = request->sampling;
  VIVACE_RETURN_IF_ERROR(Validate(sampling, limits_.vocab));
  if (request->pooling != Pooling::kNone) {
    if (limits_.hidden == 0) {
      return Fail(ErrorCode::kUnsupported, "no_embeddings", "", "this model gives no embeddings");
    }
    request->num_choices = 1;
    sampling.max_tokens = 0;
    sampling.logprobs = sampling.prompt_logprobs = -1;
  }
  if (prompt == 0) {
    return Fail(ErrorCode::kInvalidArgument, "empty_prompt", "prompt",
                "the prompt is empty; give at least one token");
  }
  for (const TokenId token : request->prompt) {
    if (token < 0 || token >= limits_.vocab) {
      return Fail(ErrorCode::kInvalidArgument, "token_id_range", "prompt",
                  "the prompt holds token id {}; the vocabulary has ids 0 to {}", token,
                  limits_.vocab - 1);
    }
  }
  // The last output token is never fed, so it needs no place in the cache.
  const int64_t cache =
      1 + LongestSequence(limits_.kv_windows, limits_.block_size, limits_.num_blocks,
                          limits_.max_batched_tokens, limits_.max_model_len);
  const int64_t longest = std::min<int64_t>(limits_.max_model_len, cache);
  const int64_t room = longest - prompt;
  if (room < std::min(sampling.max_tokens, 1)) {
    return Fail(ErrorCode::kInvalidArgument, "context_length_exceeded", "prompt",
                "the prompt is {} tokens long and {} can be held, output included; shorten it{}",
                prompt, longest,
                longest < limits_.max_model_len ? " or start with a larger KV cache" : "");
  }
  sampling.max_tokens = static_cast<int32_t>(std::min<int64_t>(sampling.max_tokens, room));
  sampling.min_tokens = std::min(sampling.min_tokens, sampling.max_tokens);
  if (!scheduler_.CanEverFit(scheduler_config_, prompt, sampling.max_tokens)) {
    return Fail(ErrorCode::kInvalidArgument, "context_length_exceeded", "prompt",
                "{} prompt and {} output tokens need more than the KV cache's {} tokens", prompt,
                sampling.max_tokens, cache - 1);
  }
  return {};
}

Result<RequestPtr> StepLoop::Submit(GenerationRequest request, void* consumer) {
  VIVACE_RETURN_IF_ERROR(Admit(&request));
  const RequestId id(next_id_.fetch_add(1, std::memory_order_relaxed));
  if (!request.sampling.seeded) request.sampling.seed = Mix(config_.seed ^ Mix(id.value));
  const auto tokens = static_cast<int64_t>(request.prompt.size());
  auto active = std::make_shared<ActiveRequest>(id, std::move(request));
  active->consumer = consumer;
  if (active->request.pooling != Pooling::kNone) {
    active->pooled.resize(static_cast<size_t>(limits_.hidden));
  }
  active->times.arrived_ns.store(SteadyNanos(), std::memory_order_relaxed);

  const std::lock_guard lock(submit_mutex_);
  if (state_.load(std::memory_order_acquire) != State::kRunning) {
    return Fail(ErrorCode::kUnavailable, "shutting_down", "", "the server is shutting down");
  }
  // A prompt that nobody waits beside may be longer than the limit, or it could never run.
  const int64_t waiting = queued_requests_.load(std::memory_order_relaxed);
  const int64_t waiting_tokens = queued_tokens_.load(std::memory_order_relaxed);
  const bool full = waiting >= config_.max_queued_requests ||
                    (waiting > 0 && waiting_tokens + tokens > config_.max_queued_tokens);
  if (full && !active->request.follows) {
    return Fail(ErrorCode::kResourceExhausted, "server_is_overloaded", "",
                "too many requests are waiting; try again later");
  }
  queued_requests_.fetch_add(1, std::memory_order_relaxed);
  queued_tokens_.fetch_add(tokens, std::memory_order_relaxed);
  inbox_.Push(active);
  WakeEngine();
  return active;
}

void StepLoop::Abort(const RequestPtr& request, int32_t choice) {
  for (size_t i = 0; i < request->abort.size(); ++i) {
    if (choice < 0 || static_cast<size_t>(choice) == i) {
      request->abort[i].store(true, std::memory_order_relaxed);
    }
  }
  // Without the lock a push could slip in behind the engine thread's last look.
  const std::lock_guard lock(submit_mutex_);
  if (state_.load(std::memory_order_acquire) == State::kStopped) return;
  inbox_.Push(request);
  WakeEngine();
}

void StepLoop::TakeReady(std::vector<RequestPtr>* out) {
  ready_.TakeAll([out](RequestPtr request) { out->push_back(std::move(request)); });
}

void StepLoop::ResetPrefixCache() {
  reset_prefix_cache_.store(true, std::memory_order_release);
  WakeEngine();
}

void StepLoop::BeginDrain() {
  const std::lock_guard lock(submit_mutex_);
  State running = State::kRunning;
  state_.compare_exchange_strong(running, State::kDraining, std::memory_order_acq_rel);
}

void StepLoop::Stop() {
  {
    const std::lock_guard lock(submit_mutex_);
    state_.store(State::kStopped, std::memory_order_release);
  }
  WakeEngine();
  if (thread_.joinable()) thread_.join();
}

void StepLoop::WakeEngine() {
  wake_.fetch_add(1, std::memory_order_release);
  wake_.notify_one();
}

// ---- engine thread ------------------------------------------------------------------------------

void StepLoop::Run() {
  while (true) {
    const uint32_t seen = wake_.load(std::memory_order_acquire);
    if (state_.load(std::memory_order_acquire) == State::kStopped) break;
    if (reset_prefix_cache_.exchange(false, std::memory_order_acq_rel)) {
      scheduler_.ResetPrefixCache();
    }
    TakeInbox();
    EndLate();
    if (!Step()) Park(seen);
  }
  EndAll();
}

void StepLoop::Park(uint32_t seen) {
  NotifyConsumer();
  PublishStats(0);
  wake_.wait(seen, std::memory_order_acquire);
}

void StepLoop::TakeInbox() {
  inbox_.TakeAll([this](RequestPtr request) {
    if (request->keys.empty()) AddSequences(request);
    TakeAborts(request.get());
  });
}

void StepLoop::AddSequences(const RequestPtr& request) {
  const GenerationRequest& wanted = request->request;
  const SamplingParams& sampling = wanted.sampling;
  std::vector<TokenId> stop_ids = sampling.stop_token_ids;
  if (!sampling.ignore_eos) stop_ids.insert(stop_ids.end(), eos_ids_.begin(), eos_ids_.end());
  // A name space of its own for each kind of cached keys.
  const bool long_prompt =
      limits_.long_prompt > 0 && std::ssize(wanted.prompt) > limits_.long_prompt;
  request->open_choices = wanted.num_choices;
  request->keys.resize(static_cast<size_t>(wanted.num_choices));
  for (int32_t choice = 0; choice < wanted.num_choices; ++choice) {
    const SeqKey key = NewKey(request, choice);
    request->keys[static_cast<size_t>(choice)] = key;
    scheduler_.Add({.key = key,
                    .group = request->id.value,
                    .choice = choice,
                    .priority = wanted.priority,
                    .prompt = wanted.prompt,
                    .max_tokens = sampling.max_tokens,
                    .min_tokens = sampling.min_tokens,
                    .stop_ids = stop_ids,
                    .cache_salt = wanted.cache_salt,
                    .adapter = long_prompt ? "long prompt" : "",
                    .prompt_logprobs = choice == 0 && sampling.prompt_logprobs >= 0,
                    .pooling = wanted.pooling});
  }
  if (wanted.deadline_ns > 0 || wanted.max_queue_ns > 0) {
    timed_.push_back(request);
    next_timeout_ns_ = 0;
  }
  for (const SeqKey key : request->keys) StartForced(key);
}

void StepLoop::TakeAborts(ActiveRequest* request) {
  for (size_t i = 0; i < request->abort.size(); ++i) {
    if (!request->abort[i].load(std::memory_order_relaxed)) continue;
    const SeqKey key = request->keys[i];
    if (Find(key) == nullptr) continue;
    scheduler_.Abort(key);
    FinishChoice(key, FinishReason::kAborted, -1);
  }
}

// Those whose time is up. What else could be late when nothing runs? Only what runs or waits has a
// time, and while any does there are steps.
void StepLoop::EndLate() {
  if (timed_.empty()) return;
  const int64_t now = SteadyNanos();
  if (now < next_timeout_ns_) return;
  next_timeout_ns_ = kNever;
  for (size_t i = 0; i < timed_.size();) {
    const RequestPtr request = timed_[i];
    const GenerationRequest& wanted = request->request;
    const int64_t deadline = wanted.deadline_ns > 0 ? wanted.deadline_ns : kNever;
    const bool waits = wanted.max_queue_ns > 0 && request->times.scheduled_ns == 0;
    const int64_t start = waits ? request->times.arrived_ns + wanted.max_queue_ns : kNever;
    if (now < std::min(deadline, start)) {
      next_timeout_ns_ = std::min({next_timeout_ns_, deadline, start});
      ++i;
    } else {
      EndRequest(*request, now >= deadline ? FinishReason::kDeadline : FinishReason::kQueueTimeout);
    }
  }
}

void StepLoop::EndRequest(const ActiveRequest& request, FinishReason reason) {
  for (const SeqKey key : request.keys) {
    if (Find(key) == nullptr) continue;
    scheduler_.Abort(key);
    FinishChoice(key, reason, -1);
  }
}

// One step; false if there was nothing to do.
bool StepLoop::Step() {
  const int64_t began_ns = SteadyNanos();
  const int64_t prompt_tokens = totals_.prompt_tokens, left_queue = left_queue_;
  last_plan_ns_ = std::exchange(plan_ns_, began_ns);
  last_cause_ = scheduler_.wait_cause();
  scheduler_.Plan(&plan_, &changes_);
  ApplyChanges();
  if (plan_.empty()) return false;
  // The consumer makes the last step's text while this one computes.
  NotifyConsumer();
  const int64_t launched_ns = SteadyNanos();
  PublishStats(launched_ns);
  executor_->Launch(plan_);
  executor_->Await(&result_);
  result_.elapsed_ns = SteadyNanos() - launched_ns;
  scheduler_.Commit(plan_, result_, &effects_);
  RecordStep(began_ns, SteadyNanos());
  totals_.step += 1;
  totals_.prompt_tokens += plan_.prefill_tokens;
  Deliver(effects_, result_);
  const int64_t step_ns = SteadyNanos() - began_ns;
  CountTime(step_ns);
  MeasureQueue(totals_.prompt_tokens - prompt_tokens, left_queue_ - left_queue, step_ns);
  return true;
}

void StepLoop::MeasureQueue(int64_t prompt_tokens, int64_t requests, int64_t step_ns) {
  const auto tokens = static_cast<double>(prompt_tokens);
  // Fewer tokens take as long as a step does, and say nothing of how long many take.
  if (prompt_tokens >= std::min(kManyTokens, config_.max_num_batched_tokens))
    prompt_rate_.Add(tokens, step_ns);
  if (prompt_tokens > 0 || totals_.waiting > 0) {
    queue_token_rate_.Add(tokens, step_ns);
    queue_request_rate_.Add(static_cast<double>(requests), step_ns);
  } else {
    queue_token_rate_.Rest();
    queue_request_rate_.Rest();
  }
  totals_.prompt_tokens_per_s = prompt_rate_.per_second();
  totals_.queue_tokens_per_s = queue_token_rate_.per_second();
  totals_.queue_requests_per_s = queue_request_rate_.per_second();
}

void StepLoop::CountTime(int64_t step_ns) {
  const StepTimes times = executor_->last_times();
  totals_.step_ns += step_ns;
  totals_.kernel_ns += times.kernel_ns;
  totals_.sample_ns += times.sample_ns;
  CountIn(kStepBoundsMs, static_cast<double>(step_ns) * 1e-6, &totals_.step_buckets);
  CountIn(kStepBoundsTokens, static_cast<double>(plan_.tokens.size()), &totals_.token_buckets);
  totals_.computed_tokens += std::ssize(plan_.tokens);
}

void StepLoop::ApplyChanges() {
  for (const SeqSlot slot : changes_.released) executor_->ReleaseSlot(slot);
  for (const SeqKey key : changes_.preempted) {
    Live* live = Find(key);
    if (live == nullptr) continue;
    live->request->preemptions.fetch_add(1, std::memory_order_relaxed);
    live->request->timeline.Add({.at_ns = plan_ns_,
                                 .step = plan_.step,
                                 .kind = TimelineKind::kPreempted,
                                 .bound = StepBound::kKvRoom,
                                 .choice = live->choice});
  }
  for (const PlanChanges::Bound& bound : changes_.bound) {
    Live* live = Find(bound.key);
    ActiveRequest* request = live->request.get();
    executor_->BindSlot(bound.slot, {.params = request->request.sampling,
                                     .choice = bound.choice,
                                     .tokens = bound.tokens,
                                     .prompt_len = bound.prompt_len,
                                     .constraint = request->request.constraint(bound.choice)});
    RecordChange(bound);
    if (!bound.first_time) continue;
    const int32_t cached = std::min(bound.cached_tokens, bound.prompt_len);
    totals_.prompt_tokens += cached;
    if (bound.choice == 0) request->cached_tokens.store(cached, std::memory_order_relaxed);
    LeaveQueue(request);
  }
}

// A sequence that was there when the step before was planned has waited for what held that one up.
void StepLoop::RecordChange(const PlanChanges::Bound& bound) {
  slot_keys_[static_cast<size_t>(bound.slot.value)] = bound.key;
  Live* live = Find(bound.key);
  const int64_t arrived = live->request->times.arrived_ns.load(std::memory_order_relaxed);
  const bool waited = !bound.first_time || arrived < last_plan_ns_;
  live->request->timeline.Add(
      {.at_ns = plan_ns_,
       .step = plan_.step,
       .kind = bound.first_time ? TimelineKind::kStarted : TimelineKind::kResumed,
       .cause = waited ? last_cause_ : WaitCause::kNone,
       .choice = bound.choice,
       .tokens = std::min(bound.cached_tokens, bound.prompt_len)});
}

// Chunks of prompts as events, decodes as sums; output that was not sampled is computed in chunks
// too, and is a decode.
void StepLoop::RecordStep(int64_t began_ns, int64_t ended_ns) {
  const auto answers = static_cast<size_t>(plan_.decode_tokens);  // they come first
  const bool kv_bound =
      !changes_.preempted.empty() || scheduler_.wait_cause() == WaitCause::kKvRoom;
  TimelineEvent event;
  event.at_ns = ended_ns;
  event.step = plan_.step;
  event.kind = TimelineKind::kPrompt;
  event.bound = kv_bound                    ? StepBound::kKvRoom
                : plan_.prefill_tokens == 0 ? StepBound::kDecode
                                            : StepBound::kPrompts;
  event.step_answers = plan_.decode_tokens;
  event.step_prompts = static_cast<int32_t>(plan_.items.size() - answers);
  event.step_prompt_tokens = plan_.prefill_tokens;
  event.step_ns = ended_ns - began_ns;
  for (size_t i = 0; i < plan_.items.size(); ++i) {
    const PlanItem& item = plan_.items[i];
    Live* live = Find(slot_keys_[static_cast<size_t>(item.slot.value)]);
    if (live == nullptr) continue;
    Timeline& timeline = live->request->timeline;
    if (i < answers || item.first_position >= std::ssize(live->request->request.prompt)) {
      timeline.AddDecode(event.step_ns, event.step_answers, plan_.prefill_tokens > 0, kv_bound);
      continue;
    }
    event.choice = live->choice;
    event.tokens = item.num_tokens;
    event.position = item.first_position;
    timeline.Add(event);
  }
}

void StepLoop::Deliver(const Effects& effects, const StepResult& result) {
  for (const Effects::PromptRows& rows : effects.prompt_rows) DeliverPromptRows(rows, result);
  for (const Effects::Pooled& pooled : effects.pooled) DeliverPooled(pooled);
  for (const Effects::Output& output : effects.outputs) DeliverToken(output, result);
  for (const Effects::Output& output : effects.outputs) JumpForward(output.key);
}

void StepLoop::DeliverPromptRows(const Effects::PromptRows& rows, const StepResult& result) {
  Live* live = Find(rows.key);
  if (live == nullptr) return;
  PromptLogprobs& out = live->request->prompt_logprobs;
  for (int32_t i = 0; i < rows.count; ++i) {
    const LogprobRow& row = result.logprob_rows[static_cast<size_t>(rows.first_row + i)];
    const auto at = static_cast<size_t>(rows.first_position + i);
    const int32_t count = std::min(row.num_top, out.stride);
    out.chosen[at] = row.chosen;
    out.num_top[at] = static_cast<int8_t>(count);
    out.rank[at] = row.rank;
    std::copy_n(result.top_logprobs.begin() + row.first_top, count,
                out.top.begin() + static_cast<ptrdiff_t>(at) * out.stride);
  }
}

void StepLoop::DeliverPooled(const Effects::Pooled& pooled) {
  if (Live* live = Find(pooled.key))
    std::ranges::copy(pooled.values, live->request->pooled.begin());
}

void StepLoop::DeliverToken(const Effects::Output& output, const StepResult& result) {
  Live* live = Find(output.key);
  if (live == nullptr) return;
  const RequestPtr request = live->request;
  TokenStream& stream = *request->choices[static_cast<size_t>(live->choice)];
  if (output.token >= 0) {
    Publish(live, live->opening);
    live->opening.clear();
    if (output.logprob_row >= 0) {
      const LogprobRow& row = result.logprob_rows[static_cast<size_t>(output.logprob_row)];
      stream.Push(
          output.token, &row.chosen,
          std::span(result.top_logprobs)
              .subspan(static_cast<size_t>(row.first_top), static_cast<size_t>(row.num_top)));
    } else {
      stream.Push(output.token, nullptr, {});
    }
    totals_.generation_tokens += 1;
    if (request->times.first_token_ns.load(std::memory_order_relaxed) == 0) {
      const int64_t now = SteadyNanos();
      request->times.first_token_ns.store(now, std::memory_order_relaxed);
      request->timeline.Add({.at_ns = now,
                             .step = plan_.step,
                             .kind = TimelineKind::kFirstToken,
                             .choice = live->choice});
    }
  }
  if (output.finish != SeqFinish::kNone) {
    FinishChoice(output.key, ReasonOf(output.finish), output.stop_token);
  } else {
    Tell(request);
  }
}

// Publishes tokens that were not sampled.
void StepLoop::Publish(Live* live, std::span<const TokenId> tokens) {
  TokenStream& stream = *live->request->choices[static_cast<size_t>(live->choice)];
  for (const TokenId token : tokens) stream.Push(token, nullptr, {});
  totals_.generation_tokens += std::ssize(tokens);
  totals_.forced_tokens += std::ssize(tokens);
}

// What must come next goes into forced_ and behind the sequence's output; false if nothing must, or
// the constraint went back on it, which ends the sequence.
bool StepLoop::TakeForced(SeqKey key, int32_t limit, Scheduler::Appended* appended) {
  TokenConstraint* constraint = Find(key)->forces;
  forced_.clear();
  const int32_t most = std::min(limit, limits::kMaxForcedTokens);
  constraint->Forced(most, &forced_);
  if (std::ssize(forced_) > most) forced_.resize(static_cast<size_t>(most));
  const auto accepted = [constraint](TokenId token) { return constraint->Accept(token); };
  if (!std::ranges::all_of(forced_, accepted)) {
    scheduler_.Abort(key);
    FinishChoice(key, FinishReason::kError, -1);
    return false;
  }
  if (forced_.empty()) return false;
  *appended = scheduler_.Append(key, forced_, constraint->Done());
  forced_.resize(static_cast<size_t>(appended->count));
  return true;
}

// Before a sequence's first step: what its output must begin with is computed with the prompt, and
// published when that is done. One token at least is left to sample, unless all is said already.
void StepLoop::StartForced(SeqKey key) {
  Live* live = Find(key);
  const SamplingParams& sampling = live->request->request.sampling;
  const bool wants_logprobs = sampling.logprobs >= 0 || sampling.prompt_logprobs >= 0;
  live->forces = wants_logprobs ? nullptr : live->request->request.constraint(live->choice);
  if (live->forces == nullptr || sampling.max_tokens < 2) return;
  Scheduler::Appended appended;
  if (!TakeForced(key, sampling.max_tokens - 1, &appended)) return;
  if (appended.finish == SeqFinish::kNone) {
    live->opening = forced_;
  } else {
    Publish(live, forced_);
    FinishChoice(key, ReasonOf(appended.finish), appended.stop_token);
  }
}

// After a sequence's token: what must follow it is published now and computed by the next steps.
void StepLoop::JumpForward(SeqKey key) {
  Live* live = Find(key);
  if (live == nullptr || live->forces == nullptr) return;
  const RequestPtr request = live->request;
  const TokenStream& stream = *request->choices[static_cast<size_t>(live->choice)];
  Scheduler::Appended appended;
  if (!TakeForced(key, request->request.sampling.max_tokens - stream.pushed(), &appended)) return;
  Publish(live, forced_);
  if (appended.finish != SeqFinish::kNone) {
    FinishChoice(key, ReasonOf(appended.finish), appended.stop_token);
  } else {
    Tell(request);
  }
}

void StepLoop::FinishChoice(SeqKey key, FinishReason reason, TokenId stop_token) {
  Live* live = Find(key);
  if (live == nullptr) return;
  const RequestPtr request = std::move(live->request);
  request->choices[static_cast<size_t>(live->choice)]->Finish(reason, stop_token);
  live->generation += 1;
  free_live_.push_back(static_cast<uint32_t>(key & 0xffffffff));
  if (--request->open_choices == 0) {
    LeaveQueue(request.get());
    const int64_t now = SteadyNanos();
    request->times.finished_ns.store(now, std::memory_order_relaxed);
    request->timeline.Add({.at_ns = now, .step = plan_.step, .kind = TimelineKind::kFinished});
    std::erase(timed_, request);
  }
  Tell(request);
}

void StepLoop::EndAll() {
  TakeInbox();
  for (size_t i = 0; i < live_.size(); ++i) {
    if (live_[i].request == nullptr) continue;
    const SeqKey key = (uint64_t{live_[i].generation} << 32) | i;
    scheduler_.Abort(key);
    FinishChoice(key, FinishReason::kError, -1);
  }
  scheduler_.Plan(&plan_, &changes_);  // hands back the slots of what was aborted
  ApplyChanges();
  NotifyConsumer();
  PublishStats(0);
}

void StepLoop::Tell(const RequestPtr& request) {
  if (ready_.Push(request)) consumer_stale_ = true;
}

void StepLoop::NotifyConsumer() {
  if (!consumer_stale_) return;
  consumer_stale_ = false;
  if (notify_) notify_();
}

StepLoop::Live* StepLoop::Find(SeqKey key) {
  Live& live = live_[key & 0xffffffff];
  const bool current = live.generation == key >> 32 && live.request != nullptr;
  return current ? &live : nullptr;
}

SeqKey StepLoop::NewKey(const RequestPtr& request, int32_t choice) {
  if (free_live_.empty()) {
    free_live_.push_back(static_cast<uint32_t>(live_.size()));
    live_.emplace_back();
    free_live_.reserve(live_.capacity());  // so that ending a sequence never allocates
  }
  const uint32_t index = free_live_.back();
  free_live_.pop_back();
  Live& live = live_[index];
  live.request = request;
  live.choice = choice;
  live.forces = nullptr;
  live.opening.clear();
  return (uint64_t{live.generation} << 32) | index;
}

void StepLoop::LeaveQueue(ActiveRequest* request) {
  if (request->times.scheduled_ns.load(std::memory_order_relaxed) != 0) return;
  request->times.scheduled_ns.store(SteadyNanos(), std::memory_order_relaxed);
  left_queue_ += 1;
  queued_requests_.fetch_sub(1, std::memory_order_relaxed);
  queued_tokens_.fetch_sub(static_cast<int64_t>(request->request.prompt.size()),
                           std::memory_order_relaxed);
}

void StepLoop::PublishStats(int64_t step_started_ns) {
  const SchedulerStats now = scheduler_.stats();
  totals_.running = now.running;
  totals_.waiting = now.waiting;
  totals_.waiting_for_room =
      now.waiting > 0 && scheduler_.wait_cause() == WaitCause::kKvRoom ? 1 : 0;
  totals_.queued_requests = queued_requests_.load(std::memory_order_relaxed);
  totals_.queued_tokens = queued_tokens_.load(std::memory_order_relaxed);
  totals_.blocks_total = now.blocks_total;
  totals_.blocks_used = now.blocks_used;
  totals_.blocks_cached = now.blocks_cached;
  totals_.prefix_queries = now.prefix_queries;
  totals_.prefix_hits = now.prefix_hits;
  totals_.preemptions = now.preemptions;
  totals_.mixed_steps = now.mixed_steps;
  totals_.mixed_prompt_tokens = now.mixed_prompt_tokens;
  totals_.mixed_ns = now.mixed_ns;
  totals_.mixed_predicted_ns = now.mixed_predicted_ns;
  totals_.step_started_ns = step_started_ns;
  board_.Write(totals_);
}

}  // namespace vivace
