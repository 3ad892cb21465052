// The bar of a pull: bytes, speed, on a terminal; nothing elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "cli/progress.h"

namespace vivace::cli {

class PullProgress {
 public:
  explicit PullProgress(const std::string& model) : bar_("getting " + model) {}
  std::function<void(uint64_t, uint64_t)> Hook() {
    return [this](uint64_t done, uint64_t total) { Update(done, total); };
  }
  void Clear() { bar_.Clear(); }

 private:
  void Update(uint64_t done, uint64_t total);

  using Clock = std::chrono::steady_clock;
  Progress bar_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point shown_;
  bool first_ = true;
  uint64_t first_bytes_ = 0;  // those at hand when it began count for no speed
};

}  // namespace vivace::cli
