// How fast something went of late: amounts over the time that they took, in which what is old
// weighs less, by exp(-age / 10 s). The time that passes between is not counted. One thread.
#pragma once

#include <cmath>
#include <cstdint>

namespace vivace {

class DecayedRate {
 public:
  void Add(double amount, int64_t ns) {
    const double keep = std::exp(static_cast<double>(-ns) / kMemoryNs);
    amount_ = amount_ * keep + amount;
    ns_ = ns_ * keep + static_cast<double>(ns);
  }
  double per_second() const { return ns_ > 0 ? amount_ / ns_ * 1e9 : 0; }  // 0: nothing yet

 private:
  static constexpr double kMemoryNs = 10e9;
  double amount_ = 0, ns_ = 0;
};

}  // namespace vivace
