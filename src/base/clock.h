// Time: a steady clock for durations and deadlines, the wall clock for stamps people read.
// Cost: one vDSO call. Pass a `const Clock&` where a test must own the time; call the free
// functions where it need not.
#pragma once

#include <time.h>

#include <cstdint>

namespace vivace {

inline constexpr int64_t kNanosPerSecond = 1'000'000'000;

inline int64_t ReadClock(clockid_t id) {
  timespec now;
  clock_gettime(id, &now);
  return now.tv_sec * kNanosPerSecond + now.tv_nsec;
}

// Nanoseconds since an arbitrary start; never goes back.
inline int64_t SteadyNanos() { return ReadClock(CLOCK_MONOTONIC); }
// Nanoseconds and whole seconds since 1970, UTC; may jump.
inline int64_t WallNanos() { return ReadClock(CLOCK_REALTIME); }
inline int64_t WallSeconds() { return WallNanos() / kNanosPerSecond; }

// The same two readings behind an interface. Implementations are safe to read from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t SteadyNow() const { return SteadyNanos(); }
  virtual int64_t WallNow() const { return WallNanos(); }

  static const Clock& System() {
    static const Clock clock;
    return clock;
  }
};

// Stands still until told to move. For one thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(int64_t steady = 0, int64_t wall = 0) : steady_(steady), wall_(wall) {}
  int64_t SteadyNow() const override { return steady_; }
  int64_t WallNow() const override { return wall_; }
  void Advance(int64_t nanos) {
    steady_ += nanos;
    wall_ += nanos;
  }

 private:
  int64_t steady_;
  int64_t wall_;
};

}  // namespace vivace
