#include "bench/offline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <semaphore>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "bench/turn_encoder.h"
#include "engine/cpu_executor.h"
#include "load/chains.h"
#include "load/figures.h"

namespace vivace::bench {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(20);  // for --stop and the bound of time
constexpr int64_t kMostSettleNs = 2 * kNanosPerSecond;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

std::string_view NameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kNone:
    case FinishReason::kAborted:
    case FinishReason::kDeadline:
    case FinishReason::kQueueTimeout:
      return "abort";
    case FinishReason::kError:
      break;
  }
  return "error";
}

// One workload on an engine. The engine thread writes a request's record until it has ended, the
// submitting thread reads it after that.
class WorkloadRun {
 public:
  WorkloadRun(Engine* engine, const ModelText* text, const load::Workload& workload,
              const OfflineOptions& options)
      : engine_(*engine),
        encoder_(text),
        workload_(workload),
        options_(options),
        chains_(load::ChainsOf(workload)),
        said_(chains_.size()),
        active_(workload.requests.size()),
        ended_(workload.requests.size()) {
    ready_.reserve(workload.requests.size());
  }

  Status Run(OfflineRun* run);
  void OnNews();  // engine thread

 private:
  struct Active {
    load::RequestRecord record;
    RequestPtr request;
    size_t chain = 0;
    size_t turn = 0;
    bool answers_wanted = false;  // another turn follows
    int32_t open_choices = 0;
    std::vector<bool> choice_open;
    std::vector<TokenId> answer;
    bool ended = false;  // as far as the submitting thread has seen
  };

  int64_t DueNs(size_t chain) const;
  Status StartDue();
  Status Start(size_t chain, size_t turn, int64_t scheduled_ns);
  Status TakeEnded();
  void AbortAll();
  void Wait();
  bool AtEnd() const { return partial_ || next_chain_ == chains_.size(); }

  Engine& engine_;
  TurnEncoder encoder_;
  const load::Workload& workload_;
  const OfflineOptions& options_;
  const std::vector<load::Chain> chains_;
  std::vector<Conversation> said_;
  std::vector<Active> active_;

  // Submitting thread's.
  int64_t start_ns_ = 0;
  size_t next_chain_ = 0;
  int32_t running_ = 0;           // conversations
  std::vector<int64_t> free_ns_;  // since when places are free
  size_t taken_ = 0;              // of ended_
  size_t submitted_ = 0;
  bool partial_ = false;

  // Engine thread's, read behind num_ended_.
  std::vector<RequestPtr> ready_;
  std::vector<size_t> ended_;
  std::atomic<size_t> num_ended_{0};
  std::counting_semaphore<> news_{0};
};

void WorkloadRun::OnNews() {
  const int64_t now = SteadyNanos();
  ready_.clear();
  engine_.TakeReady(&ready_);
  for (const RequestPtr& request : ready_) {
    Active& active = *static_cast<Active*>(request->consumer);
    load::RequestRecord& record = active.record;
    int32_t tokens = 0;
    for (size_t i = 0; i < request->choices.size(); ++i) {
      if (!active.choice_open[i]) continue;
      TokenStream& stream = *request->choices[i];
      const auto read = stream.Read();
      tokens += static_cast<int32_t>(read.size());
      if (active.answers_wanted && i == 0)
        active.answer.insert(active.answer.end(), read.begin(), read.end());
      const FinishReason reason = stream.finish_reason();
      if (reason == FinishReason::kNone) continue;
      active.choice_open[i] = false;
      active.open_choices -= 1;
      record.finish_reason = NameOf(reason);
    }
    if (tokens > 0) {
      if (record.first_ns == 0) record.first_ns = now;
      record.last_ns = now;
      record.chunk_ns.push_back(now);
      record.chunk_tokens.push_back(tokens);
      record.output_tokens += tokens;
    }
    if (active.open_choices > 0 || record.ended_ns != 0) continue;
    record.ended_ns = now;
    record.cached_tokens = request->cached_tokens.load(std::memory_order_relaxed);
    const int64_t arrived = request->times.arrived_ns.load(std::memory_order_relaxed);
    const int64_t scheduled = request->times.scheduled_ns.load(std::memory_order_relaxed);
    if (scheduled > 0) record.server_queue_ms = static_cast<double>(scheduled - arrived) * 1e-6;
    const size_t n = num_ended_.load(std::memory_order_relaxed);
    ended_[n] = static_cast<size_t>(&active - active_.data());
    num_ended_.store(n + 1, std::memory_order_release);
    news_.release();
  }
}

// When the plan wants a conversation to begin; 0 where it has no time of its own.
int64_t WorkloadRun::DueNs(size_t chain) const {
  double at = chains_[chain].at_s;
  if (!options_.arrivals.empty()) at = options_.arrivals[chain];
  return at < 0 ? 0 : start_ns_ + static_cast<int64_t>(at * 1e9);
}

Status WorkloadRun::Start(size_t chain, size_t turn, int64_t scheduled_ns) {
  const size_t index = chains_[chain].requests[turn];
  const load::PlannedRequest& planned = workload_.requests[index];
  Active& active = active_[index];
  active.chain = chain;
  active.turn = turn;
  active.answers_wanted = turn + 1 < chains_[chain].requests.size();
  active.open_choices = options_.num_choices;
  active.choice_open.assign(static_cast<size_t>(options_.num_choices), true);
  GenerationRequest request;
  VIVACE_ASSIGN(request.prompt, encoder_.Prompt(planned, &said_[chain]));
  request.num_choices = options_.num_choices;
  request.sampling.temperature = options_.temperature;
  request.sampling.ignore_eos = options_.ignore_eos;
  request.sampling.max_tokens = std::max(planned.output_tokens, 1);
  request.sampling.seed = options_.seed + index;
  request.sampling.seeded = true;
  load::RequestRecord& record = active.record;
  record.index = static_cast<int32_t>(index);
  record.conversation = planned.conversation;
  record.wanted_prompt_tokens = planned.prompt_tokens;
  record.wanted_output_tokens = planned.output_tokens * options_.num_choices;
  record.prompt_tokens = static_cast<int32_t>(request.prompt.size());
  record.chunk_ns.reserve(static_cast<size_t>(request.sampling.max_tokens) + 1);
  record.chunk_tokens.reserve(static_cast<size_t>(request.sampling.max_tokens) + 1);
  record.choices = options_.num_choices;
  record.counted = true;
  record.sent_ns = SteadyNanos();
  record.scheduled_ns = scheduled_ns > 0 ? scheduled_ns : record.sent_ns;
  auto submitted = engine_.Submit(std::move(request), &active);
  if (!submitted) {
    submitted.error().message =
        fmt::format("request {} of {}: {}", index + 1, workload_.name, submitted.error().message);
    return tl::unexpected<Error>(std::move(submitted.error()));
  }
  active.request = std::move(*submitted);
  submitted_ += 1;
  return {};
}

Status WorkloadRun::StartDue() {
  while (!AtEnd() && (options_.max_concurrency == 0 || running_ < options_.max_concurrency)) {
    const int64_t due = DueNs(next_chain_);
    if (due > SteadyNanos()) break;
    int64_t scheduled = due;
    if (scheduled == 0) {
      scheduled = start_ns_;
      if (!free_ns_.empty()) {
        scheduled = free_ns_.back();
        free_ns_.pop_back();
      }
    }
    running_ += 1;
    VIVACE_RETURN_IF_ERROR(Start(next_chain_++, 0, scheduled));
  }
  return {};
}

Status WorkloadRun::TakeEnded() {
  for (; taken_ < num_ended_.load(std::memory_order_acquire); ++taken_) {
    Active& active = active_[ended_[taken_]];
    active.ended = true;
    load::RequestRecord& record = active.record;
    const bool good = record.finish_reason == "stop" || record.finish_reason == "length";
    record.outcome = good                              ? load::Outcome::kCompleted
                     : record.finish_reason == "error" ? load::Outcome::kCut
                                                       : load::Outcome::kNotRun;
    if (record.outcome == load::Outcome::kCut)
      record.reason = "the model computed something that is not a number";
    if (record.outcome == load::Outcome::kNotRun) record.reason = "the run was ended before it";
    if (options_.progress) options_.progress(taken_ + 1, active_.size());
    if (good && active.answers_wanted && !partial_) {
      encoder_.Answer(workload_.requests[static_cast<size_t>(record.index)],
                      active.request->request.prompt, active.answer, &said_[active.chain]);
      VIVACE_RETURN_IF_ERROR(Start(active.chain, active.turn + 1, record.ended_ns));
    } else {
      said_[active.chain] = {};
      running_ -= 1;
      free_ns_.push_back(record.ended_ns);
    }
    active.request.reset();
  }
  return {};
}

void WorkloadRun::AbortAll() {
  partial_ = true;
  for (Active& active : active_) {
    if (active.request != nullptr && !active.ended) engine_.Abort(active.request);
  }
}

void WorkloadRun::Wait() {
  auto most = std::chrono::nanoseconds(kPoll);
  if (!AtEnd() && (options_.max_concurrency == 0 || running_ < options_.max_concurrency)) {
    const int64_t due = DueNs(next_chain_);
    if (due > 0)
      most = std::min(most, std::chrono::nanoseconds(std::max<int64_t>(due - SteadyNanos(), 0)));
  }
  if (news_.try_acquire_for(most)) {
    while (news_.try_acquire()) {
    }
  }
}

Status WorkloadRun::Run(OfflineRun* run) {
  start_ns_ = SteadyNanos();
  const int64_t end_ns = options_.most_seconds > 0
                             ? start_ns_ + static_cast<int64_t>(options_.most_seconds * 1e9)
                             : kNever;
  Status status = StartDue();
  while (status && (!AtEnd() || taken_ < submitted_)) {
    Wait();
    status = TakeEnded();
    if (status) status = StartDue();
    const bool stopped = options_.stop != nullptr && options_.stop->load();
    if (!partial_ && (stopped || SteadyNanos() >= end_ns)) AbortAll();
  }
  if (!status) {  // nothing may be left that points here
    AbortAll();
    while (num_ended_.load(std::memory_order_acquire) < submitted_) Wait();
    return status;
  }
  int64_t last = start_ns_;
  for (Active& active : active_) {
    if (active.record.sent_ns == 0) {
      active.record.index = static_cast<int32_t>(&active - active_.data());
      active.record.reason = "the run was ended before it";
    }
    last = std::max(last, active.record.ended_ns);
    run->records.push_back(std::move(active.record));
  }
  run->elapsed_s = static_cast<double>(last - start_ns_) * 1e-9;
  run->partial = partial_;
  return {};
}

double Share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

// The counters of the last steps are published when the engine has found nothing more to do.
EngineStats SettledStats(const Engine& engine) {
  const int64_t end = SteadyNanos() + kMostSettleNs;
  EngineStats stats = engine.stats();
  while ((stats.running > 0 || stats.waiting > 0) && SteadyNanos() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    stats = engine.stats();
  }
  return stats;
}

}  // namespace

EngineUse UseOf(const std::vector<load::RequestRecord>& records, double elapsed_s,
                const std::vector<RecordedStep>& steps, const SchedulerCounts& counts) {
  EngineUse use;
  std::vector<double> ms;
  int64_t total_ns = 0, answer_ns = 0, kernel_ns = 0, sample_ns = 0;
  double weighted = 0, tokens = 0;
  for (const RecordedStep& step : steps) {
    ms.push_back(static_cast<double>(step.ns) * 1e-6);
    total_ns += step.ns;
    kernel_ns += step.times.kernel_ns;
    sample_ns += step.times.sample_ns;
    tokens += step.shape.decodes + step.shape.prompt_rows;
    use.peak_batch = std::max(use.peak_batch, step.shape.decodes);
    use.peak_step_tokens =
        std::max(use.peak_step_tokens, step.shape.decodes + step.shape.prompt_rows);
    if (step.shape.decodes == 0) continue;
    answer_ns += step.ns;
    weighted += static_cast<double>(step.ns) * step.shape.decodes;
  }
  const load::Distribution times = load::Describe(std::move(ms));
  use.steps = static_cast<int64_t>(steps.size());
  use.mean_step_ms = times.mean;
  use.p99_step_ms = times.p99;
  if (answer_ns > 0) use.mean_batch = weighted / static_cast<double>(answer_ns);
  if (use.steps > 0) use.mean_step_tokens = tokens / static_cast<double>(use.steps);
  double queued_ms = 0;
  for (const load::RequestRecord& record : records)
    queued_ms += std::max(record.server_queue_ms, 0.0);
  if (elapsed_s > 0) {
    use.mean_waiting = queued_ms * 1e-3 / elapsed_s;
    use.busy_share = static_cast<double>(total_ns) * 1e-9 / elapsed_s;
  }
  use.preemptions = counts.preemptions;
  use.prefix_hit_rate = Share(counts.prefix_hits, counts.prefix_queries);
  use.kernel_share = Share(kernel_ns, total_ns);
  use.sample_share = Share(sample_ns, total_ns);
  return use;
}

OfflineEngine::OfflineEngine(LoadPlan plan, ModelText text)
    : plan_(std::move(plan)), text_(std::move(text)) {}

OfflineEngine::~OfflineEngine() {
  if (engine_ != nullptr) engine_->Stop();
}

Result<std::unique_ptr<OfflineEngine>> OfflineEngine::Load(EngineConfig config,
                                                           const model::ModelFile& file,
                                                           const ModelText& text, bool with_cost,
                                                           const LoadProgress& progress) {
  config.max_queued_requests = 1 << 20;
  config.max_queued_tokens = int64_t{1} << 40;
  VIVACE_RETURN_IF_ERROR(Validate(config));
  VIVACE_ASSIGN(LoadPlan plan, PlanLoad(config, file, AvailableMemory()));
  std::optional<ModelCost> cost;
  if (with_cost) {
    VIVACE_ASSIGN(cost, CostOf(file, *plan.ops, plan.memory.kv));
  }
  std::unique_ptr<OfflineEngine> offline(new OfflineEngine(std::move(plan), text));
  VIVACE_ASSIGN(auto executor, CreateCpuExecutor(config, file, text.eos_ids, progress));
  auto recorder = std::make_unique<StepRecorder>(std::move(executor), std::move(cost));
  offline->recorder_ = recorder.get();
  VIVACE_ASSIGN(offline->engine_, Engine::Start(config, std::move(recorder), text.eos_ids));
  offline->engine_->OnReady([target = offline.get()] {
    target->in_news_.store(true);
    if (target->on_news_) target->on_news_();
    target->in_news_.store(false);
  });
  return offline;
}

Result<OfflineRun> OfflineEngine::Run(const load::Workload& workload,
                                      const OfflineOptions& options) {
  const size_t chains = load::ChainsOf(workload).size();
  if (!options.arrivals.empty() && options.arrivals.size() != chains) {
    return Fail(ErrorCode::kInternal, "arrivals_mismatch", "", "{} arrivals for {} chains",
                options.arrivals.size(), chains);
  }
  OfflineRun run;
  if (chains == 0) return run;
  const EngineStats before = SettledStats(*engine_);
  recorder_->Clear();
  WorkloadRun work(engine_.get(), &text_, workload, options);
  // The engine thread is parked, and sees this when a request wakes it.
  on_news_ = [&work] { work.OnNews(); };
  const Status done = work.Run(&run);
  const EngineStats after = SettledStats(*engine_);
  while (in_news_.load()) std::this_thread::yield();  // the call that told of the last end
  on_news_ = {};
  VIVACE_RETURN_IF_ERROR(done);
  run.use = UseOf(run.records, run.elapsed_s, recorder_->steps(),
                  {.preemptions = after.preemptions - before.preemptions,
                   .prefix_queries = after.prefix_queries - before.prefix_queries,
                   .prefix_hits = after.prefix_hits - before.prefix_hits});
  return run;
}

double OfflineEngine::LeastSeconds(const MachineLimits& limits) const {
  double seconds = 0;
  for (const RecordedStep& step : recorder_->steps()) {
    const StepRates rates =
        RatesFor(limits, plan_.ops->isa, plan_.memory.kv.dtype, plan_.threads, step.cost.bytes);
    seconds += LimitOf(step.cost, rates).seconds;
  }
  return seconds;
}

}  // namespace vivace::bench
