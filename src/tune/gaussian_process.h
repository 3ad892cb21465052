// A Gaussian process: what is likely at places that were not measured, from those that were
// (Rasmussen and Williams 2006, algorithm 2.1), with a Matern 5/2 kernel and noise that is known of
// each measurement. For tens of points: O(n^3) to make, O(n^2) for each prediction. Pure.
#pragma once

#include <span>
#include <vector>

#include "tune/setting.h"

namespace vivace::tune {

struct Observation {
  Place place{};
  double value = 0;
  double noise = 0;  // standard deviation of `value`
};

struct Belief {
  double mean = 0, deviation = 0;
};

class GaussianProcess {
 public:
  // `deviation`: how far values stray from `mean`; `length`: over which distance they forget.
  GaussianProcess(std::span<const Observation> seen, double mean, double deviation, double length);

  Belief At(const Place& place) const;

 private:
  double Kernel(const Place& a, const Place& b) const;

  const double mean_, deviation_, length_;
  std::vector<Place> places_;
  std::vector<std::vector<double>> factor_;  // Cholesky, lower triangle
  std::vector<double> weights_;
};

}  // namespace vivace::tune
