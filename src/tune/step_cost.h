// How long a step takes, as a sum over what it computes, fitted to steps that were measured with
// one number of threads and one kind of cache:
//
//   fixed + rows in 1..8 * a + rows in 9..64 * b + rows beyond * c + prompt's fixed
//         + decode context * d + prompt context * e + logit rows * f
//
// Few rows are bound by reading the weights and many by multiplying, hence a slope of rows for each
// range. All are non-negative, so a larger step never costs less. The fit is least squares of
// relative errors with outliers weighed down (Huber), as in sched/step_cost_model.h, which fits the
// last steps only and may not look back; this one takes all there are.
//
// Cost: Fit some milliseconds for a thousand steps; Seconds some nanoseconds. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "bench/step_samples.h"
#include "sched/step_cost_model.h"

namespace vivace::tune {

class StepCost {
 public:
  static constexpr size_t kTerms = 8;
  using Terms = std::array<double, kTerms>;

  static StepCost Fit(std::span<const bench::StepSample> samples);

  double Seconds(const StepShape& shape) const;
  // Typical relative error (median of its absolute value) over what it was fitted to.
  double error() const { return error_; }
  const Terms& terms() const { return costs_; }

 private:
  Terms costs_{};
  double error_ = 0;
};

}  // namespace vivace::tune
