#include "sim/simulation.h"

#include <gtest/gtest.h>

namespace vivace::sim {
namespace {

constexpr uint64_t kSeeds = 4'000;

TEST(Simulation, InvariantsHoldForEverySeed) {
  SimulationReport total;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const SimulationReport report = Simulate(seed);
    ASSERT_EQ(report.failure, "") << "seed " << seed << "; again: vivace_sim --first-seed " << seed
                                  << " --seeds 1";
    total.aborts += report.aborts;
    total.preemptions += report.preemptions;
    total.prefix_hits += report.prefix_hits;
    total.tokens += report.tokens;
    total.forced += report.forced;
  }
  // The workloads reach what they are meant to reach.
  EXPECT_GT(total.aborts, static_cast<int64_t>(kSeeds) / 2);
  EXPECT_GT(total.preemptions, static_cast<int64_t>(kSeeds) / 2);
  EXPECT_GT(total.prefix_hits, static_cast<int64_t>(kSeeds) * 10);
  EXPECT_GT(total.tokens, static_cast<int64_t>(kSeeds) * 50);
  EXPECT_GT(total.forced, static_cast<int64_t>(kSeeds) * 5);
}

TEST(Simulation, ASeedReplaysExactly) {
  uint64_t different = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const SimulationReport once = Simulate(seed);
    const SimulationReport again = Simulate(seed);
    EXPECT_EQ(once.digest, again.digest) << "seed " << seed;
    EXPECT_EQ(once.steps, again.steps) << "seed " << seed;
    different += once.digest != Simulate(seed + 1).digest;
  }
  EXPECT_GT(different, 45u);
}

}  // namespace
}  // namespace vivace::sim
