#include "sim/latency.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace vivace::sim {
namespace {

constexpr uint64_t kSeeds = 150;

// What --max-itl promises, wherever the streams alone leave room for it.
TEST(Latency, LongPromptsStallNoStreamAndAreNotStarved) {
  int64_t promised = 0;
  double worst_prompt = 0.0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const LatencyReport report = SimulateLatency(seed);
    ASSERT_EQ(report.unfinished_prompts, 0) << report.description;
    ASSERT_GT(report.gaps, 0);
    if (std::max(report.decodes_alone_ms, report.least_mixed_ms) > 0.8 * report.target_ms) continue;
    ++promised;
    // One in a hundred; two more, because a short run may meet outliers all the same.
    EXPECT_LE(report.long_gaps, 2 + report.gaps / 100) << report.description;
    EXPECT_LE(report.worst_prompt_ratio, 1.5) << report.description;
    worst_prompt = std::max(worst_prompt, report.worst_prompt_ratio);
  }
  fmt::print("{} of {} seeds; prompts took at most {:.2f} of their time alone\n", promised, kSeeds,
             worst_prompt);
  EXPECT_GT(promised, static_cast<int64_t>(kSeeds) / 2);
}

TEST(Latency, TheSameTimesGiveTheSamePlans) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(SimulateLatency(seed).digest, SimulateLatency(seed).digest) << "seed " << seed;
  }
}

}  // namespace
}  // namespace vivace::sim
