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
constexpr double kLength = 2.5;           // octaves over which a forecast's error forgets
constexpr double kLeastDeviation = 0.04;  // forecasts are never thought better than this
constexpr double kFirstDeviation = 0.15;  // and this good before there is anything to go by
constexpr double kMostRatio = 1;  // of a score to its forecast, from the middle one; a logarithm
constexpr double kStall = 0.25;   // a measurement further off than this was no measurement
constexpr double kFirstNoise = 0.015;  // of a measurement, before any was repeated,
constexpr double kFirstWeight = 3;     // which counts as much as that many repeats

double NormalDensity(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); }
double NormalBelow(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

// Of something believed to be at `belief`, over `best`.
double ExpectedGain(const Belief& belief, double best) {
  if (belief.deviation <= 0) return std::max(belief.mean - best, 0.0);
  const double z = (belief.mean - best) / belief.deviation;
  return belief.deviation * (z * NormalBelow(z) + NormalDensity(z));
}

}  // namespace

Search::Search(std::vector<Place> places, std::vector<size_t> first, const SearchOptions& options)
    : places_(std::move(places)),
      first_(std::move(first)),
      options_(options),
      forecasts_(places_.size(), 0.0) {
  Learn();
}

void Search::Forecast(std::vector<double> scores) {
  for (size_t i = 0; i < places_.size(); ++i)
    forecasts_[i] = std::log(std::max(scores[i], kLeastScore));
  Learn();
}

void Search::Add(size_t candidate, double score) {
  const double value = std::log(std::max(score, kLeastScore));
  trials_ += 1;
  const auto found = std::ranges::find(tried_, candidate, &Tried::candidate);
  if (found != tried_.end()) {
    found->logs.push_back(value);
  } else {
    tried_.push_back({candidate, {value}});
  }
  Learn();
}

const Search::Tried* Search::Find(size_t candidate) const {
  const auto found = std::ranges::find(tried_, candidate, &Tried::candidate);
  return found == tried_.end() ? nullptr : &*found;
}

double Search::MiddleOf(const Tried& tried) { return bench::Median(tried.logs); }

double Search::noise() const {
  double squares = kFirstWeight * kFirstNoise * kFirstNoise, weight = kFirstWeight;
  for (const Tried& tried : tried_) {
    const double middle = MiddleOf(tried);
    for (const double value : tried.logs) {
      const double off = std::min(std::abs(value - middle), kStall);
      squares += off * off;
    }
    weight += static_cast<double>(tried.logs.size()) - 1;
  }
  return std::sqrt(squares / weight);
}

double Search::ErrorOf(const Tried& tried) const {
  return noise() / std::sqrt(static_cast<double>(tried.logs.size()));
}

// What the measurements make of the forecasts. What gave nothing is no ratio, and a broken promise
// moves a score by more than any forecast is off: neither may drown what the others say.
void Search::Learn() {
  std::vector<Observation> seen;
  std::vector<double> ratios;
  for (const Tried& tried : tried_) {
    if (MiddleOf(tried) <= std::log(kLeastScore)) continue;
    ratios.push_back(MiddleOf(tried) - forecasts_[tried.candidate]);
    seen.push_back(
        {.place = places_[tried.candidate], .value = ratios.back(), .noise = ErrorOf(tried)});
  }
  const double middle = bench::Median(ratios);
  const auto n = static_cast<double>(seen.size());
  double mean = 0;
  for (Observation& o : seen) {
    o.value = std::clamp(o.value, middle - kMostRatio, middle + kMostRatio);
    mean += o.value / n;
  }
  double squares = kFirstDeviation * kFirstDeviation;  // counts as one observation
  for (const Observation& o : seen) squares += (o.value - mean) * (o.value - mean);
  const double deviation = std::max(std::sqrt(squares / (n + 1)), kLeastDeviation);
  const GaussianProcess process(seen, mean, deviation, kLength);
  beliefs_.resize(places_.size());
  for (size_t i = 0; i < places_.size(); ++i) {
    beliefs_[i] = process.At(places_[i]);
    beliefs_[i].mean += forecasts_[i];
  }
}

std::optional<size_t> Search::leader() const {
  const auto best = std::ranges::max_element(tried_, {}, MiddleOf);
  if (best == tried_.end() || MiddleOf(*best) <= std::log(kLeastScore)) return std::nullopt;
  return best->candidate;
}

std::vector<size_t> Search::rivals() const {
  std::vector<size_t> rivals;
  const auto best = leader();
  if (!best) return rivals;
  const Tried& first = *Find(*best);
  for (const Tried& tried : tried_) {
    const double error = std::hypot(ErrorOf(first), ErrorOf(tried));
    if (tried.candidate != *best && MiddleOf(first) - MiddleOf(tried) < kSure * error)
      rivals.push_back(tried.candidate);
  }
  std::ranges::sort(rivals, std::greater(), [&](size_t i) { return MiddleOf(*Find(i)); });
  return rivals;
}

int Search::count(size_t candidate) const {
  const Tried* tried = Find(candidate);
  return tried == nullptr ? 0 : static_cast<int>(tried->logs.size());
}

double Search::score(size_t candidate) const {
  const Tried* tried = Find(candidate);
  return tried == nullptr ? 0 : std::exp(MiddleOf(*tried));
}

double Search::expected(size_t candidate) const { return std::exp(beliefs_[candidate].mean); }

// The place with the greatest expected gain over what is believed of the best measured one, whose
// luck is taken off it that way.
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
  double best = -std::numeric_limits<double>::infinity();
  for (const Tried& tried : tried_) best = std::max(best, beliefs_[tried.candidate].mean);
  std::optional<size_t> choice;
  double gain = kLeastGain;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (explored(i)) continue;
    const double expected =
        tried_.empty() ? std::exp(beliefs_[i].mean) : ExpectedGain(beliefs_[i], best);
    if (choice ? expected <= gain : expected < gain && !tried_.empty()) continue;
    gain = expected;
    choice = i;
  }
  if (!choice) why_done_ = "no other setting is expected to be better";
  return choice;
}

// The one of the leader and its rivals that was measured least, the best of those.
std::optional<size_t> Search::Race() {
  const auto best = leader();
  if (!best) return std::nullopt;
  std::vector<size_t> contenders = rivals();
  if (contenders.empty()) {
    why_done_ += "; the winner is clearly ahead";
    return std::nullopt;
  }
  contenders.insert(contenders.begin(), *best);
  const size_t least =
      *std::ranges::min_element(contenders, {}, [&](size_t i) { return count(i); });
  if (count(least) >= options_.most_repeats) {
    why_done_ += fmt::format("; no clear difference between the winner and {} other{}",
                             contenders.size() - 1, contenders.size() == 2 ? "" : "s");
    return std::nullopt;
  }
  return least;
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
