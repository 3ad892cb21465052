// How fast something went of late: amounts over the time that they took, in which what is old
// weighs less, by exp(-age / memory). One thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace vivace {

class DecayedRate {
 public:
  explicit DecayedRate(double memory_s) : memory_ns_(memory_s * 1e9) {}

  // Time in which nothing came counts once something does, and for no more than the memory: how
  // long it will be is not known while it lasts, and a longer one says nothing of the next.
  void Add(double amount, int64_t ns) {
    open_ns_ += static_cast<double>(ns);
    if (amount <= 0) return;
    const double passed = std::min(std::exchange(open_ns_, 0), memory_ns_);
    const double keep = std::exp(-passed / memory_ns_);
    amount_ = amount_ * keep + amount;
    ns_ = ns_ * keep + passed;
  }
  // Nothing was to come.
  void Rest() { open_ns_ = 0; }

  double per_second() const { return ns_ > 0 ? amount_ / ns_ * 1e9 : 0; }  // 0: nothing yet

 private:
  double memory_ns_;
  double amount_ = 0, ns_ = 0, open_ns_ = 0;
};

}  // namespace vivace
