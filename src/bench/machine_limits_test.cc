#include "bench/machine_limits.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/clock.h"
#include "base/cpu.h"
#include "bench/statistics.h"
#include "bench/steal.h"

namespace vivace::bench {
namespace {

TEST(Steal, IsTheEighthFigureOfTheFirstLine) {
  const auto ticks = ParseCpuTicks("cpu  10 20 30 40 50 60 70 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
  ASSERT_TRUE(ticks);
  EXPECT_EQ(ticks->steal, 8u);
  EXPECT_EQ(ticks->total, 10u + 20 + 30 + 40 + 50 + 60 + 70 + 8);
}

TEST(Steal, OtherTextIsNoFigure) {
  for (const char* text : {"", "cpu", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"})
    EXPECT_FALSE(ParseCpuTicks(text)) << text;
}

TEST(Statistics, MedianIsTheMiddle) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({}), 0);
}

// Each chain takes an instruction a step, and no machine starts more than four of those in a cycle
// or has more than 7 GHz; of a loop that a compiler emptied a cycle a step is left.
TEST(MacKernels, LoopsAreNotOptimisedAway) {
  constexpr int64_t kSteps = 200'000;
  for (const MacKernel& kernel : MacKernels()) {
    if (!kernel.supported()) continue;
    const int64_t start = SteadyNanos();
    kernel.run(kSteps);
    const double seconds = static_cast<double>(SteadyNanos() - start) / 1e9;
    const int chains = kernel.kind <= MacKind::kDpbusdVex ? kVexChains : kEvexChains;
    EXPECT_GT(seconds, static_cast<double>(kSteps * chains) / 4 / 7e9) << kernel.name;
  }
}

TEST(MacKernels, AreListedInOrderOfTheirKinds) {
  ASSERT_EQ(MacKernels().size(), static_cast<size_t>(kMacKinds));
  for (int i = 0; i < kMacKinds; ++i)
    EXPECT_EQ(static_cast<int>(MacKernels()[static_cast<size_t>(i)].kind), i);
}

TEST(MachineLimits, ReadersReadEveryByte) {
  std::vector<std::byte> memory(3 * kReadGranule + 64);
  auto* at =
      reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  for (auto* read : {ReadStreams, ReadPrefetched}) {
    EXPECT_EQ(read(at, 2 * kReadGranule), 0u);
    for (const int64_t place : {int64_t{0}, int64_t{77}, kReadGranule - 1, kReadGranule,
                                2 * kReadGranule - 1, kReadGranule + 4'096 + 33}) {
      at[place] = std::byte{1};
      EXPECT_NE(read(at, 2 * kReadGranule), 0u) << place;
      at[place] = std::byte{0};
    }
    at[2 * kReadGranule] = std::byte{1};
    EXPECT_EQ(read(at, 2 * kReadGranule), 0u) << "past the end";
    at[2 * kReadGranule] = std::byte{0};
  }
}

TEST(MachineLimits, MoreThreadsThanProcessorsAreRefused) {
  const auto limits = MeasureLimits({.threads = UsableCpus() + 1, .working_sets = {}});
  ASSERT_FALSE(limits);
  EXPECT_EQ(limits.error().field, "threads");
}

TEST(MachineLimits, BetterTakesTheBestOfEachFigure) {
  MachineLimits a, b;
  a.macs = {{MacKind::kFp32Ymm, 1, 10}, {MacKind::kFp32Ymm, 2, 25}};
  b.macs = {{MacKind::kFp32Ymm, 1, 12}, {MacKind::kFp32Ymm, 2, 20}};
  a.reads = {{1024, 1, 5, 4}};
  b.reads = {{1024, 1, 6, 3}};
  a.barrier_ns = 300;
  b.barrier_ns = 200;
  const MachineLimits best = Better(a, b);
  EXPECT_EQ(best.MacRate(MacKind::kFp32Ymm, 1), 12);
  EXPECT_EQ(best.MacRate(MacKind::kFp32Ymm, 2), 25);
  EXPECT_EQ(best.reads[0].best, 6);
  EXPECT_EQ(best.reads[0].median, 4);
  EXPECT_EQ(best.barrier_ns, 200);
}

}  // namespace
}  // namespace vivace::bench
