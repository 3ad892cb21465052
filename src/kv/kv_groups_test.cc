#include "kv/kv_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace vivace {
namespace {

using testing::ElementsAre;

// Every `every`-th of `count` layers is full, the others have the window.
std::vector<int32_t> Mixed(int32_t count, int32_t every, int32_t window) {
  std::vector<int32_t> windows;
  for (int32_t i = 1; i <= count; ++i) windows.push_back(i % every == 0 ? 0 : window);
  return windows;
}

TEST(DealLayers, LayersThatAreAlikeAreOneGroup) {
  for (const int32_t window : {0, 512}) {
    const KvGroups dealt = DealLayers(std::vector<int32_t>(30, window));
    ASSERT_EQ(dealt.groups.size(), 1u);
    EXPECT_EQ(dealt.layers_per_block, 30);
    EXPECT_EQ(dealt.groups[0].window, window);
    EXPECT_EQ(dealt.groups[0].layers.size(), 30u);
    EXPECT_EQ(dealt.groups[0].layers[7], 7);
  }
}

TEST(DealLayers, GroupsAreAsLargeAsTheRarestKind) {
  const KvGroups dealt = DealLayers(Mixed(18, 6, 512));
  EXPECT_EQ(dealt.layers_per_block, 3);
  ASSERT_EQ(dealt.groups.size(), 6u);
  EXPECT_EQ(dealt.groups[0].window, 0);
  EXPECT_THAT(dealt.groups[0].layers, ElementsAre(5, 11, 17));
  EXPECT_EQ(dealt.groups[1].window, 512);
  EXPECT_THAT(dealt.groups[1].layers, ElementsAre(0, 1, 2));
  EXPECT_THAT(dealt.groups[2].layers, ElementsAre(3, 4, 6));
  const KvWindows windows(dealt);
  EXPECT_EQ(windows.size(), 6);
  EXPECT_EQ(windows.num_full(), 1);
}

TEST(DealLayers, TheLastGroupOfAKindMayBeShort) {
  const KvGroups dealt = DealLayers(Mixed(26, 6, 512));
  EXPECT_EQ(dealt.layers_per_block, 4);
  ASSERT_EQ(dealt.groups.size(), 7u);
  EXPECT_EQ(dealt.groups.back().layers.size(), 2u);
}

// Whatever the windows: each layer is in one group, whose window is no narrower than its own.
TEST(DealLayers, EachLayerHasOnePlaceThatKeepsWhatItSees) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<int32_t> windows(1 + random() % 70);
    const uint32_t kinds = 1 + random() % (round % 2 == 0 ? 3 : 40);
    for (int32_t& window : windows) window = static_cast<int32_t>(random() % kinds) * 16;
    const KvGroups dealt = DealLayers(windows);
    EXPECT_LE(dealt.groups.size(), static_cast<size_t>(kMaxKvGroups));
    std::set<int32_t> seen;
    for (const KvGroup& group : dealt.groups) {
      EXPECT_GE(group.layers.size(), 1u);
      EXPECT_LE(group.layers.size(), static_cast<size_t>(dealt.layers_per_block));
      EXPECT_TRUE(std::is_sorted(group.layers.begin(), group.layers.end()));
      for (const int32_t layer : group.layers) {
        EXPECT_TRUE(seen.insert(layer).second) << layer;
        const int32_t window = windows[static_cast<size_t>(layer)];
        EXPECT_TRUE(group.window == 0 || (window > 0 && window <= group.window));
      }
    }
    EXPECT_EQ(seen.size(), windows.size());
  }
}

TEST(KvWindows, AreOneFullGroupUnlessSaid) {
  constexpr KvWindows one;
  static_assert(one.size() == 1 && one[0] == 0 && one.num_full() == 1);
  constexpr KvWindows two{0, 64};
  static_assert(two.size() == 2 && two[1] == 64 && two.num_full() == 1);
}

// Against every position a query can see.
TEST(FirstVisibleBlock, IsTheBlockOfTheFirstPositionSeen) {
  for (const int32_t window : {1, 2, 16, 17, 40}) {
    for (int32_t position = 0; position < 100; ++position) {
      int32_t first = position;
      while (first > 0 && first - 1 > position - window) --first;
      EXPECT_EQ(FirstVisibleBlock(window, 16, position), first / 16);
    }
  }
  EXPECT_EQ(FirstVisibleBlock(0, 16, 1'000'000), 0);
}

// Walks a prompt in chunks of every size from every position: never more, and the bound is met.
TEST(MostBlocks, IsTheMostThatAChunkAndItsWindowTouch) {
  constexpr int32_t kTokens = 60;
  for (const int32_t size : {1, 3, 16}) {
    for (const int32_t window : {1, 2, 7, 16, 33}) {
      for (const int32_t chunk : {1, 5, 16, 100}) {
        int32_t most = 0;
        for (int32_t at = 0; at < kTokens; ++at) {
          const int32_t end = std::min(at + chunk, kTokens);
          most = std::max(most, KvBlocksFor(end, size) - FirstVisibleBlock(window, size, at));
        }
        const int32_t bound = MostBlocks(window, size, kTokens, chunk);
        EXPECT_LE(most, bound);
        EXPECT_LE(bound - most, 1) << "window " << window << " chunk " << chunk;
      }
    }
  }
  EXPECT_EQ(MostBlocks(0, 16, 1000, 1), 63);
  EXPECT_EQ(MostBlocks(INT32_MAX, 16, 1000, INT32_MAX), 63);
}

TEST(LongestSequence, IsWhatJustFits) {
  EXPECT_EQ(LongestSequence({}, 16, 10, 512, 100'000), 160);
  EXPECT_EQ(LongestSequence({}, 16, 10, 512, 100), 100);
  EXPECT_EQ(LongestSequence({}, 16, 0, 512, 100), 0);
  const KvWindows mixed{0, 32, 32};
  // Each window takes (31 + 16 + 14) / 16 + 1 = 4 blocks.
  EXPECT_EQ(LongestSequence(mixed, 16, 28, 16, 100'000), 320);
  EXPECT_EQ(LongestSequence(mixed, 16, 27, 16, 100'000), 304);
  EXPECT_EQ(LongestSequence(KvWindows{32}, 16, 4, 16, 100'000), 100'000) << "no end to it";
  EXPECT_EQ(LongestSequence(KvWindows{32}, 16, 3, 16, 100'000), 48);
}

}  // namespace
}  // namespace vivace
