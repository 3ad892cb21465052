#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace vivace {
namespace {

class ThreadPoolSizes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, ThreadPoolSizes, testing::Values(1, 2, 3, 8));

TEST_P(ThreadPoolSizes, RunCallsEveryWorkerOnce) {
  ThreadPool pool(GetParam());
  ASSERT_EQ(pool.size(), GetParam());
  std::vector<int> calls(pool.size());  // plain ints: each has one writer, Run orders the reads
  for (int round = 1; round <= 2000; ++round) {
    pool.Run([&](int worker) { ++calls[worker]; });
    for (int count : calls) ASSERT_EQ(count, round);
  }
}

TEST_P(ThreadPoolSizes, ForEachCallsEveryItemOnce) {
  ThreadPool pool(GetParam());
  for (int count = 0; count < 300; ++count) {
    std::vector<int> calls(count);
    pool.ForEach(count, [&](int64_t i) { ++calls[i]; });
    for (int c : calls) ASSERT_EQ(c, 1);
  }
}

TEST_P(ThreadPoolSizes, ThousandsOfTinyLoopsSeeEachOthersWrites) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> values(5, 0);
  for (int round = 0; round < 20000; ++round) {
    pool.ForEach(5, [&](int64_t i) { values[i] += i; });
    if (round % 7 == 0)
      pool.Run([&](int worker) {
        if (worker == 0) values[0] += 1;
      });
  }
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), 20000 * 10 + 2858);
}

TEST_P(ThreadPoolSizes, WorksAgainAfterParking) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::atomic<int> sum{0};
    pool.Run([&](int worker) { sum += worker + 1; });
    EXPECT_EQ(sum, GetParam() * (GetParam() + 1) / 2);
  }
}

TEST_P(ThreadPoolSizes, EndsWhileParkedSpinningOrNeverUsed) {
  for (int round = 0; round < 50; ++round) {
    ThreadPool unused(GetParam());
    ThreadPool spinning(GetParam());
    spinning.Run([](int) {});
  }
  ThreadPool parked(GetParam());
  parked.Run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

TEST(ThreadPool, SlowItemsAreSharedByHavingOthersTakeTheRest) {
  ThreadPool pool(2);
  std::atomic<int> others{0};
  std::atomic<bool> released{false};
  // Item 0 waits for all others: only a pool that hands out items one by one can finish this.
  pool.ForEach(100, [&](int64_t i) {
    if (i == 0) {
      while (!released) std::this_thread::yield();
    } else if (++others == 99) {
      released = true;
    }
  });
  EXPECT_EQ(others, 99);
}

TEST(ThreadPool, AnIdlePoolCostsNothing) {
  ThreadPool pool(4);
  pool.Run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto cpu = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
  };
  const double before_ms = cpu();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu() - before_ms, 100) << "a single spinning thread would have used 200 ms";
}

}  // namespace
}  // namespace vivace
