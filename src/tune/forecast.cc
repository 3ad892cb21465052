#include "tune/forecast.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/rng.h"
#include "load/chains.h"

namespace vivace::tune {
namespace {

constexpr TokenId kSampled = 1;
constexpr uint64_t kNoiseSeed = 7;
constexpr int64_t kStartNs = kNanosPerSecond;  // a record's 0 means "did not happen"
constexpr int64_t kLookEach = 1024;            // steps
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

class ForecastRun {
 public:
  ForecastRun(const ForecastOptions& options, const Traffic& traffic)
      : options_(options),
        traffic_(traffic),
        chains_(load::ChainsOf(traffic.workload)),
        said_(chains_.size()),
        live_(traffic.workload.requests.size()),
        scheduler_(options.scheduler) {
    scheduler_.Reserve(&plan_, &changes_, &effects_);
  }

  Result<bench::OfflineRun> Run();

 private:
  struct Live {
    load::RequestRecord record;
    size_t chain = 0, turn = 0;
    std::vector<TokenId> prompt;
  };

  int64_t DueNs(size_t chain) const;
  Status StartDue();
  Status Start(size_t chain, size_t turn, int64_t scheduled_ns);
  int64_t StepNs() const;
  void Step();
  Status TakeOutputs();
  Status End(Live* live);

  const ForecastOptions& options_;
  const Traffic& traffic_;
  const std::vector<load::Chain> chains_;
  std::vector<std::vector<TokenId>> said_;  // of conversations with turns to come
  std::vector<Live> live_;
  Scheduler scheduler_;
  StepPlan plan_;
  PlanChanges changes_;
  StepResult result_;
  Effects effects_;
  std::vector<bench::RecordedStep> steps_;
  int64_t now_ns_ = kStartNs;
  size_t next_chain_ = 0;
  int32_t running_ = 0;
  std::vector<int64_t> free_ns_;
};

int64_t ForecastRun::DueNs(size_t chain) const {
  double at = chains_[chain].at_s;
  if (!traffic_.arrivals.empty()) at = traffic_.arrivals[chain];
  return at < 0 ? 0 : kStartNs + static_cast<int64_t>(at * 1e9);
}

Status ForecastRun::Start(size_t chain, size_t turn, int64_t scheduled_ns) {
  const size_t index = chains_[chain].requests[turn];
  const load::PlannedRequest& planned = traffic_.workload.requests[index];
  Live& live = live_[index];
  live.chain = chain;
  live.turn = turn;
  live.prompt = said_[chain];
  const std::vector<TokenId>& added = traffic_.turns[index];
  live.prompt.insert(live.prompt.end(), added.begin(), added.end());
  const auto prompt_len = static_cast<int32_t>(live.prompt.size());
  const int32_t room = options_.scheduler.max_model_len - prompt_len;
  const int32_t max_tokens = std::min(std::max(planned.output_tokens, 1), room);
  if (max_tokens < 1 || !scheduler_.CanEverFit(prompt_len, max_tokens)) {
    return Fail(ErrorCode::kInvalidArgument, "context_length_exceeded", "",
                "request {} of {} has {} prompt and {} output tokens, more than the context or the "
                "cache holds",
                index + 1, traffic_.workload.name, prompt_len, planned.output_tokens);
  }
  load::RequestRecord& record = live.record;
  record.index = static_cast<int32_t>(index);
  record.conversation = planned.conversation;
  record.scheduled_ns = scheduled_ns;
  record.sent_ns = now_ns_;
  record.wanted_output_tokens = planned.output_tokens;
  record.prompt_tokens = prompt_len;
  record.counted = true;
  scheduler_.Add({.key = index + 1,
                  .group = index + 1,
                  .choice = 0,
                  .priority = 0,
                  .prompt = live.prompt,
                  .max_tokens = max_tokens,
                  .min_tokens = 0,
                  .stop_ids = {},
                  .cache_salt = {},
                  .adapter = {},
                  .prompt_logprobs = false});
  return {};
}

Status ForecastRun::StartDue() {
  while (next_chain_ < chains_.size() &&
         (traffic_.max_concurrency == 0 || running_ < traffic_.max_concurrency)) {
    const int64_t due = DueNs(next_chain_);
    if (due > now_ns_) break;
    int64_t scheduled = due;
    if (scheduled == 0) {
      scheduled = kStartNs;
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

int64_t ForecastRun::StepNs() const {
  const double drawn = UniformDraw(kNoiseSeed, 0, static_cast<int32_t>(steps_.size()));
  const double factor = 1 + options_.noise * (2 * drawn - 1);
  return std::max<int64_t>(static_cast<int64_t>(options_.step_seconds(plan_) * factor * 1e9), 1);
}

void ForecastRun::Step() {
  for (const PlanChanges::Bound& bound : changes_.bound) {
    load::RequestRecord& record = live_[bound.key - 1].record;
    if (!bound.first_time) continue;
    record.server_queue_ms = static_cast<double>(now_ns_ - record.sent_ns) * 1e-6;
    record.cached_tokens = bound.cached_tokens;
  }
  bench::RecordedStep step{.shape = bench::ShapeOf(plan_)};
  step.ns = StepNs();
  now_ns_ += step.ns;
  step.ended_ns = now_ns_;
  step.times = {.kernel_ns = step.ns, .sample_ns = 0, .total_ns = step.ns};
  steps_.push_back(step);
  result_.Clear();
  result_.step = plan_.step;
  result_.elapsed_ns = step.ns;
  for (size_t i = 0; i < plan_.items.size(); ++i) {
    if (plan_.items[i].sample)
      result_.sampled.push_back({.item = static_cast<int32_t>(i), .token = kSampled});
  }
  scheduler_.Commit(plan_, result_, &effects_);
}

Status ForecastRun::End(Live* live) {
  load::RequestRecord& record = live->record;
  record.ended_ns = now_ns_;
  record.outcome = load::Outcome::kCompleted;
  if (live->turn + 1 < chains_[live->chain].requests.size()) {
    std::vector<TokenId>& said = said_[live->chain];
    said = std::move(live->prompt);
    said.insert(said.end(), static_cast<size_t>(record.output_tokens), kSampled);
    return Start(live->chain, live->turn + 1, now_ns_);
  }
  live->prompt = {};
  said_[live->chain] = {};
  running_ -= 1;
  free_ns_.push_back(now_ns_);
  return {};
}

Status ForecastRun::TakeOutputs() {
  for (const Effects::Output& output : effects_.outputs) {
    Live& live = live_[output.key - 1];
    if (output.token >= 0) {
      load::RequestRecord& record = live.record;
      if (record.first_ns == 0) record.first_ns = now_ns_;
      record.last_ns = now_ns_;
      record.chunk_ns.push_back(now_ns_);
      record.chunk_tokens.push_back(1);
      record.output_tokens += 1;
    }
    if (output.finish != SeqFinish::kNone) VIVACE_RETURN_IF_ERROR(End(&live));
  }
  return {};
}

Result<bench::OfflineRun> ForecastRun::Run() {
  const int64_t end_ns = options_.most_seconds > 0
                             ? kStartNs + static_cast<int64_t>(options_.most_seconds * 1e9)
                             : kNever;
  bench::OfflineRun run;
  for (int64_t step = 1;; ++step) {
    if (step % kLookEach == 0 && options_.over && options_.over()) {
      return Fail(ErrorCode::kUnavailable, "forecast_stopped", "", "the forecast was stopped");
    }
    VIVACE_RETURN_IF_ERROR(StartDue());
    scheduler_.Plan(&plan_, &changes_);
    if (plan_.empty()) {
      if (next_chain_ == chains_.size()) break;
      now_ns_ = DueNs(next_chain_);  // idle until then
      continue;
    }
    if (now_ns_ >= end_ns) {
      run.partial = true;
      break;
    }
    Step();
    VIVACE_RETURN_IF_ERROR(TakeOutputs());
  }
  for (Live& live : live_) run.records.push_back(std::move(live.record));
  run.elapsed_s = static_cast<double>(now_ns_ - kStartNs) * 1e-9;
  const SchedulerStats stats = scheduler_.stats();
  run.use = bench::UseOf(run.records, run.elapsed_s, steps_,
                         {.preemptions = stats.preemptions,
                          .prefix_queries = stats.prefix_queries,
                          .prefix_hits = stats.prefix_hits});
  return run;
}

}  // namespace

Result<bench::OfflineRun> Forecast(const ForecastOptions& options, const Traffic& traffic) {
  return ForecastRun(options, traffic).Run();
}

}  // namespace vivace::tune
