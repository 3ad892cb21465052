// A setting with what was forecast and what was measured of it, and what follows from many of
// these: the Pareto front, and how good the forecasts were. Pure.
#pragma once

#include <string>
#include <vector>

#include "tune/objective.h"
#include "tune/setting.h"
#include "tune/trial.h"

namespace vivace::tune {

// One setting, or several that would behave alike, of which this is the one nearest to the
// defaults.
struct Candidate {
  Setting setting;
  size_t alike = 1;        // settings it stands for
  bool outside = false;    // of the space: the defaults, to compare with; never the winner
  Measured forecast = {};  // by the last fit before it was measured
  Score forecast_score = {};
  std::vector<Trial> trials = {};
  // Of all trials, by Summarise:
  Measured measured = {};  // the one in the middle (objective.h),
  Score score = {};        // and its score
  // Nothing measured in the space is as good in throughput, p99 TTFT and p99 ITL and better in one.
  bool front = false;
  bool tried() const { return !trials.empty() && trials.front().error.empty(); }
};

// Indices of those that were measured, best first.
std::vector<size_t> Ranked(const std::vector<Candidate>& candidates);

// Of one trial; of what could not be measured, nothing that keeps any promise.
Score ScoreOf(const Objective& objective, const Trial& trial);

void Summarise(const Objective& objective, Candidate* candidate);

void MarkFront(std::vector<Candidate>* candidates);

// How good forecasts were: medians over the measured candidates of |forecast / measured - 1|.
struct ForecastError {
  size_t n = 0;
  double throughput = 0, worst_throughput = 0, p99_ttft = 0, p99_itl = 0;
};
ForecastError ErrorOfForecasts(const std::vector<Candidate>& candidates);

}  // namespace vivace::tune
