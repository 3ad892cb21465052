#include "load/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "load/figures.h"
#include "load/random.h"

namespace vivace::load {
namespace {

constexpr uint64_t kBootstrapPurpose = 0xB007;
constexpr std::array<double, 3> kPercents = {50, 90, 99};
constexpr size_t kMostLag = 1'000;  // looked at for a correlation
constexpr size_t kLeastBlocks = 5;

void DrawCounts(size_t groups, size_t block, Random* random, std::vector<uint32_t>* counts) {
  counts->assign(groups, 0);
  for (size_t drawn = 0; drawn < groups;) {
    size_t at = random->Below(groups);
    for (size_t i = 0; i < block && drawn < groups; ++i, ++drawn) {
      ++(*counts)[at];
      if (++at == groups) at = 0;
    }
  }
}

Interval IntervalOf(std::vector<double> ratios, double confidence) {
  std::erase_if(ratios, [](double ratio) { return !std::isfinite(ratio); });
  if (ratios.empty()) return {NAN, NAN};
  std::sort(ratios.begin(), ratios.end());
  const double tail = (1 - confidence) / 2 * 100;
  return {Percentile(ratios, tail), Percentile(ratios, 100 - tail)};
}

int Resamples(int wanted, size_t work) {
  const double most = kMaxBootstrapWork / std::max<double>(1, static_cast<double>(work));
  return std::max(kLeastResamples, static_cast<int>(std::min<double>(wanted, most)));
}

}  // namespace

GroupedValues::GroupedValues(const std::vector<std::vector<double>>& groups) {
  for (size_t g = 0; g < groups.size(); ++g) {
    sums_.push_back(std::accumulate(groups[g].begin(), groups[g].end(), 0.0));
    sizes_.push_back(static_cast<uint32_t>(groups[g].size()));
    for (double value : groups[g]) sorted_.push_back({value, static_cast<uint32_t>(g)});
  }
  std::sort(sorted_.begin(), sorted_.end(),
            [](const Value& a, const Value& b) { return a.value < b.value; });
}

// Percentiles as figures.h defines them, over the values as often as their group was drawn.
GroupedValues::Stats GroupedValues::At(std::span<const uint32_t> counts) const {
  Stats stats = {NAN, NAN, NAN, NAN};
  double sum = 0;
  uint64_t n = 0;
  for (size_t g = 0; g < sums_.size(); ++g) {
    sum += counts[g] * sums_[g];
    n += uint64_t{counts[g]} * sizes_[g];
  }
  if (n == 0) return stats;
  stats[0] = sum / static_cast<double>(n);
  std::array<double, 3> rank, low;
  for (size_t p = 0; p < kPercents.size(); ++p) {
    rank[p] = kPercents[p] / 100 * static_cast<double>(n - 1);
    low[p] = NAN;
  }
  uint64_t until = 0;
  for (size_t i = 0; i < sorted_.size() && std::isnan(stats[3]); ++i) {
    until += counts[sorted_[i].group];
    for (size_t p = 0; p < kPercents.size(); ++p) {
      const auto below = static_cast<uint64_t>(rank[p]);
      if (std::isnan(low[p]) && below < until) low[p] = sorted_[i].value;
      if (std::isnan(stats[p + 1]) && std::min(below + 1, n - 1) < until) {
        stats[p + 1] =
            low[p] + (sorted_[i].value - low[p]) * (rank[p] - static_cast<double>(below));
      }
    }
  }
  return stats;
}

GroupedValues::Stats GroupedValues::Whole() const { return At(std::vector<uint32_t>(groups(), 1)); }

std::vector<double> GroupedValues::GroupMeans() const {
  std::vector<double> means(groups(), 0);
  for (size_t g = 0; g < groups(); ++g) {
    if (sizes_[g] > 0) means[g] = sums_[g] / sizes_[g];
  }
  return means;
}

size_t BlockLength(std::span<const double> series) {
  const size_t n = series.size();
  if (n < 2 * kLeastBlocks) return 1;
  const double mean = std::accumulate(series.begin(), series.end(), 0.0) / n;
  const auto covariance = [&](size_t lag) {
    double sum = 0;
    for (size_t i = lag; i < n; ++i) sum += (series[i] - mean) * (series[i - lag] - mean);
    return sum;
  };
  const double variance = covariance(0), noise = 2 / std::sqrt(static_cast<double>(n));
  const size_t most = std::min(n / kLeastBlocks, kMostLag);
  size_t lag = 1;
  while (lag < most && covariance(lag) > noise * variance) ++lag;
  return lag == 1 ? 1 : std::min(2 * lag, n / kLeastBlocks);
}

std::array<Interval, 4> RatioIntervals(const GroupedValues& a, const GroupedValues& b, bool paired,
                                       const BootstrapOptions& options) {
  Random random(options.seed, kBootstrapPurpose);
  std::array<std::vector<double>, 4> ratios;
  std::vector<uint32_t> counts;
  const int resamples = Resamples(options.resamples, a.values() + b.values());
  size_t block_a = BlockLength(a.GroupMeans()), block_b = BlockLength(b.GroupMeans());
  if (paired) block_a = block_b = std::max(block_a, block_b);
  for (int i = 0; i < resamples && a.groups() > 0 && b.groups() > 0; ++i) {
    DrawCounts(a.groups(), block_a, &random, &counts);
    const auto of_a = a.At(counts);
    if (!paired) DrawCounts(b.groups(), block_b, &random, &counts);
    const auto of_b = b.At(counts);
    for (size_t s = 0; s < ratios.size(); ++s) ratios[s].push_back(of_b[s] / of_a[s]);
  }
  std::array<Interval, 4> intervals;
  for (size_t s = 0; s < ratios.size(); ++s) {
    intervals[s] = IntervalOf(std::move(ratios[s]), options.confidence);
  }
  return intervals;
}

Interval MeanRatioInterval(std::span<const double> a, std::span<const double> b,
                           const BootstrapOptions& options) {
  Random random(options.seed, kBootstrapPurpose + 1);
  const auto mean = [&](std::span<const double> values) {
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += values[random.Below(values.size())];
    return sum / static_cast<double>(values.size());
  };
  std::vector<double> ratios;
  const int resamples = Resamples(options.resamples, a.size() + b.size());
  for (int i = 0; i < resamples && !a.empty() && !b.empty(); ++i) {
    const double of_a = mean(a);
    ratios.push_back(mean(b) / of_a);
  }
  return IntervalOf(std::move(ratios), options.confidence);
}

}  // namespace vivace::load
