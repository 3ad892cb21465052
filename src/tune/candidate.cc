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

void Summarise(const Objective& objective, Candidate* candidate) {
  std::vector<std::pair<double, size_t>> scores;
  candidate->kept = true;
  std::vector<double> values;
  for (size_t i = 0; i < candidate->trials.size(); ++i) {
    const Measured& measured = candidate->trials[i].measured;
    const Score score = objective.Of(measured.figures, measured.partial);
    scores.emplace_back(score.value, i);
    values.push_back(score.value);
    candidate->kept = candidate->kept && score.kept;
  }
  std::ranges::sort(scores);
  candidate->measured = candidate->trials[scores[scores.size() / 2].second].measured;
  candidate->score = bench::Median(std::move(values));
  candidate->broken = objective.Of(candidate->measured.figures, candidate->measured.partial).broken;
}

void MarkFront(std::vector<Candidate>* candidates) {
  for (Candidate& candidate : *candidates) {
    const Goods goods = GoodsOf(candidate);
    candidate.front =
        candidate.tried() && !candidate.measured.partial &&
        std::ranges::none_of(*candidates, [&](const Candidate& other) {
          return other.tried() && !other.measured.partial && Beats(GoodsOf(other), goods);
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
