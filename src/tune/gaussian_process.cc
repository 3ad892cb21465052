#include "tune/gaussian_process.h"

#include <algorithm>
#include <cmath>

namespace vivace::tune {
namespace {

constexpr double kJitter = 1e-10;  // of the variance, so that equal places can be factored

// Solves L x = b in place, L lower triangular.
void SolveLower(const std::vector<std::vector<double>>& lower, std::vector<double>* b) {
  for (size_t i = 0; i < b->size(); ++i) {
    double sum = (*b)[i];
    for (size_t j = 0; j < i; ++j) sum -= lower[i][j] * (*b)[j];
    (*b)[i] = sum / lower[i][i];
  }
}

// Solves L^T x = b in place.
void SolveUpper(const std::vector<std::vector<double>>& lower, std::vector<double>* b) {
  for (size_t i = b->size(); i-- > 0;) {
    double sum = (*b)[i];
    for (size_t j = i + 1; j < b->size(); ++j) sum -= lower[j][i] * (*b)[j];
    (*b)[i] = sum / lower[i][i];
  }
}

}  // namespace

GaussianProcess::GaussianProcess(std::span<const Observation> seen, double mean, double deviation,
                                 double length)
    : mean_(mean), deviation_(deviation), length_(length) {
  for (const Observation& o : seen) {
    places_.push_back(o.place);
    weights_.push_back(o.value - mean);
  }
  for (size_t i = 0; i < places_.size(); ++i) {
    std::vector<double>& row = factor_.emplace_back(i + 1);
    for (size_t j = 0; j <= i; ++j) {
      double sum = Kernel(places_[i], places_[j]);
      if (i == j) sum += seen[i].noise * seen[i].noise + kJitter * deviation * deviation;
      for (size_t k = 0; k < j; ++k) sum -= row[k] * factor_[j][k];
      row[j] =
          i == j ? std::sqrt(std::max(sum, kJitter * deviation * deviation)) : sum / factor_[j][j];
    }
  }
  SolveLower(factor_, &weights_);
  SolveUpper(factor_, &weights_);
}

double GaussianProcess::Kernel(const Place& a, const Place& b) const {
  double square = 0;
  for (size_t i = 0; i < a.size(); ++i) square += (a[i] - b[i]) * (a[i] - b[i]);
  const double r = std::sqrt(5 * square) / length_;
  return deviation_ * deviation_ * (1 + r + r * r / 3) * std::exp(-r);
}

Belief GaussianProcess::At(const Place& place) const {
  std::vector<double> k(places_.size());
  double mean = mean_;
  for (size_t i = 0; i < k.size(); ++i) {
    k[i] = Kernel(place, places_[i]);
    mean += k[i] * weights_[i];
  }
  SolveLower(factor_, &k);
  double variance = deviation_ * deviation_;
  for (const double x : k) variance -= x * x;
  return {.mean = mean, .deviation = std::sqrt(std::max(variance, 0.0))};
}

}  // namespace vivace::tune
