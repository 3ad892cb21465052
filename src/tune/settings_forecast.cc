#include "tune/settings_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "engine/load_plan.h"
#include "engine/step_loop.h"
#include "load/figures.h"
#include "load/random.h"
#include "tune/forecast.h"

namespace vivace::tune {
namespace {

constexpr double kForecastShare = 0.15;  // of the budget
constexpr double kChance = 0.7;  // of the best forecast: below, a setting is not forecast again
constexpr uint64_t kOrderSeed = 11;
constexpr double kLeastNoise = 0.01, kMostNoise = 0.1;  // of steps, in forecasts

// The space's order.
bool InOrder(const Setting& a, const Setting& b) {
  const auto key = [](const Setting& s) {
    return std::tuple(-s.threads, std::string(KvName(s)), s.max_itl_ms, s.max_num_batched_tokens,
                      s.max_num_seqs);
  };
  return key(a) < key(b);
}

double Distance(const Setting& a, const Setting& b) {
  const Place x = PlaceOf(a), y = PlaceOf(b);
  double square = 0;
  for (size_t i = 0; i < x.size(); ++i) square += (x[i] - y[i]) * (x[i] - y[i]);
  return square;
}

// Candidates as they are found, in any order.
class Grouping {
 public:
  Grouping(const std::optional<Setting>& own, bool own_inside, bool each_alone)
      : own_(own), own_inside_(own_inside), each_alone_(each_alone) {}

  void Add(const Setting& setting, const bench::OfflineRun& run, const Objective& objective) {
    Candidate candidate{.setting = setting,
                        .outside = own_ && setting == *own_ && !own_inside_,
                        .forecast = MeasuredOf(run)};
    candidate.forecast_score = objective.Of(candidate.forecast.figures, false);
    if (candidate.outside) {
      all_.push_back(std::move(candidate));
      return;
    }
    const auto key =
        std::tuple(setting.threads, std::string(KvName(setting)), run.use.steps, run.elapsed_s);
    const auto [found, fresh] = alike_.emplace(key, all_.size());
    if (fresh || each_alone_) {
      members_.emplace_back(setting, all_.size());
      all_.push_back(std::move(candidate));
      return;
    }
    members_.emplace_back(setting, found->second);
    Candidate& other = all_[found->second];
    other.alike += 1;
    if (own_ && other.setting != *own_ &&
        Distance(setting, *own_) < Distance(other.setting, *own_)) {
      other.setting = setting;
    }
  }

  Candidates Finish() && {
    Candidates candidates;
    for (const auto& [setting, index] : members_)
      candidates.standing.emplace_back(setting, all_[index].setting);
    candidates.all = std::move(all_);
    std::ranges::sort(candidates.all, InOrder, &Candidate::setting);
    for (const Candidate& candidate : candidates.all)
      candidates.forecasts.push_back(candidate.forecast_score);
    if (!own_) return candidates;
    const auto found = std::ranges::find(candidates.all, *own_, &Candidate::setting);
    if (found != candidates.all.end())
      candidates.defaults = static_cast<size_t>(found - candidates.all.begin());
    return candidates;
  }

 private:
  const std::optional<Setting> own_;
  const bool own_inside_, each_alone_;
  std::vector<Candidate> all_;
  std::vector<std::pair<Setting, size_t>> members_;  // settings, and their candidates
  std::map<std::tuple<int32_t, std::string, int64_t, double>, size_t> alike_;
};

}  // namespace

std::optional<size_t> Candidates::Find(const Setting& setting) const {
  const auto member = std::ranges::find(standing, setting, &std::pair<Setting, Setting>::first);
  const Setting& standing_for = member == standing.end() ? setting : member->second;
  const auto found = std::ranges::find(all, standing_for, &Candidate::setting);
  if (found == all.end()) return std::nullopt;
  return static_cast<size_t>(found - all.begin());
}

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

Result<bench::OfflineRun> ForecastOf(const Session& session, const StepTimes& times,
                                     const Setting& setting, const Traffic& traffic) {
  const EngineConfig config = session.ConfigOf(setting);
  VIVACE_ASSIGN(const LoadPlan plan, PlanLoad(config, session.file, session.available));
  const StepTimeModel& model = times.model(KeyOf(setting));
  return Forecast(
      {.scheduler = SchedulerConfigOf(config, plan.memory.limits),
       .step_seconds =
           [&model](const StepPlan& step) { return model.Seconds(bench::ShapeOf(step)); },
       .noise = std::clamp(2 * model.error(), kLeastNoise, kMostNoise),
       .over = [&session] { return session.budget.Over(); }},
      traffic);
}

std::vector<Setting> ForecastOrder(std::vector<Setting> settings,
                                   const std::vector<Setting>& first) {
  load::Random random(kOrderSeed, 0);
  std::vector<Setting> order;
  for (const Setting& setting : first)
    if (std::ranges::count(order, setting) == 0) order.push_back(setting);
  std::erase_if(settings, [&](const Setting& s) { return std::ranges::count(order, s) > 0; });
  for (size_t i = settings.size(); i > 1; --i)
    std::swap(settings[i - 1], settings[random.Below(i)]);
  order.insert(order.end(), settings.begin(), settings.end());
  return order;
}

Result<Candidates> MakeCandidates(Session* session, const StepTimes& times, const Traffic& traffic,
                                  const Objective& objective, const std::optional<Setting>& own,
                                  const std::vector<Setting>& settings,
                                  const std::vector<Setting>& measured) {
  const Budget& budget = session->budget;
  const bool full_grid = session->options.full_grid;
  std::vector<Setting> first;
  if (own) first.push_back(*own);
  for (const Setting& setting : measured)
    if (std::ranges::count(settings, setting) > 0) first.push_back(setting);
  const std::vector<Setting> order = ForecastOrder(settings, first);
  Grouping grouping(own, own && std::ranges::count(settings, *own) > 0, full_grid);
  std::optional<Error> refused;
  size_t left_out = 0, done = 0;
  const int64_t start = SteadyNanos();
  for (const Setting& setting : order) {
    const bool must = std::ranges::count(first, setting) > 0;
    const bool late = !full_grid && SecondsSince(start) > budget.total() * kForecastShare;
    if (budget.Over()) break;
    if (!must && (late || budget.Out())) {
      session->notes.push_back(
          fmt::format("{} settings were not looked at: there was no time to forecast them; give a "
                      "larger --budget",
                      order.size() - done));
      break;
    }
    session->tell(fmt::format("forecasting setting {} of {}", ++done, order.size()));
    const auto run = ForecastOf(*session, times, setting, traffic);
    if (run) {
      grouping.Add(setting, *run, objective);
    } else if (budget.Over()) {
      break;
    } else {
      if (!refused) refused = run.error();
      left_out += std::ranges::count(settings, setting) > 0;
    }
  }
  Candidates candidates = std::move(grouping).Finish();
  candidates.left_out = left_out;
  if (candidates.standing.empty() && refused && !budget.Over())
    return tl::unexpected<Error>(*refused);
  return candidates;
}

void ForecastAgain(const Session& session, const StepTimes& times, const Traffic& traffic,
                   const Objective& objective, const CostKey& key, Candidates* candidates) {
  double best = 0;
  for (const Score& score : candidates->forecasts) best = std::max(best, RankOf(score));
  for (size_t i = 0; i < candidates->all.size(); ++i) {
    Candidate& candidate = candidates->all[i];
    if (session.budget.Over()) return;
    if (KeyOf(candidate.setting) != key || RankOf(candidates->forecasts[i]) < kChance * best)
      continue;
    const auto run = ForecastOf(session, times, candidate.setting, traffic);
    if (!run) continue;
    const Measured forecast = MeasuredOf(*run);
    candidates->forecasts[i] = objective.Of(forecast.figures, false);
    if (!candidate.trials.empty()) continue;  // what was foretold of it stays
    candidate.forecast = forecast;
    candidate.forecast_score = candidates->forecasts[i];
  }
}

}  // namespace vivace::tune
