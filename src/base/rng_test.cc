#include "base/rng.h"

#include <gtest/gtest.h>

namespace vivace {
namespace {

// Known answers published with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox(0, {0, 0, 0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox(0xffffffffffffffff, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(UniformDraw, DependsOnSeedChoiceAndPositionOnly) {
  EXPECT_EQ(UniformDraw(1, 2, 3), UniformDraw(1, 2, 3));
  EXPECT_NE(UniformDraw(1, 2, 3), UniformDraw(2, 2, 3));
  EXPECT_NE(UniformDraw(1, 2, 3), UniformDraw(1, 3, 3));
  EXPECT_NE(UniformDraw(1, 2, 3), UniformDraw(1, 2, 4));
  EXPECT_NE(UniformDraw(1, 2, 3), UniformDraw(1, 2, 3, 1));
}

TEST(UniformDraw, IsUniform) {
  constexpr int kDraws = 100'000, kBins = 10;
  int bins[kBins] = {};
  for (int i = 0; i < kDraws; ++i) {
    const double u = UniformDraw(7, 0, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++bins[static_cast<int>(u * kBins)];
  }
  for (const int count : bins) EXPECT_NEAR(count, kDraws / kBins, 5 * 95);  // five sigma
}

}  // namespace
}  // namespace vivace
