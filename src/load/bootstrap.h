// Bootstrap intervals of the ratio of two runs' figures (Efron, "Bootstrap methods", 1979;
// percentile method). Pure, seeded; cost bounded by kMaxBootstrapWork.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace vivace::load {

inline constexpr double kMaxBootstrapWork = 4e8;  // values looked at, of one figure
inline constexpr int kLeastResamples = 200;

// Values in groups that are drawn together: the gaps of one request, or the one latency of each.
// Group i of both runs is the same request where the resampling is paired.
class GroupedValues {
 public:
  explicit GroupedValues(const std::vector<std::vector<double>>& groups);

  size_t groups() const { return sums_.size(); }
  size_t values() const { return sorted_.size(); }

  // Mean, p50, p90, p99 when group i is there counts[i] times; NaN if nothing is.
  using Stats = std::array<double, 4>;
  Stats At(std::span<const uint32_t> counts) const;
  Stats Whole() const;

  // Means of the groups, in their order; a group of none has the mean 0.
  std::vector<double> GroupMeans() const;

 private:
  struct Value {
    double value;
    uint32_t group;
  };
  std::vector<Value> sorted_;
  std::vector<double> sums_;
  std::vector<uint32_t> sizes_;
};

struct Interval {
  double low = 0, high = 0;
};

struct BootstrapOptions {
  double confidence = 0.95;
  int resamples = 2000;
  uint64_t seed = 0;
};

// How many neighbours of a series are drawn together, so that what they share stays together: 1
// where they share nothing, otherwise twice the distance at which their correlation is lost in the
// noise (after Politis and White, 2004), at most a fifth of the series.
size_t BlockLength(std::span<const double> series);

// Of b / a, for each of the four statistics, with blocks of groups drawn from a circle (Politis and
// Romano, 1992): groups are in the order of time, and in a queue one shares its luck with the next.
// `paired`: both have the same groups, drawn together.
std::array<Interval, 4> RatioIntervals(const GroupedValues& a, const GroupedValues& b, bool paired,
                                       const BootstrapOptions& options);

// Of mean(b) / mean(a) of two series, each drawn by itself.
Interval MeanRatioInterval(std::span<const double> a, std::span<const double> b,
                           const BootstrapOptions& options);

}  // namespace vivace::load
