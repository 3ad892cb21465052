#include "tune/objective.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace vivace::tune {

double BrokenFactor(double margin) { return std::exp(2 * std::min(margin, 0.0)); }

bool Better(const Score& a, const Score& b) {
  if (a.kept() != b.kept()) return a.kept();
  return RankOf(a) > RankOf(b);
}

size_t MiddleOf(const std::vector<Score>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) { return Better(scores[b], scores[a]); });
  return order[(order.size() - 1) / 2];
}

Score Objective::Of(const load::Figures& figures, bool partial) const {
  if (figures.completed == 0 && (latency_ || figures.output_throughput <= 0)) {
    return {.value = 0, .margin = slo_.empty() ? kFar : -kFar, .broken = {"nothing completed"}};
  }
  if (latency_) {
    // Whoever was not served by the end would have taken longest.
    const double share =
        static_cast<double>(figures.completed) / static_cast<double>(figures.requests);
    return {.value = share * 1e3 / std::max(figures.e2el_ms.mean, 1e-3)};
  }
  Score score{.value = figures.output_throughput};
  for (const load::Slo& term : slo_) {
    const double value = load::ValueOf(term, figures);
    const double margin =
        value < 0 ? -kFar : std::log(term.promise.most_ms / std::max(value, 1e-9));
    score.margin = std::min(score.margin, std::max(margin, -kFar));
    if (load::Keeps(term, figures)) continue;
    score.margin = std::min(score.margin, -std::numeric_limits<double>::min());
    const std::string figure = fmt::format("{} {}", term.statistic, load::Name(term.promise.what));
    score.broken.push_back(
        value < 0 ? fmt::format("no request has a figure for {}", figure)
                  : fmt::format("{} is {:g} ms, not {:g}", figure, value, term.promise.most_ms));
  }
  if (partial && !slo_.empty()) {
    score.margin = -kFar;
    score.broken.emplace_back("it was too slow to be let end");
  }
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
