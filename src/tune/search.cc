#include "tune/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>

#include "bench/statistics.h"

namespace vivace::tune {
namespace {

constexpr double kLeastScore = 1e-9;
constexpr double kLength = 2.5;   // octaves over which a forecast's error forgets
constexpr double kMostRatio = 1;  // of a score to its forecast, from the middle one; a logarithm
constexpr double kStall = 0.25;   // a measurement further off than this was no measurement
constexpr double kFirstNoise = 0.02;   // of a measurement, before any was repeated,
constexpr double kFirstWeight = 2;     // which counts as much as that many repeats
constexpr int kNoiseTrials = 2;        // of a winner that is not far ahead
constexpr double kMarginNoise = 0.05;  // of a measured margin: tails vary more than means
constexpr double kLeastChance = 0.02;  // of keeping a promise, for a trial while nothing keeps it

// How good forecasts are: of this deviation before there is anything to go by, and never thought
// to be better than the other.
struct Trust {
  double first, least;
};
constexpr Trust kOfValues = {0.15, 0.04}, kOfMargins = {0.3, 0.06};

double NormalDensity(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); }
double NormalBelow(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

// Of something believed to be at `belief`, over `best`.
double ExpectedGain(const Belief& belief, double best) {
  if (belief.deviation <= 0) return std::max(belief.mean - best, 0.0);
  const double z = (belief.mean - best) / belief.deviation;
  return belief.deviation * (z * NormalBelow(z) + NormalDensity(z));
}

// What measurements (of which `seen` has the logarithm of their ratios to forecasts) make of the
// forecasts at all places. What is far off all others may not drown what these say.
std::vector<Belief> BeliefsOf(std::vector<Observation> seen, const std::vector<Place>& places,
                              const std::vector<double>& forecasts, const Trust& trust) {
  std::vector<double> ratios;
  for (const Observation& o : seen) ratios.push_back(o.value);
  const double middle = bench::Median(ratios);
  const auto n = static_cast<double>(seen.size());
  double mean = 0;
  for (Observation& o : seen) {
    o.value = std::clamp(o.value, middle - kMostRatio, middle + kMostRatio);
    mean += o.value / n;
  }
  double squares = trust.first * trust.first;  // counts as one observation
  for (const Observation& o : seen) squares += (o.value - mean) * (o.value - mean);
  const double deviation = std::max(std::sqrt(squares / (n + 1)), trust.least);
  const GaussianProcess process(seen, mean, deviation, kLength);
  std::vector<Belief> beliefs(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    beliefs[i] = process.At(places[i]);
    beliefs[i].mean += forecasts[i];
  }
  return beliefs;
}

// Of a score that breaks promises by this margin, as a logarithm (objective.h's BrokenFactor).
Belief Ranked(const Belief& value, const Belief& margin) {
  return {.mean = value.mean + std::log(BrokenFactor(margin.mean)),
          .deviation = std::hypot(value.deviation, margin.mean < 0 ? 2 * margin.deviation : 0)};
}

}  // namespace

double Search::Tried::value() const { return std::log(scores[middle].value); }

bool Search::Tried::gave_nothing() const { return scores[middle].value <= kLeastScore; }

double Search::Tried::rank() const { return value() + std::log(BrokenFactor(margin())); }

Search::Search(std::vector<Place> places, std::vector<size_t> first, const SearchOptions& options)
    : places_(std::move(places)),
      first_(std::move(first)),
      options_(options),
      forecasts_(places_.size(), 0.0),
      forecast_margins_(places_.size(), kFar) {
  Learn();
}

void Search::Forecast(const std::vector<Score>& scores) {
  for (size_t i = 0; i < places_.size(); ++i) {
    forecasts_[i] = std::log(std::max(scores[i].value, kLeastScore));
    forecast_margins_[i] = std::clamp(scores[i].margin, -kFar, kFar);
  }
  Learn();
}

void Search::Add(size_t candidate, const Score& score, double seconds) {
  trials_ += 1;
  auto found = std::ranges::find(tried_, candidate, &Tried::candidate);
  if (found == tried_.end()) found = tried_.insert(tried_.end(), {.candidate = candidate});
  found->scores.push_back({.value = std::max(score.value, kLeastScore),
                           .margin = std::clamp(score.margin, -kFar, kFar)});
  found->middle = MiddleOf(found->scores);
  found->seconds += seconds;
  Learn();
}

const Search::Tried* Search::Find(size_t candidate) const {
  const auto found = std::ranges::find(tried_, candidate, &Tried::candidate);
  return found == tried_.end() ? nullptr : &*found;
}

bool Search::MayWin(size_t candidate) const {
  return std::ranges::count(options_.outside, candidate) == 0;
}

double Search::noise() const {
  double squares = kFirstWeight * kFirstNoise * kFirstNoise, weight = kFirstWeight;
  for (const Tried& tried : tried_) {
    std::vector<double> logs;
    for (const Score& score : tried.scores) logs.push_back(std::log(score.value));
    const double middle = bench::Median(logs);
    for (const double value : logs) {
      const double off = std::min(std::abs(value - middle), kStall);
      squares += off * off;
    }
    weight += tried.count() - 1;
  }
  return std::sqrt(squares / weight);
}

double Search::ErrorOf(const Tried& tried) const {
  return noise() / std::sqrt(static_cast<double>(tried.count()));
}

void Search::Learn() {
  std::vector<Observation> values, margins;
  for (const Tried& tried : tried_) {
    const Place& place = places_[tried.candidate];
    if (tried.gave_nothing()) continue;  // no ratio
    values.push_back({.place = place,
                      .value = tried.value() - forecasts_[tried.candidate],
                      .noise = ErrorOf(tried)});
    margins.push_back({.place = place,
                       .value = tried.margin() - forecast_margins_[tried.candidate],
                       .noise = kMarginNoise / std::sqrt(static_cast<double>(tried.count()))});
  }
  beliefs_ = BeliefsOf(std::move(values), places_, forecasts_, kOfValues);
  margins_ = BeliefsOf(std::move(margins), places_, forecast_margins_, kOfMargins);
}

// Of those that gave something and that `among` takes.
template <typename Among>
const Search::Tried* Search::BestOf(const Among& among) const {
  const Tried* best = nullptr;
  for (const Tried& tried : tried_) {
    if (tried.gave_nothing() || !among(tried)) continue;
    if (best == nullptr ||
        (tried.kept() != best->kept() ? tried.kept() : tried.rank() > best->rank())) {
      best = &tried;
    }
  }
  return best;
}

const Search::Tried* Search::Leader() const {
  return BestOf([&](const Tried& tried) { return MayWin(tried.candidate); });
}

const Search::Tried* Search::NearestTo(const Tried& leader) const {
  return BestOf([&](const Tried& tried) { return &tried != &leader; });
}

std::optional<size_t> Search::leader() const {
  const Tried* leader = Leader();
  return leader == nullptr ? std::nullopt : std::optional(leader->candidate);
}

bool Search::ClearlyBetter(size_t first, size_t second) const {
  const Tried *a = Find(first), *b = Find(second);
  if (a == nullptr || b == nullptr) return false;
  if (a->kept() != b->kept()) return a->kept();
  return a->rank() - b->rank() >= kSure * std::hypot(ErrorOf(*a), ErrorOf(*b));
}

std::vector<size_t> Search::rivals() const {
  std::vector<size_t> rivals;
  const auto best = leader();
  if (!best) return rivals;
  for (const Tried& tried : tried_) {
    if (tried.candidate != *best && MayWin(tried.candidate) &&
        !ClearlyBetter(*best, tried.candidate)) {
      rivals.push_back(tried.candidate);
    }
  }
  std::ranges::sort(rivals, std::greater(), [&](size_t i) { return Find(i)->rank(); });
  return rivals;
}

int Search::count(size_t candidate) const {
  const Tried* tried = Find(candidate);
  return tried == nullptr ? 0 : tried->count();
}

double Search::score(size_t candidate) const {
  const Tried* tried = Find(candidate);
  return tried == nullptr ? 0 : tried->scores[tried->middle].value;
}

bool Search::WellMeasured(size_t candidate) const {
  const Tried* tried = Find(candidate);
  return tried != nullptr && tried->well_measured();
}

double Search::ChanceOf(size_t candidate) const {
  const Belief& margin = margins_[candidate];
  return NormalBelow(margin.mean / std::max(margin.deviation, 1e-9));
}

// The one not measured yet of which `gain` says most, and more than `least`.
template <typename Gain>
std::optional<size_t> Search::BestFresh(double least, const Gain& gain) const {
  std::optional<size_t> choice;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (explored(i) || !MayWin(i)) continue;
    const double of = gain(i);
    if (of <= least) continue;
    least = of;
    choice = i;
  }
  return choice;
}

// The gain is over what is believed of the best measured one, whose luck is taken off it that way.
// While nothing keeps its promises it is the value of what may keep them; and where nothing may,
// that of what comes nearest.
std::optional<size_t> Search::Explore() {
  if (!exploring_) {
    why_done_ = "there was no time to try others";
    return std::nullopt;
  }
  if (tried_.size() >= std::min(options_.most_explored, places_.size())) {
    why_done_ = tried_.size() >= places_.size() ? "every setting was measured"
                                                : "as many settings as wanted were tried";
    return std::nullopt;
  }
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  double best_kept = kNone, best_broken = kNone;
  for (const Tried& tried : tried_) {
    const size_t i = tried.candidate;
    if (!MayWin(i) || tried.gave_nothing()) continue;
    if (tried.kept()) best_kept = std::max(best_kept, beliefs_[i].mean);
    best_broken = std::max(best_broken, Ranked(beliefs_[i], margins_[i]).mean);
  }
  std::optional<size_t> choice;
  if (best_kept > kNone) {
    choice = BestFresh(
        kLeastGain, [&](size_t i) { return ExpectedGain(beliefs_[i], best_kept) * ChanceOf(i); });
  } else {
    choice = BestFresh(kNone, [&](size_t i) {
      const double chance = ChanceOf(i);
      return chance < kLeastChance ? kNone : beliefs_[i].mean + std::log(chance);
    });
    if (!choice && best_broken > kNone) {
      choice = BestFresh(kLeastGain, [&](size_t i) {
        return ExpectedGain(Ranked(beliefs_[i], margins_[i]), best_broken);
      });
    } else if (!choice) {
      choice = BestFresh(kNone, [&](size_t i) { return Ranked(beliefs_[i], margins_[i]).mean; });
    }
  }
  if (!choice) why_done_ = "no other setting is expected to be better";
  return choice;
}

// Whether another trial may say otherwise of a promise, where that decides who leads.
bool Search::InDoubt(const Tried& tried, const Tried& leader) const {
  if (!MayWin(tried.candidate) || std::abs(tried.margin()) >= kDoubtful) return false;
  if (tried.count() >= std::min(kSureTrials, options_.most_repeats)) return false;
  const double error = std::hypot(ErrorOf(leader), ErrorOf(tried));
  return &tried == &leader || leader.value() - tried.value() < kSure * error;
}

// Whether its lead is of a size that a noisy machine could give to anything, and its one trial does
// not tell how noisy this one is.
bool Search::MayBeLuck(const Tried& leader) const {
  if (leader.count() >= std::min(kNoiseTrials, options_.most_repeats)) return false;
  return std::ranges::any_of(tried_, [&](const Tried& other) {
    return &other != &leader && other.kept() == leader.kept() &&
           leader.rank() - other.rank() < kStall;
  });
}

// The one to repeat because what was measured of it is too short: of the leader and what it is
// compared with, the one with the least.
std::optional<size_t> Search::TooBrief(const Tried& leader) const {
  if (!repeating_) return std::nullopt;
  const Tried* nearest = NearestTo(leader);
  const Tried* least = nullptr;
  for (const Tried& tried : tried_) {
    const bool compared =
        &tried == &leader || &tried == nearest || std::ranges::count(first_, tried.candidate) > 0;
    if (!compared || tried.well_measured()) continue;
    if (least == nullptr || tried.seconds < least->seconds) least = &tried;
  }
  return least == nullptr ? std::nullopt : std::optional(least->candidate);
}

// How the race ended, behind why nothing more is explored; empty where there was none.
std::string Search::Verdict(const Tried& leader) const {
  if (!leader.kept()) return "; nothing that was measured keeps the promise";
  const auto others = [](std::ptrdiff_t n) {
    return fmt::format("{} other{}", n, n == 1 ? "" : "s");
  };
  if (const auto rivals = this->rivals(); !rivals.empty()) {
    return fmt::format("; no clear difference between the winner and {}",
                       others(std::ssize(rivals)));
  }
  const auto beaten = std::ranges::count_if(tried_, [&](const Tried& tried) {
    return &tried != &leader && MayWin(tried.candidate) && !tried.gave_nothing();
  });
  if (beaten == 0) return "";
  if (!leader.well_measured() || !NearestTo(leader)->well_measured())
    return fmt::format("; the winner was ahead of {} in short trials", others(beaten));
  const bool of_all = std::ranges::all_of(options_.outside, [&](size_t i) {
    return !explored(i) || ClearlyBetter(leader.candidate, i);
  });
  return fmt::format("; the winner is clearly ahead of {}{}", others(beaten),
                     of_all ? "" : ", but not of the defaults");
}

// The one of the leader, its rivals and those in doubt that was measured least, the best of those.
std::optional<size_t> Search::Race() {
  const Tried* leader = Leader();
  if (leader == nullptr) return std::nullopt;
  const std::vector<size_t> rivals = this->rivals();
  std::vector<size_t> contenders = {leader->candidate};
  contenders.insert(contenders.end(), rivals.begin(), rivals.end());
  for (const Tried& tried : tried_) {
    if (std::ranges::count(contenders, tried.candidate) == 0 && InDoubt(tried, *leader))
      contenders.push_back(tried.candidate);
  }
  const bool decided = contenders.size() == 1 && !MayBeLuck(*leader) && !InDoubt(*leader, *leader);
  const size_t least =
      *std::ranges::min_element(contenders, {}, [&](size_t i) { return count(i); });
  if (!decided && count(least) < options_.most_repeats) return least;
  if (const auto brief = TooBrief(*leader)) return brief;
  why_done_ += Verdict(*leader);
  return std::nullopt;
}

std::optional<size_t> Search::Next() {
  why_done_.clear();
  if (trials_ >= options_.most_trials) {
    why_done_ = "as many trials as wanted were made";
    return std::nullopt;
  }
  for (const size_t candidate : first_)
    if (!explored(candidate)) return candidate;
  if (const auto next = Explore()) return next;
  return Race();
}

}  // namespace vivace::tune
