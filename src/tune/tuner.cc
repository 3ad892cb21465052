#include "tune/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/load_plan.h"
#include "engine/memory_plan.h"
#include "tune/calibration.h"
#include "tune/run_journal.h"
#include "tune/search.h"
#include "tune/session.h"
#include "tune/settings_forecast.h"
#include "tune/traffic.h"
#include "tune/trial_run.h"

namespace vivace::tune {
namespace {

constexpr double kTrialsInBudget = 40;  // the length of one follows from this
constexpr double kLeastTrialS = 1, kMostTrialS = 60;
constexpr double kExploringShare = 0.7;  // of the budget: what is left is for the race
constexpr double kRepeatingShare = 0.5;  // after which short trials are not repeated
constexpr size_t kFirstRequests = 64, kLeastRequests = 8, kMostRequests = 20'000;
constexpr double kHopeless = 3;          // times the leader's time after which a trial is given up
constexpr double kLeastHopelessS = 0.5;  // and never before
constexpr double kUnknownSlowS = 10;     // beside
constexpr double kUnknownSlow = 5;       // times the forecast's, before there is a leader
constexpr size_t kExploredShare = 5;     // one in so many settings,
constexpr size_t kLeastExplored = 6, kMostExplored = 40;
constexpr char kBudgetEnded[] = "the budget ended";

class Tuner {
 public:
  Tuner(const TuneOptions& options, const model::ModelFile& file, const ModelText& text)
      : options_(options),
        session_{.options = options,
                 .file = file,
                 .text = text,
                 .budget = Budget(options.budget_s, options.stop)},
        objective_(options.slo, options.request_rate > 0) {
    session_.tell = [this](std::string doing) { Tell(std::move(doing)); };
  }

  Result<TuneResult> Run();

 private:
  Status ChooseSettings();
  Result<size_t> ChooseRequests() const;
  size_t MostRequests() const {
    return std::max(kMostRequests, 2 * static_cast<size_t>(options_.max_concurrency));
  }
  Status ChooseTraffic();
  Status Trials();
  void Replay();
  std::optional<size_t> Next();
  double MostSeconds(size_t candidate) const;
  bool HasTimeFor(size_t candidate) const;
  void TakeTrial(size_t candidate, Trial trial);
  void LearnFromTrials();
  Result<TuneResult> Finish();
  void Tell(std::string doing) const;

  const TuneOptions& options_;
  Session session_;
  Budget& budget_ = session_.budget;
  Objective objective_;
  std::optional<RunJournal> journal_;
  StepTimes times_;
  Traffic traffic_;
  std::vector<Setting> settings_;  // that fit
  std::optional<Setting> own_;     // what `serve` would use, if it fits
  size_t space_size_ = 0, left_out_ = 0;
  Candidates candidates_;
  std::optional<Search> search_;
  int trials_ = 0;
  int fitted_at_ = 0;     // trials
  double prepare_s_ = 0;  // loading and warming up, the last time
  std::string why_done_;
};

void Tuner::Tell(std::string doing) const {
  if (!options_.progress) return;
  TuneProgress progress{.doing = std::move(doing),
                        .share = std::min(budget_.Spent() / options_.budget_s, 1.0)};
  if (search_ && search_->leader()) {
    const size_t leader = *search_->leader();
    progress.leading = fmt::format("{:.4g} {}: {}", search_->score(leader), objective_.unit(),
                                   Name(candidates_.all[leader].setting));
  }
  options_.progress(progress);
}

// Those of the space, and the defaults, that this machine has the memory for.
Status Tuner::ChooseSettings() {
  VIVACE_ASSIGN(const std::vector<Setting> settings, SettingsOf(options_.space));
  space_size_ = settings.size();
  std::optional<Error> refused;
  for (const Setting& setting : settings) {
    const EngineConfig config = session_.ConfigOf(setting);
    VIVACE_RETURN_IF_ERROR(Validate(config));
    if (const auto plan = PlanLoad(config, session_.file, session_.available)) {
      settings_.push_back(setting);
    } else {
      refused = plan.error();
      left_out_ += 1;
    }
  }
  if (settings_.empty()) {
    return Fail(refused->code, refused->reason, refused->field,
                "none of the {} settings fits this machine: {}", space_size_, refused->message);
  }
  if (const auto plan = PlanLoad(options_.engine, session_.file, session_.available)) {
    own_ = SettingOf(options_.engine, *plan);
  } else {
    session_.notes.push_back(
        fmt::format("The defaults of `vivace serve` are not compared with, as they do not fit: {}",
                    plan.error().message));
  }
  return {};
}

// As many as the setting that `serve` would use computes in the time of a trial, by the forecast;
// in a closed loop at least two rounds of them.
Result<size_t> Tuner::ChooseRequests() const {
  if (options_.dataset.num_prompts > 0) return options_.dataset.num_prompts;
  const auto concurrency = static_cast<size_t>(options_.max_concurrency);
  VIVACE_ASSIGN(const Traffic first,
                MakeTraffic(options_, session_.text, std::max(kFirstRequests, 2 * concurrency)));
  VIVACE_ASSIGN(const bench::OfflineRun run,
                ForecastOf(session_, times_, own_.value_or(settings_.front()), first));
  const double trial_s = std::clamp(options_.budget_s / kTrialsInBudget, kLeastTrialS, kMostTrialS);
  const double each_s =
      std::max(run.elapsed_s / static_cast<double>(first.workload.requests.size()), 1e-6);
  const auto fit = static_cast<size_t>(std::min(trial_s / each_s, 1e6));
  return std::clamp(fit, std::max(kLeastRequests, 2 * concurrency), MostRequests());
}

// That of an earlier session, or what is chosen now and goes into the journal.
Status Tuner::ChooseTraffic() {
  const std::optional<RunPlan>& kept = journal_->plan();
  size_t requests = 0;
  if (kept) {
    const size_t asked = options_.dataset.num_prompts;
    requests = std::min(kept->requests, asked > 0 ? asked : MostRequests());
  } else {
    VIVACE_ASSIGN(requests, ChooseRequests());
  }
  VIVACE_ASSIGN(traffic_, MakeTraffic(options_, session_.text, requests));
  objective_ = Objective(options_.slo, traffic_.open_loop());
  const std::string digest = DigestOf(traffic_);
  if (!kept)
    return journal_->Add({.requests = requests, .digest = digest, .available = session_.available});
  if (kept->digest == digest) return {};
  return Fail(ErrorCode::kInvalidArgument, "foreign_journal", "out",
              "the journal in {} is of another run: the traffic differs (the dataset was changed); "
              "give another --out",
              options_.out);
}

// By the last fit of each kind of step; after the 1st, 2nd, 4th, 8th ... trial.
void Tuner::LearnFromTrials() {
  if (options_.full_grid || budget_.Out() || trials_ < 2 * fitted_at_ || trials_ == 0) return;
  fitted_at_ = trials_;
  Tell("forecasting again");
  for (const CostKey& key : times_.keys()) {
    if (times_.Fit(key)) ForecastAgain(session_, times_, traffic_, objective_, key, &candidates_);
  }
  search_->Forecast(candidates_.forecasts);
}

void Tuner::TakeTrial(size_t candidate, Trial trial) {
  trials_ += 1;
  search_->Add(candidate, ScoreOf(objective_, trial), trial.measured.elapsed_s);
  times_.Learn(KeyOf(trial.setting), trial.steps);
  candidates_.all[candidate].trials.push_back(std::move(trial));
}

// A candidate whose time is this much worse than the leader's needs no exact figure; and none may
// take more than what is left, the first (which is the defaults) half of it.
double Tuner::MostSeconds(size_t candidate) const {
  const double left = budget_.Left();
  if (options_.full_grid) return left;
  const auto leader = search_->leader();
  if (!leader) {
    const double forecast = candidates_.all[candidate].forecast.elapsed_s;
    return std::min(kUnknownSlow * forecast + kUnknownSlowS, left / 2);
  }
  const double best = candidates_.all[*leader].trials.front().measured.elapsed_s;
  return std::min(kHopeless * best + kLeastHopelessS, left);
}

// Whether it can be loaded and warmed up and compute at least a step before the budget ends, going
// by the last one that was.
bool Tuner::HasTimeFor(size_t candidate) const {
  const double step_s = candidates_.all[candidate].forecast.use.p99_step_ms * 1e-3;
  return budget_.Spent() + prepare_s_ + step_s < options_.budget_s;
}

// Trials of earlier sessions, as if they were made now.
void Tuner::Replay() {
  size_t unused = 0;
  for (Trial& trial : journal_->trials()) {
    const auto candidate = candidates_.Find(trial.setting);
    if (candidate) {
      TakeTrial(*candidate, std::move(trial));
    } else {
      unused += 1;
    }
  }
  if (unused > 0) {
    session_.notes.push_back(fmt::format(
        "{} trial{} of earlier sessions {} of settings outside of what is searched now, and {} "
        "not used.",
        unused, unused == 1 ? "" : "s", unused == 1 ? "is" : "are", unused == 1 ? "was" : "were"));
  }
  LearnFromTrials();
}

// The candidate to measure next; none: done, and why_done_ says why.
std::optional<size_t> Tuner::Next() {
  why_done_ = kBudgetEnded;
  if (budget_.Out()) return std::nullopt;
  std::optional<size_t> next;
  if (options_.full_grid) {
    const auto open =
        std::ranges::find_if(candidates_.all, [](const Candidate& c) { return c.trials.empty(); });
    if (open != candidates_.all.end()) next = static_cast<size_t>(open - candidates_.all.begin());
    if (!next) why_done_ = "every setting was measured";
  } else {
    if (budget_.Spent() > kExploringShare * options_.budget_s) search_->EndExploring();
    if (budget_.Spent() > kRepeatingShare * options_.budget_s) search_->EndRepeating();
    next = search_->Next();
    if (!next) why_done_ = search_->why_done();
  }
  return next && HasTimeFor(*next) ? next : std::nullopt;
}

Status Tuner::Trials() {
  std::vector<Place> places;
  for (const Candidate& candidate : candidates_.all) places.push_back(PlaceOf(candidate.setting));
  SearchOptions search{.most_explored = std::clamp(settings_.size() / kExploredShare,
                                                   kLeastExplored, kMostExplored)};
  std::vector<size_t> first;
  if (candidates_.defaults) first.push_back(*candidates_.defaults);
  for (size_t i = 0; i < candidates_.all.size(); ++i)
    if (candidates_.all[i].outside) search.outside.push_back(i);
  search_.emplace(std::move(places), std::move(first), search);
  search_->Forecast(candidates_.forecasts);
  Replay();
  budget_.SetReplaying(false);
  while (!budget_.Stopped()) {
    const std::optional<size_t> next = Next();
    if (!next) break;
    const Setting& setting = candidates_.all[*next].setting;
    Tell(fmt::format("measuring {}", Name(setting)));
    VIVACE_ASSIGN(TrialRun run,
                  RunTrial(session_, setting, traffic_,
                           {.most_seconds = MostSeconds(*next), .keep_cut = !search_->leader()}));
    if (run.prepare_s > 0) prepare_s_ = run.prepare_s;
    if (!run.trial) {
      why_done_ = kBudgetEnded;
      break;
    }
    VIVACE_RETURN_IF_ERROR(journal_->Add(*run.trial));
    TakeTrial(*next, std::move(*run.trial));
    LearnFromTrials();
  }
  return {};
}

Result<TuneResult> Tuner::Finish() {
  VIVACE_RETURN_IF_ERROR(journal_->AddSpent());
  left_out_ += candidates_.left_out;
  TuneResult result = ResultOf(session_, traffic_, objective_, std::move(candidates_),
                               search_ ? &*search_ : nullptr);
  const auto keys = times_.keys();
  if (!keys.empty()) result.step_error = times_.model(keys.back()).error();
  result.settings = space_size_;
  result.left_out = left_out_;
  result.trials = trials_;
  result.resumed = journal_->resumed();
  if (why_done_.empty()) why_done_ = kBudgetEnded;
  result.why_done = budget_.Stopped() ? "it was interrupted" : why_done_;
  return result;
}

Result<TuneResult> Tuner::Run() {
  // Typical lengths for the calibration; the requests of trials are chosen by what was calibrated.
  const size_t asked = options_.dataset.num_prompts;
  VIVACE_ASSIGN(traffic_,
                MakeTraffic(options_, session_.text,
                            asked > 0 ? std::min(asked, kFirstRequests) : kFirstRequests));
  VIVACE_ASSIGN(RunJournal journal, RunJournal::Open(&session_, traffic_));
  journal_.emplace(std::move(journal));
  budget_.SetReplaying(!journal_->trials().empty());
  session_.available = options_.available.value_or(AvailableMemory());
  if (journal_->plan()) session_.available = journal_->plan()->available;
  VIVACE_RETURN_IF_ERROR(ChooseSettings());
  VIVACE_RETURN_IF_ERROR(times_.Calibrate(&session_, &*journal_, traffic_, own_, &settings_));
  if (own_ && !times_.known(KeyOf(*own_))) own_.reset();
  if (budget_.Over() || settings_.empty()) return Finish();
  if (const Status chosen = ChooseTraffic(); !chosen) {
    if (budget_.Over()) return Finish();
    return tl::unexpected<Error>(chosen.error());
  }
  if (budget_.Over()) return Finish();
  std::vector<Setting> measured;
  for (const Trial& trial : journal_->trials()) measured.push_back(trial.setting);
  VIVACE_ASSIGN(candidates_,
                MakeCandidates(&session_, times_, traffic_, objective_, own_, settings_, measured));
  if (budget_.Over() || candidates_.all.empty()) return Finish();
  VIVACE_RETURN_IF_ERROR(Trials());
  return Finish();
}

}  // namespace

Result<TuneResult> RunTune(const TuneOptions& options, const model::ModelFile& file,
                           const ModelText& text) {
  return Tuner(options, file, text).Run();
}

}  // namespace vivace::tune
