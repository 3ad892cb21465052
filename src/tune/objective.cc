#include "tune/objective.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace vivace::tune {
namespace {

constexpr double kBroken = 0.5;  // of the throughput, at the edge of the promise

}  // namespace

Score Objective::Of(const load::Figures& figures, bool partial) const {
  if (figures.completed == 0 && (latency_ || figures.output_throughput <= 0))
    return {.value = 0, .kept = false, .broken = {"nothing completed"}};
  if (latency_) {
    // Whoever was not served by the end would have taken longest.
    const double share =
        static_cast<double>(figures.completed) / static_cast<double>(figures.requests);
    return {.value = share * 1e3 / std::max(figures.e2el_ms.mean, 1e-3), .kept = !partial};
  }
  Score score{.value = figures.output_throughput};
  for (const load::Slo& term : slo_) {
    const double value = load::ValueOf(term, figures);
    if (value <= term.promise.most_ms) continue;  // or there is no such figure: answers of a token
    const double ratio = term.promise.most_ms / value;
    score.value *= ratio * ratio;
    score.kept = false;
    score.broken.push_back(fmt::format("{} {} is {:.0f} ms, not {:g}", term.statistic,
                                       load::Name(term.promise.what), value, term.promise.most_ms));
  }
  if (partial && !slo_.empty()) {
    score.kept = false;
    score.broken.emplace_back("it was too slow to be let end");
  }
  if (!score.kept) score.value *= kBroken;
  return score;
}

std::string Objective::name() const {
  if (latency_) return "the shortest mean time to the last token at the given rate";
  if (slo_.empty()) return "the most output tokens a second";
  std::vector<std::string> names;
  for (const load::Slo& term : slo_) names.push_back(load::Name(term));
  return fmt::format("the most output tokens a second with {}", fmt::join(names, " and "));
}

std::string_view Objective::unit() const { return latency_ ? "1/s" : "tok/s"; }

}  // namespace vivace::tune
