// Order statistics of a few trials.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace vivace::bench {

// The middle of `values`, the mean of the middle two for an even count; 0 if there are none.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace vivace::bench
