// When the requests of an open loop are sent: an absolute plan, made before the run.
//
// Gaps are drawn from a gamma distribution of mean 1 / rate and shape `burstiness` (1: a Poisson
// process; infinity: constant gaps), then all times are rescaled so that n requests take exactly
// n / rate, as `vllm bench serve` does: two runs of one rate differ in their gaps and not in their
// load. A ramp goes from one rate to another over the requests and is not rescaled, as there.
// Pure and seeded: the same options give the same times on every machine. O(n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vivace::load {

// Below these a command line is refused: a rate that takes years, and a shape so small that gaps
// are too small to be told from none.
inline constexpr double kLeastArrivalRate = 1e-4;
inline constexpr double kLeastBurstiness = 0.01;

struct ArrivalOptions {
  double rate = 0;        // requests a second; 0 or infinity: all at once
  double burstiness = 1;  // shape; below 1 burstier than Poisson, above 1 more even
  enum class Ramp : uint8_t { kNone, kLinear, kExponential } ramp = Ramp::kNone;
  double ramp_from = 0, ramp_to = 0;  // requests a second, both above 0; `rate` is not used then
  uint64_t seed = 0;
};

// Seconds after the start, ascending. Options that make no sense (a negative rate, a burstiness of
// 0) are for the caller to refuse; here they read as "at once" and as 1.
std::vector<double> Arrivals(const ArrivalOptions& options, size_t n);

}  // namespace vivace::load
