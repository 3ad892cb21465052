#include "load/arrivals.h"

#include <algorithm>
#include <cmath>

#include "load/random.h"

namespace vivace::load {
namespace {

constexpr uint64_t kArrivalPurpose = 0xA441;

double RateAt(const ArrivalOptions& options, double progress) {
  switch (options.ramp) {
    case ArrivalOptions::Ramp::kLinear:
      return options.ramp_from + (options.ramp_to - options.ramp_from) * progress;
    case ArrivalOptions::Ramp::kExponential:
      return options.ramp_from * std::pow(options.ramp_to / options.ramp_from, progress);
    case ArrivalOptions::Ramp::kNone:
      break;
  }
  return options.rate;
}

bool CanSpace(double rate) { return rate > 0 && std::isfinite(rate); }

}  // namespace

std::vector<double> Arrivals(const ArrivalOptions& options, size_t n) {
  std::vector<double> at(n);
  Random random(options.seed, kArrivalPurpose);
  const double shape = options.burstiness > 0 ? options.burstiness : 1;
  double now = 0;
  for (size_t i = 0; i < n; ++i) {
    const double rate =
        RateAt(options, static_cast<double>(i) / static_cast<double>(std::max<size_t>(n - 1, 1)));
    if (CanSpace(rate)) {
      now += std::isfinite(shape) ? random.Gamma(shape) / (shape * rate) : 1 / rate;
    }
    at[i] = now;
  }
  if (now == 0 && CanSpace(options.rate)) {  // gaps too small for a double: they are even then
    for (size_t i = 0; i < n; ++i) at[i] = static_cast<double>(i + 1) / options.rate;
  } else if (options.ramp == ArrivalOptions::Ramp::kNone && now > 0) {
    const double scale = static_cast<double>(n) / options.rate / now;
    for (double& t : at) t *= scale;
  }
  return at;
}

}  // namespace vivace::load
