// How long a step takes, as a sum over what it computes, fitted to steps that were measured with
// one number of threads and one kind of cache:
//
//   decodes alone   fixed + rows in 1..8 * a + rows in 9..64 * b + rows beyond * c
//   with a prompt   fixed + rows in 1..64 * d + rows beyond * e + prompt context * f
//                   + logit rows * g
//   both            + decode context * h
//
// Few rows are bound by reading the weights and many by multiplying, hence a slope of rows for each
// range; the kernels of a step with prompts work in batches, hence two of everything
// (sched/step_cost_model.h). No step is shorter than its decodes alone. All terms are non-negative,
// so a larger step of a kind never costs less. The fit is least squares of relative errors with
// outliers weighed down (Huber), as in sched/, which may look at the last steps only; this one
// takes all there are.
//
// Cost: Fit some milliseconds for a thousand steps; Seconds some nanoseconds. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "bench/step_samples.h"
#include "sched/step_cost_model.h"

namespace vivace::tune {

class StepTimeModel {
 public:
  static constexpr size_t kTerms = 10;
  using Terms = std::array<double, kTerms>;

  static StepTimeModel Fit(std::span<const bench::StepSample> samples);

  double Seconds(const StepShape& shape) const;
  // Typical relative error (median of its absolute value) over what it was fitted to.
  double error() const { return error_; }
  const Terms& terms() const { return costs_; }

 private:
  Terms costs_{};
  double error_ = 0;
};

}  // namespace vivace::tune
