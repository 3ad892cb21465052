#include "tune/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/cpu.h"
#include "bench/machine_limits.h"
#include "bench/offline.h"
#include "bench/step_samples.h"
#include "engine/load_plan.h"
#include "engine/step_loop.h"
#include "engine/weight_cache/entry_key.h"
#include "kernels/fastest_isa.h"
#include "load/arrivals.h"
#include "load/figures.h"
#include "load/random.h"
#include "tune/candidate.h"
#include "tune/forecast.h"
#include "tune/journal.h"
#include "tune/step_cost.h"
#include "tune/traffic.h"

namespace vivace::tune {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

constexpr double kCalibrationShare = 0.25, kMostCalibrationS = 60, kMostEachS = 8;
constexpr double kMostCalibratingShare = 0.4;  // of the budget, loading too
constexpr double kTrialsInBudget = 40;         // the length of one follows from this
constexpr double kLeastTrialS = 1, kMostTrialS = 60;
constexpr double kForecastShare = 0.15;  // of the budget
constexpr double kExploringShare = 0.7;  // likewise: what is left is for the race
constexpr size_t kFirstRequests = 64, kLeastRequests = 8, kMostRequests = 20'000;
constexpr double kHopeless = 3;          // times the leader's time after which a trial is given up
constexpr double kLeastHopelessS = 0.5;  // and never before
constexpr double kUnknownSlowS = 10;     // beside
constexpr double kUnknownSlow = 5;       // times the forecast's, before there is a leader
constexpr double kChance = 0.7;  // of the best forecast: below, a setting is not forecast again
constexpr uint64_t kOrderSeed = 11;
constexpr size_t kStepsKept = 128;  // of a trial, for fitting
constexpr size_t kWarmUpRequests = 8;
constexpr size_t kWarmUpPrompt = 64;
constexpr int32_t kWarmUpTokens = 4;
constexpr double kLeastNoise = 0.01, kMostNoise = 0.1;  // of steps, in forecasts
constexpr size_t kExploredShare = 5;                    // one in so many settings,
constexpr size_t kLeastExplored = 6, kMostExplored = 40;

constexpr double kShortest = 1e-3;  // seconds: 0 would be no bound
constexpr char kBudgetEnded[] = "the budget ended";

using CostKey = std::pair<int32_t, std::string>;  // threads, cache

double SecondsSince(int64_t ns) { return static_cast<double>(SteadyNanos() - ns) * 1e-9; }

class Tuner {
 public:
  Tuner(const TuneOptions& options, const model::ModelFile& file, const ModelText& text)
      : options_(options),
        file_(file),
        text_(text),
        objective_(options.slo, options.request_rate > 0) {}

  Result<TuneResult> Run();

 private:
  struct CostOfKind {
    std::vector<bench::StepSample> calibration, trials;
    StepCost cost;
  };

  json::object Header() const;
  Status OpenJournal();
  Status ReadJournal();
  Status MakeTraffic(size_t requests, Traffic* traffic);
  Status ChooseTraffic();
  Status Calibrate();
  Status CalibrateOne(const CostKey& key, double seconds);
  void Fit(CostOfKind* kind) const;
  Result<bench::OfflineRun> ForecastOf(const Setting& setting, const Traffic& traffic) const;
  Status MakeCandidates();
  Status ForecastAgain(const CostKey& key);
  Status Trials();
  Status Replay();
  Result<std::optional<Trial>> Measure(size_t candidate);
  bool HasTimeFor(size_t candidate) const;
  Status KeepOnlyTimed();
  Status WarmUp(bench::OfflineEngine* engine);
  double MostSeconds(size_t candidate) const;
  void TakeTrial(size_t candidate, Trial trial);
  Status LearnFromTrials();
  Result<TuneResult> Finish();

  EngineConfig ConfigOf(const Setting& setting) const {
    EngineConfig config = options_.engine;
    Apply(setting, &config);
    return config;
  }
  CostKey KeyOf(const Setting& s) const { return {s.threads, std::string(KvName(s))}; }
  // Nothing more is to be begun. What an earlier session measured is reported whatever it takes.
  bool Over() const { return Stopped() || (OutOfTime() && !replaying_); }
  int64_t DeadlineNs() const {
    return start_ns_ + static_cast<int64_t>(std::max(options_.budget_s - spent_before_s_, 0.0) *
                                            kNanosPerSecond);
  }
  double Spent() const { return spent_before_s_ + SecondsSince(start_ns_); }
  bool Stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  bool OutOfTime() const { return Spent() >= options_.budget_s; }
  void Tell(std::string doing) const;

  const TuneOptions& options_;
  const model::ModelFile& file_;
  const ModelText& text_;
  Objective objective_;
  const int64_t start_ns_ = SteadyNanos();
  double spent_before_s_ = 0;  // in earlier sessions
  std::optional<Journal> journal_;
  std::vector<Trial> replayed_;
  std::map<CostKey, CostOfKind> costs_;
  size_t requests_ = 0;  // of a trial; 0: not chosen yet
  Traffic traffic_;
  std::vector<Setting> settings_;  // that fit
  size_t space_size_ = 0, left_out_ = 0;
  std::vector<Candidate> candidates_;
  std::vector<double> forecasts_;                      // their scores by the last fit
  std::vector<std::pair<Setting, Setting>> standing_;  // settings, and what stands for them
  size_t defaults_ = 0;
  std::optional<Search> search_;
  int trials_ = 0;
  int fitted_at_ = 0;  // trials
  bool replaying_ = false;
  double prepare_s_ = 0;  // loading and warming up, the last time
  std::string why_done_;
  std::vector<std::string> notes_;
};

void Tuner::Tell(std::string doing) const {
  if (!options_.progress) return;
  TuneProgress progress{.doing = std::move(doing),
                        .share = std::min(Spent() / options_.budget_s, 1.0)};
  if (search_ && search_->leader()) {
    const size_t leader = *search_->leader();
    progress.leading = fmt::format("{:.4g} {}: {}", search_->score(leader), objective_.unit(),
                                   Name(candidates_[leader].setting));
  }
  options_.progress(progress);
}

json::object Tuner::Header() const {
  const weight_cache::SourceIdentity model = weight_cache::IdentityOf(file_);
  const load::DatasetOptions& d = options_.dataset;
  const EngineConfig& e = options_.engine;
  json::array slo;
  for (const load::Slo& term : options_.slo) slo.push_back(json::value(load::Name(term)));
  return {
      {"vivace", VIVACE_VERSION},
      {"model",
       {{"size", model.size},
        {"header", model.header_digest},
        {"sample", model.sample_digest},
        {"quantization", e.quantization ? static_cast<int>(*e.quantization) : -1}}},
      {"machine",
       {{"cpu", bench::CpuName()},
        {"cpus", UsableCpus()},
        {"isa", Name(e.isa.value_or(kernels::FastestIsa()))}}},
      {"engine flags",
       {{"max_model_len", e.max_model_len},
        {"kv_cache_memory_bytes", e.kv_cache_memory_bytes},
        {"num_kv_blocks", e.num_kv_blocks},
        {"block_size", e.block_size},
        {"prefix_caching", e.enable_prefix_caching}}},
      {"traffic",
       {{"dataset", d.name},
        {"path", d.path},
        {"num_prompts", d.num_prompts},
        {"seed", d.seed},
        {"input_len", d.input_len},
        {"output_len", d.output_len},
        {"input_len_std", d.input_len_std},
        {"output_len_std", d.output_len_std},
        {"range_ratio", d.range_ratio},
        {"prefix_len", d.prefix_len},
        {"num_prefixes", d.num_prefixes},
        {"turns", d.turns},
        {"request_rate", options_.request_rate},
        {"burstiness", options_.burstiness},
        {"max_concurrency", options_.max_concurrency},
        {"temperature", double{options_.temperature}},
        {"ignore_eos", options_.ignore_eos}}},
      {"objective", slo},
  };
}

Status Tuner::OpenJournal() {
  std::error_code error;
  fs::create_directories(options_.out, error);
  if (!fs::is_directory(options_.out, error)) {
    return Fail(ErrorCode::kIo, "io_error", "out",
                "--out is '{}', which is no folder and cannot be made", options_.out);
  }
  VIVACE_ASSIGN(Journal journal,
                Journal::Open((fs::path(options_.out) / "journal.jsonl").string(), Header()));
  journal_.emplace(std::move(journal));
  if (journal_->dropped_line())
    notes_.emplace_back("the journal's last line had been cut off and was dropped");
  return ReadJournal();
}

Status Tuner::ReadJournal() {
  for (const json::object& entry : journal_->entries()) {
    const auto broken = [&](const Error& why) {
      return Fail(ErrorCode::kCorruptData, "corrupt_journal", "out",
                  "{}: an entry is damaged ({}); give another --out",
                  (fs::path(options_.out) / "journal.jsonl").string(), why.message);
    };
    const json::value* kind = entry.if_contains("kind");
    const json::value* took = entry.if_contains("took_s");
    if (took != nullptr && took->is_double()) spent_before_s_ += std::max(took->get_double(), 0.0);
    if (kind == nullptr || !kind->is_string()) continue;
    if (kind->get_string() == "trial") {
      auto trial = TrialFromJson(entry);
      if (!trial) return broken(trial.error());
      replayed_.push_back(std::move(*trial));
      replaying_ = true;
    } else if (kind->get_string() == "calibration") {
      const json::value* setting = entry.if_contains("setting");
      const json::value* steps = entry.if_contains("steps");
      auto of = SettingFromJson(setting == nullptr ? json::value() : *setting);
      auto samples = SamplesFromJson(steps == nullptr ? json::value() : *steps);
      if (!of) return broken(of.error());
      if (!samples) return broken(samples.error());
      costs_[KeyOf(*of)].calibration = std::move(*samples);
    } else if (kind->get_string() == "plan") {
      const json::value* requests = entry.if_contains("requests");
      if (requests != nullptr && requests->is_int64() && requests->get_int64() > 0)
        requests_ = std::min(static_cast<size_t>(requests->get_int64()), kMostRequests);
    }
  }
  return {};
}

Status Tuner::MakeTraffic(size_t requests, Traffic* traffic) {
  load::DatasetOptions dataset = options_.dataset;
  dataset.num_prompts = requests;
  bench::TokenizerCounter counter(text_.tokenizer,
                                  static_cast<int32_t>(text_.tokenizer->vocab_size()));
  VIVACE_ASSIGN(traffic->workload, load::MakeWorkload(dataset, &counter));
  if (traffic->workload.requests.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "dataset-name",
                "the dataset has no request to send");
  }
  traffic->max_concurrency = options_.max_concurrency;
  traffic->arrivals.clear();
  if (options_.request_rate > 0) {
    traffic->arrivals = load::Arrivals({.rate = options_.request_rate,
                                        .burstiness = options_.burstiness,
                                        .seed = options_.dataset.seed},
                                       bench::CountConversations(traffic->workload));
  }
  return FillTurns(text_, traffic);
}

// As many requests as the setting that `serve` would use computes in the time of a trial, by the
// forecast; in a closed loop at least two rounds of them.
Status Tuner::ChooseTraffic() {
  if (requests_ == 0 && options_.dataset.num_prompts > 0) requests_ = options_.dataset.num_prompts;
  if (requests_ == 0) {
    const auto concurrency = static_cast<size_t>(options_.max_concurrency);
    Traffic first;
    VIVACE_RETURN_IF_ERROR(MakeTraffic(std::max(kFirstRequests, 2 * concurrency), &first));
    VIVACE_ASSIGN(const bench::OfflineRun run, ForecastOf(SettingOf(options_.engine), first));
    const double trial_s =
        std::clamp(options_.budget_s / kTrialsInBudget, kLeastTrialS, kMostTrialS);
    const double each_s =
        std::max(run.elapsed_s / static_cast<double>(first.workload.requests.size()), 1e-6);
    requests_ = std::clamp(static_cast<size_t>(std::min(trial_s / each_s, 1e6)),
                           std::max(kLeastRequests, 2 * concurrency), kMostRequests);
  }
  VIVACE_RETURN_IF_ERROR(MakeTraffic(requests_, &traffic_));
  objective_ = Objective(options_.slo, traffic_.open_loop());
  return {};
}

Status Tuner::CalibrateOne(const CostKey& key, double seconds) {
  Setting setting = SettingOf(options_.engine);
  setting.threads = key.first;
  setting.kv_cache_dtype = kernels::ParseKvDType(key.second);  // "auto" is none
  const int64_t start = SteadyNanos();
  const TypicalLengths typical = TypicalOf(traffic_);
  const int32_t most = *std::ranges::max_element(options_.space.max_num_seqs);
  const auto sequences = static_cast<int32_t>(std::min<size_t>(
      traffic_.max_concurrency > 0 ? static_cast<size_t>(traffic_.max_concurrency) : 64,
      static_cast<size_t>(most)));
  VIVACE_ASSIGN(const auto samples, bench::SampleSteps({.engine = ConfigOf(setting),
                                                        .input_len = typical.input,
                                                        .output_len = typical.output,
                                                        .sequences = sequences,
                                                        .step_tokens = *std::ranges::max_element(
                                                            options_.space.max_num_batched_tokens),
                                                        .most_seconds = seconds,
                                                        .stop = options_.stop,
                                                        .deadline_ns = DeadlineNs()},
                                                       file_));
  if (Over() || samples.empty()) return {};
  costs_[key].calibration = samples;
  return journal_->Append(
      "calibration",
      {{"setting", ToJson(setting)}, {"steps", ToJson(samples)}, {"took_s", SecondsSince(start)}});
}

Status Tuner::Calibrate() {
  std::vector<CostKey> keys = {KeyOf(SettingOf(options_.engine))};
  for (const Setting& setting : settings_) {
    if (std::ranges::count(keys, KeyOf(setting)) == 0) keys.push_back(KeyOf(setting));
  }
  const double all = std::min(kMostCalibrationS, options_.budget_s * kCalibrationShare);
  const double each = std::min(all / static_cast<double>(keys.size()), kMostEachS);
  const int64_t start = SteadyNanos();
  for (const CostKey& key : keys) {
    // Loading is not in `each`, and may take longer.
    const bool late = SecondsSince(start) > kMostCalibratingShare * options_.budget_s;
    if (costs_[key].calibration.empty() && !Over() && !(late && key != keys.front())) {
      Tell(fmt::format("timing steps with {} threads, cache {}", key.first, key.second));
      VIVACE_RETURN_IF_ERROR(CalibrateOne(key, each));
    }
    Fit(&costs_[key]);
  }
  return KeepOnlyTimed();
}

// Nothing can be said of settings whose steps there was no time to measure.
Status Tuner::KeepOnlyTimed() {
  const auto dropped = std::erase_if(
      settings_, [this](const Setting& s) { return costs_.at(KeyOf(s)).calibration.empty(); });
  if (dropped > 0 && !Over()) {
    notes_.push_back(
        fmt::format("{} settings were not looked at: loading the model for each number of threads "
                    "and kind of cache took too long; give a larger --budget",
                    dropped));
  }
  return {};
}

void Tuner::Fit(CostOfKind* kind) const {
  std::vector<bench::StepSample> samples = kind->calibration;
  samples.insert(samples.end(), kind->trials.begin(), kind->trials.end());
  kind->cost = StepCost::Fit(samples);
}

Result<bench::OfflineRun> Tuner::ForecastOf(const Setting& setting, const Traffic& traffic) const {
  const EngineConfig config = ConfigOf(setting);
  VIVACE_ASSIGN(const LoadPlan plan, PlanLoad(config, file_, AvailableMemory()));
  const StepCost& cost = costs_.at(KeyOf(setting)).cost;
  return Forecast(
      {.scheduler = SchedulerConfigOf(config, plan.memory.limits),
       .step_seconds = [&cost](const StepPlan& plan) { return cost.Seconds(bench::ShapeOf(plan)); },
       .noise = std::clamp(2 * cost.error(), kLeastNoise, kMostNoise),
       .over = [this] { return Over(); }},
      traffic);
}

// Of a run that was ended early the tokens of unfinished answers count too: it is behind, not at 0.
Measured MeasuredOf(const bench::OfflineRun& run) {
  Measured measured{.figures = load::ComputeFigures(run.records, {}),
                    .use = run.use,
                    .elapsed_s = run.elapsed_s,
                    .partial = run.partial};
  if (!run.partial || run.elapsed_s <= 0) return measured;
  int64_t tokens = 0;
  for (const load::RequestRecord& record : run.records) tokens += record.output_tokens;
  measured.figures.output_throughput = static_cast<double>(tokens) / run.elapsed_s;
  return measured;
}

// The space's order.
bool InOrder(const Setting& a, const Setting& b) {
  const auto key = [](const Setting& s) {
    return std::tuple(-s.threads, std::string(KvName(s)), s.max_itl_ms, s.max_num_batched_tokens,
                      s.max_num_seqs);
  };
  return key(a) < key(b);
}

// `own` first, the others shuffled: where time ends early, what was seen is spread over all.
std::vector<Setting> InAnyOrder(std::vector<Setting> settings, const Setting& own) {
  load::Random random(kOrderSeed, 0);
  std::erase(settings, own);
  for (size_t i = settings.size(); i > 1; --i)
    std::swap(settings[i - 1], settings[random.Below(i)]);
  settings.insert(settings.begin(), own);
  return settings;
}

double Distance(const Setting& a, const Setting& b) {
  const Place x = PlaceOf(a), y = PlaceOf(b);
  double square = 0;
  for (size_t i = 0; i < x.size(); ++i) square += (x[i] - y[i]) * (x[i] - y[i]);
  return square;
}

// Forecasts every setting; those whose forecasts are equal to the nanosecond never met the bounds
// in which they differ, and the one nearest to the defaults stands for them.
Status Tuner::MakeCandidates() {
  const Setting own = SettingOf(options_.engine);
  std::map<std::tuple<int32_t, std::string, int64_t, double>, size_t> alike;
  const int64_t start = SteadyNanos();
  size_t done = 0;
  std::vector<size_t> group;
  std::vector<Setting> settings = InAnyOrder(settings_, own);
  // What was measured before is forecast whatever it takes: its trials are to be reported.
  const auto measured =
      std::stable_partition(settings.begin(), settings.end(), [&](const Setting& s) {
        return s == own || std::ranges::count(replayed_, s, &Trial::setting) > 0;
      });
  const auto needed = static_cast<size_t>(measured - settings.begin());
  for (const Setting& setting : settings) {
    if (Over()) break;
    if (done >= needed && !options_.full_grid &&
        SecondsSince(start) > options_.budget_s * kForecastShare) {
      notes_.push_back(
          fmt::format("{} settings were not looked at: there was no time to forecast "
                      "them; give a larger --budget",
                      settings_.size() - done));
      break;
    }
    Tell(fmt::format("forecasting setting {} of {}", ++done, settings_.size()));
    const auto run = ForecastOf(setting, traffic_);
    if (!run) {
      if (Over()) break;
      if (setting == own) return tl::unexpected<Error>(run.error());
      left_out_ += 1;
      continue;
    }
    Candidate candidate{.setting = setting, .forecast = MeasuredOf(*run)};
    candidate.forecast_score = objective_.Of(candidate.forecast.figures, false);
    const auto key =
        std::tuple(setting.threads, std::string(KvName(setting)), run->use.steps, run->elapsed_s);
    const auto [found, fresh] = alike.emplace(key, candidates_.size());
    standing_.emplace_back(setting, setting);
    group.push_back(fresh || options_.full_grid ? candidates_.size() : found->second);
    if (group.back() == candidates_.size()) {
      candidates_.push_back(std::move(candidate));
      continue;
    }
    Candidate& other = candidates_[found->second];
    other.alike += 1;
    if (other.setting != own && Distance(setting, own) < Distance(other.setting, own))
      other.setting = setting;
  }
  for (size_t i = 0; i < standing_.size(); ++i) standing_[i].second = candidates_[group[i]].setting;
  std::ranges::sort(candidates_, InOrder, &Candidate::setting);
  for (const Candidate& candidate : candidates_)
    forecasts_.push_back(candidate.forecast_score.value);
  const auto found = std::ranges::find(candidates_, own, &Candidate::setting);
  defaults_ = static_cast<size_t>(found - candidates_.begin());
  return {};
}

// By the last fit. Of what has no chance the figure of an earlier fit is good enough.
Status Tuner::ForecastAgain(const CostKey& key) {
  const double best = *std::ranges::max_element(forecasts_);
  for (size_t i = 0; i < candidates_.size(); ++i) {
    Candidate& candidate = candidates_[i];
    if (KeyOf(candidate.setting) != key || forecasts_[i] < kChance * best || Over()) continue;
    const auto run = ForecastOf(candidate.setting, traffic_);
    if (!run && Over()) return {};
    if (!run) return tl::unexpected(run.error());
    const Measured forecast = MeasuredOf(*run);
    const Score score = objective_.Of(forecast.figures, false);
    forecasts_[i] = score.value;
    if (!candidate.trials.empty()) continue;  // what was foretold of it stays
    candidate.forecast = forecast;
    candidate.forecast_score = score;
  }
  return {};
}

// Steps that trials took make the costs better, where the workload really goes; after the 1st, 2nd,
// 4th, 8th ... trial.
Status Tuner::LearnFromTrials() {
  if (options_.full_grid || OutOfTime() || trials_ < 2 * fitted_at_ || trials_ == 0) return {};
  fitted_at_ = trials_;
  Tell("forecasting again");
  for (auto& [key, kind] : costs_) {
    if (kind.trials.empty()) continue;
    Fit(&kind);
    VIVACE_RETURN_IF_ERROR(ForecastAgain(key));
  }
  search_->Forecast(forecasts_);
  return {};
}

void Tuner::TakeTrial(size_t candidate, Trial trial) {
  trials_ += 1;
  const bool good = trial.error.empty();
  const Score score =
      good ? objective_.Of(trial.measured.figures, trial.measured.partial) : Score{};
  search_->Add(candidate, score.value);
  auto& steps = costs_[KeyOf(trial.setting)].trials;
  steps.insert(steps.end(), trial.steps.begin(), trial.steps.end());
  candidates_[candidate].trials.push_back(std::move(trial));
}

// A candidate whose time is this much worse than the leader's needs no exact figure; and none may
// take more than what is left, the first (which is the defaults) half of it.
double Tuner::MostSeconds(size_t candidate) const {
  const double left = std::max(options_.budget_s - Spent(), kShortest);
  if (options_.full_grid) return left;
  const auto leader = search_->leader();
  if (!leader) {
    const double forecast = candidates_[candidate].forecast.elapsed_s;
    return std::min(kUnknownSlow * forecast + kUnknownSlowS, left / 2);
  }
  const double best = candidates_[*leader].trials.front().measured.elapsed_s;
  return std::min(kHopeless * best + kLeastHopelessS, left);
}

// Whether it can be loaded and warmed up and compute at least a step before the budget ends, going
// by the last one that was.
bool Tuner::HasTimeFor(size_t candidate) const {
  const double step_s = candidates_[candidate].forecast.use.p99_step_ms * 1e-3;
  return Spent() + prepare_s_ + step_s < options_.budget_s;
}

// The first pages of the cache, the threads' stacks, the clock: not the trial's.
Status Tuner::WarmUp(bench::OfflineEngine* engine) {
  load::Workload warm{.name = "warm-up", .requests = {}};
  for (size_t i = 0; i < std::min(kWarmUpRequests, traffic_.turns.size()); ++i) {
    const auto prompt =
        std::span(traffic_.turns[i]).first(std::min(traffic_.turns[i].size(), kWarmUpPrompt));
    warm.requests.push_back(
        {.prompt = load::PromptIds(prompt.begin(), prompt.end()), .output_tokens = kWarmUpTokens});
  }
  VIVACE_ASSIGN(const bench::OfflineRun run,
                engine->Run(warm, {.temperature = options_.temperature,
                                   .most_seconds = std::clamp(options_.budget_s - Spent(),
                                                              kShortest, kMostTrialS),
                                   .stop = options_.stop}));
  engine->ResetPrefixCache();
  return {};
}

std::vector<bench::StepSample> SomeSteps(const std::vector<bench::RecordedStep>& steps) {
  std::vector<bench::StepSample> some;
  const size_t stride = steps.size() / kStepsKept + 1;
  for (size_t i = 0; i < steps.size(); i += stride)
    some.push_back({steps[i].shape, static_cast<double>(steps[i].ns) * 1e-9});
  return some;
}

// Nothing if the user stopped it or the budget ended before there was anything to compare: what was
// cut short is compared with nothing that was not.
Result<std::optional<Trial>> Tuner::Measure(size_t candidate) {
  const int64_t start = SteadyNanos();
  Trial trial{.setting = candidates_[candidate].setting};
  const auto engine = bench::OfflineEngine::Load(ConfigOf(trial.setting), file_, text_, false,
                                                 [this](uint64_t, uint64_t) { return !Over(); });
  if (!engine && Over()) return std::optional<Trial>();
  if (!engine) {
    trial.error = engine.error().message;
  } else {
    VIVACE_RETURN_IF_ERROR(WarmUp(engine->get()));
    prepare_s_ = SecondsSince(start);
    if (Over()) return std::optional<Trial>();
    VIVACE_ASSIGN(const bench::OfflineRun run,
                  (*engine)->Run(traffic_.workload, {.max_concurrency = traffic_.max_concurrency,
                                                     .arrivals = traffic_.arrivals,
                                                     .temperature = options_.temperature,
                                                     .ignore_eos = options_.ignore_eos,
                                                     .seed = options_.dataset.seed,
                                                     .most_seconds = MostSeconds(candidate),
                                                     .stop = options_.stop}));
    trial.measured = MeasuredOf(run);
    trial.steps = SomeSteps((*engine)->steps());
  }
  if (Stopped()) return std::optional<Trial>();
  const bool cut = OutOfTime() && trial.measured.partial;
  if (cut && (search_->leader() || trial.measured.figures.output_throughput <= 0)) {
    return std::optional<Trial>();
  }
  trial.took_s = SecondsSince(start);
  return std::optional<Trial>(std::move(trial));
}

// Trials of earlier sessions, as if they were made now.
Status Tuner::Replay() {
  for (Trial& trial : replayed_) {
    const auto standing =
        std::ranges::find(standing_, trial.setting, &std::pair<Setting, Setting>::first);
    if (standing == standing_.end()) continue;  // of a space that was narrowed since
    const auto found = std::ranges::find(candidates_, standing->second, &Candidate::setting);
    TakeTrial(static_cast<size_t>(found - candidates_.begin()), std::move(trial));
  }
  return LearnFromTrials();
}

Status Tuner::Trials() {
  std::vector<Place> places;
  for (const Candidate& candidate : candidates_) places.push_back(PlaceOf(candidate.setting));
  const size_t explored =
      std::clamp(settings_.size() / kExploredShare, kLeastExplored, kMostExplored);
  search_.emplace(std::move(places), std::vector<size_t>{defaults_},
                  SearchOptions{.most_explored = explored});
  search_->Forecast(forecasts_);
  VIVACE_RETURN_IF_ERROR(Replay());
  replaying_ = false;
  while (!Stopped()) {
    if (OutOfTime()) {
      why_done_ = kBudgetEnded;
      break;
    }
    std::optional<size_t> next;
    if (options_.full_grid) {
      const auto open =
          std::ranges::find_if(candidates_, [](const Candidate& c) { return c.trials.empty(); });
      if (open != candidates_.end()) next = static_cast<size_t>(open - candidates_.begin());
      why_done_ = "every setting was measured";
    } else {
      if (Spent() > kExploringShare * options_.budget_s) search_->EndExploring();
      next = search_->Next();
      why_done_ = search_->why_done();
    }
    if (!next) break;
    if (!HasTimeFor(*next)) {
      why_done_ = kBudgetEnded;
      break;
    }
    Tell(fmt::format("measuring {}", Name(candidates_[*next].setting)));
    const int64_t start = SteadyNanos();
    VIVACE_ASSIGN(std::optional<Trial> trial, Measure(*next));
    if (!trial) {
      why_done_ = kBudgetEnded;
      VIVACE_RETURN_IF_ERROR(journal_->Append("cut", {{"took_s", SecondsSince(start)}}));
      break;
    }
    VIVACE_RETURN_IF_ERROR(journal_->Append("trial", ToJson(*trial)));
    TakeTrial(*next, std::move(*trial));
    VIVACE_RETURN_IF_ERROR(LearnFromTrials());
  }
  return {};
}

Result<TuneResult> Tuner::Finish() {
  TuneResult result;
  for (Candidate& candidate : candidates_) {
    if (candidate.tried()) Summarise(objective_, &candidate);
  }
  if (search_ && search_->leader()) {
    result.any = true;
    result.winner = *search_->leader();
    result.rivals = search_->rivals();
    result.noise = search_->noise();
  }
  for (const auto& [setting, standing] : standing_) {
    const auto found = std::ranges::find(candidates_, standing, &Candidate::setting);
    if (found != candidates_.end())
      result.standing.emplace_back(setting, static_cast<size_t>(found - candidates_.begin()));
  }
  result.candidates = std::move(candidates_);
  MarkFront(&result.candidates);
  result.error = ErrorOfForecasts(result.candidates);
  result.defaults = defaults_;
  if (!costs_.empty()) result.step_error = costs_.rbegin()->second.cost.error();
  result.settings = space_size_;
  result.left_out = left_out_;
  result.trials = trials_;
  result.spent_s = Spent();
  result.interrupted = Stopped();
  result.resumed = journal_->resumed();
  if (why_done_.empty()) why_done_ = kBudgetEnded;
  result.why_done = Stopped() ? "it was interrupted" : why_done_;
  if (!result.any && !Stopped()) {
    notes_.push_back(fmt::format(
        "The budget of {:g} s ended before a setting was measured: give a larger --budget. The "
        "same command then goes on.",
        options_.budget_s));
  }
  if (result.any && result.candidates[result.winner].measured.partial) {
    notes_.emplace_back(
        "The winner's trial was cut short by the budget: its figures are of what had been computed "
        "by then.");
  }
  result.notes = std::move(notes_);
  result.workload = traffic_.workload.name;
  result.requests = traffic_.workload.requests.size();
  result.model = file_.path();
  result.machine = fmt::format("{}, {} usable processors, {}", bench::CpuName(), UsableCpus(),
                               Name(options_.engine.isa.value_or(kernels::FastestIsa())));
  result.objective = objective_.name();
  result.unit = objective_.unit();
  return result;
}

Result<TuneResult> Tuner::Run() {
  VIVACE_ASSIGN(std::vector<Setting> settings, SettingsOf(options_.space));
  space_size_ = settings.size();
  for (const Setting& setting : settings) {
    const EngineConfig config = ConfigOf(setting);
    VIVACE_RETURN_IF_ERROR(Validate(config));
    if (PlanLoad(config, file_, AvailableMemory())) {
      settings_.push_back(setting);
    } else {
      left_out_ += 1;
    }
  }
  VIVACE_RETURN_IF_ERROR(OpenJournal());
  // Typical lengths for the calibration; its requests are chosen by what was calibrated.
  VIVACE_RETURN_IF_ERROR(MakeTraffic(kFirstRequests, &traffic_));
  VIVACE_RETURN_IF_ERROR(Calibrate());
  if (Over()) return Finish();
  const bool planned = requests_ > 0;
  if (const Status chosen = ChooseTraffic(); !chosen && !Over())
    return tl::unexpected(chosen.error());
  if (Over()) return Finish();
  if (!planned) {
    VIVACE_RETURN_IF_ERROR(
        journal_->Append("plan", {{"requests", static_cast<int64_t>(requests_)}}));
  }
  VIVACE_RETURN_IF_ERROR(MakeCandidates());
  if (Over() || candidates_.empty()) return Finish();
  VIVACE_RETURN_IF_ERROR(Trials());
  return Finish();
}

}  // namespace

Result<TuneResult> RunTune(const TuneOptions& options, const model::ModelFile& file,
                           const ModelText& text) {
  return Tuner(options, file, text).Run();
}

}  // namespace vivace::tune
