// Time: a steady clock for durations and deadlines, the wall clock for stamps people read.
// Cost: one vDSO call. Any thread.
#pragma once

#include <time.h>

#include <cstdint>

namespace vivace {

inline constexpr int64_t kNanosPerSecond = 1'000'000'000;
inline constexpr int64_t kNanosPerMs = 1'000'000;

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

// What a clock on the wall shows, in the zone of this process.
inline tm LocalTime() {
  const time_t now = time(nullptr);
  tm local = {};
  localtime_r(&now, &local);
  return local;
}

}  // namespace vivace
