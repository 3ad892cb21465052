// A thread pool's workers, started at one moment and timed from there to the last one's end: how
// much a machine does with all threads busy at the same time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/thread_pool.h"

namespace vivace::bench {

// Calls body(worker) on all workers of `pool` behind a barrier; seconds until the last has ended.
// The processors must be there: a worker waits for the others without giving way.
template <typename Body>
double SecondsTogether(ThreadPool& pool, Body&& body) {
  std::atomic<int> waiting{pool.size()};
  std::atomic<int64_t> first{INT64_MAX}, last{0};
  pool.Run([&](int worker) {
    waiting.fetch_sub(1, std::memory_order_acq_rel);
    while (waiting.load(std::memory_order_acquire) > 0) {
    }
    const int64_t start = SteadyNanos();
    body(worker);
    const int64_t end = SteadyNanos();
    for (int64_t seen = first.load(); start < seen && !first.compare_exchange_weak(seen, start);) {
    }
    for (int64_t seen = last.load(); end > seen && !last.compare_exchange_weak(seen, end);) {
    }
  });
  return static_cast<double>(std::max<int64_t>(last - first, 1)) / 1e9;
}

}  // namespace vivace::bench
