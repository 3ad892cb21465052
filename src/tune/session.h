// What all parts of one run of `vivace tune` share: what is asked for, the model, the memory there
// is, and the time. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/config.h"
#include "engine/model_text.h"
#include "model/loaded_model.h"
#include "tune/tune_options.h"

namespace vivace::tune {

// The time that the user gives to all sessions together, and whether he wants it to end at once.
class Budget {
 public:
  Budget(double seconds, const std::atomic<bool>* stop) : seconds_(seconds), stop_(stop) {}

  void SetSpentBefore(double seconds) { before_s_ = seconds; }  // by earlier sessions
  double Spent() const { return before_s_ + static_cast<double>(SteadyNanos() - start_ns_) * 1e-9; }
  double total() const { return seconds_; }
  double Left() const { return std::max(seconds_ - Spent(), kShortestS); }
  int64_t DeadlineNs() const {
    return start_ns_ + static_cast<int64_t>(std::max(seconds_ - before_s_, 0.0) * kNanosPerSecond);
  }
  bool Stopped() const { return stop_ != nullptr && stop_->load(); }
  bool Out() const { return Spent() >= seconds_; }
  // Nothing more is to be begun. What an earlier session measured is reported whatever it takes.
  bool Over() const { return Stopped() || (Out() && !replaying_); }
  void SetReplaying(bool replaying) { replaying_ = replaying; }

 private:
  static constexpr double kShortestS = 1e-3;  // 0 would be no bound

  const double seconds_;
  const std::atomic<bool>* const stop_;
  const int64_t start_ns_ = SteadyNanos();
  double before_s_ = 0;
  bool replaying_ = false;
};

struct Session {
  const TuneOptions& options;
  const model::ModelFile& file;
  const ModelText& text;
  Budget budget;
  // Bytes free before anything is loaded, read once: what others take meanwhile may not change how
  // many blocks a setting has. A session that goes on has the reading of the first.
  size_t available = 0;
  std::vector<std::string> notes = {};                                // for people
  std::function<void(std::string)> tell = [](const std::string&) {};  // what is being done

  EngineConfig ConfigOf(const Setting& setting) const {
    EngineConfig config = options.engine;
    Apply(setting, &config);
    return config;
  }
};

inline double SecondsSince(int64_t ns) { return static_cast<double>(SteadyNanos() - ns) * 1e-9; }

}  // namespace vivace::tune
