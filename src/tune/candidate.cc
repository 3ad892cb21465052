#include "tune/candidate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "bench/statistics.h"

namespace vivace::tune {
namespace {

// Larger is better in each.
struct Goods {
  double throughput, ttft, itl;
};

Goods GoodsOf(const Candidate& candidate) {
  const load::Figures& f = candidate.measured.figures;
  return {f.output_throughput, -f.ttft_ms.p99, -f.itl_ms.p99};
}

bool Beats(const Goods& a, const Goods& b) {
  const bool as_good = a.throughput >= b.throughput && a.ttft >= b.ttft && a.itl >= b.itl;
  return as_good && (a.throughput > b.throughput || a.ttft > b.ttft || a.itl > b.itl);
}

double ErrorOf(double forecast, double measured) {
  return measured > 0 ? std::abs(forecast / measured - 1) : 0;
}

}  // namespace

std::vector<size_t> Ranked(const std::vector<Candidate>& candidates) {
  std::vector<size_t> ranked;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].tried()) ranked.push_back(i);
  std::ranges::stable_sort(
      ranked, [&](size_t a, size_t b) { return Better(candidates[a].score, candidates[b].score); });
  return ranked;
}

Score ScoreOf(const Objective& objective, const Trial& trial) {
  if (!trial.error.empty()) return {.value = 0, .margin = -kFar, .broken = {trial.error}};
  return objective.Of(trial.measured.figures, trial.measured.partial);
}

void Summarise(const Objective& objective, Candidate* candidate) {
  std::vector<Score> scores;
  for (const Trial& trial : candidate->trials) scores.push_back(ScoreOf(objective, trial));
  const size_t middle = MiddleOf(scores);
  candidate->measured = candidate->trials[middle].measured;
  candidate->score = std::move(scores[middle]);
}

void MarkFront(std::vector<Candidate>* candidates) {
  for (Candidate& candidate : *candidates) {
    const Goods goods = GoodsOf(candidate);
    candidate.front = candidate.tried() && !candidate.outside && !candidate.measured.partial &&
                      std::ranges::none_of(*candidates, [&](const Candidate& other) {
                        return other.tried() && !other.outside && !other.measured.partial &&
                               Beats(GoodsOf(other), goods);
                      });
  }
}

ForecastError ErrorOfForecasts(const std::vector<Candidate>& candidates) {
  std::vector<double> throughput, ttft, itl;
  for (const Candidate& candidate : candidates) {
    if (!candidate.tried() || candidate.measured.partial) continue;
    const load::Figures& foretold = candidate.forecast.figures;
    const load::Figures& measured = candidate.measured.figures;
    throughput.push_back(ErrorOf(foretold.output_throughput, measured.output_throughput));
    ttft.push_back(ErrorOf(foretold.ttft_ms.p99, measured.ttft_ms.p99));
    itl.push_back(ErrorOf(foretold.itl_ms.p99, measured.itl_ms.p99));
  }
  ForecastError error{.n = throughput.size()};
  if (throughput.empty()) return error;
  error.worst_throughput = *std::ranges::max_element(throughput);
  error.throughput = bench::Median(throughput);
  error.p99_ttft = bench::Median(ttft);
  error.p99_itl = bench::Median(itl);
  return error;
}

}  // namespace vivace::tune
