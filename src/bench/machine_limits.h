// What this machine can do, measured in this process: the yardstick of every benchmark of ours.
//
// Measured with all threads at once and with one, never by multiplying one thread's figure. The
// best of several short trials counts, because a limit is what the machine can do when left alone.
// Nothing is stored: a figure is worth something only beside others of the same run.
// Cost: 2 to 4 s and, for a moment, a buffer of the largest working set. Any thread, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/mac_kernels.h"

namespace vivace::bench {

struct LimitOptions {
  int threads = 0;                   // 0: the usable CPUs
  std::vector<size_t> working_sets;  // bytes, beside those of the caches and of memory
};

struct ReadLimit {
  size_t bytes = 0;  // of all threads together
  int threads = 0;
  double best = 0, median = 0;  // bytes a second
};

struct MacLimit {
  MacKind kind;
  int threads = 0;
  double rate = 0;  // multiply-adds a second, of all threads
};

struct MachineLimits {
  std::string cpu;  // the name it gives itself
  int threads = 0;
  size_t l2_bytes = 0, l3_bytes = 0;         // 0: the system does not say
  double clock_before = 0, clock_after = 0;  // Hz, of the slowest thread, all busy
  std::vector<ReadLimit> reads;              // by threads, then by bytes
  std::vector<MacLimit> macs;                // kinds the machine has
  double barrier_ns = 0;                     // one empty loop of the thread pool, workers awake
  double wake_ns = 0;                        // the same with the workers asleep
  double steal = 0;  // share of the time in which the host ran something else
  bool disturbed() const { return steal > 0.01; }

  // Rate of a kind with that many threads; 0 if the machine lacks it.
  double MacRate(MacKind kind, int threads) const;
  // Read bandwidth at a working set: measured sizes, and between two of them a line over the
  // logarithm of the size.
  double ReadRate(size_t bytes, int threads) const;
};

// The name the processor gives itself; empty where the system does not say.
std::string CpuName();

Result<MachineLimits> MeasureLimits(const LimitOptions& options);

// The better of two measurements of one machine, figure by figure.
MachineLimits Better(const MachineLimits& a, const MachineLimits& b);

}  // namespace vivace::bench
