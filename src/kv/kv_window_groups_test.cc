// The cache of a model whose layers have windows: what is kept, shared, claimed and given back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "kv/kv_cache_manager.h"

namespace vivace {
namespace {

using Tokens = std::vector<TokenId>;

constexpr int32_t kBlock = 4;

Tokens Iota(int32_t n, TokenId first = 100) {
  Tokens tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

KvCacheConfig Config(int32_t num_blocks, KvWindows windows, int32_t max_chunk) {
  return {.num_blocks = num_blocks,
          .block_size = kBlock,
          .enable_prefix_caching = true,
          .windows = windows,
          .max_chunk = max_chunk};
}

// Computes what of `tokens` is not yet, in chunks; `each` sees the sequence after every one.
template <typename Each>
void Compute(KvCacheManager* kv, KvSequence* sequence, const Tokens& tokens, int32_t computed,
             int32_t chunk, Each each) {
  const auto size = static_cast<int32_t>(tokens.size());
  while (computed < size) {
    computed = std::min(computed + chunk, size);
    kv->Advance(sequence, computed);
    kv->Computed(sequence, tokens, computed);
    each(computed);
  }
}

int32_t RunThrough(KvCacheManager* kv, const Tokens& tokens, int32_t chunk = 8) {
  KvSequence sequence = kv->Open("", "", static_cast<int64_t>(tokens.size()));
  const int32_t found = kv->TryBegin(&sequence, tokens, true, 0).value();
  Compute(kv, &sequence, tokens, found, chunk, [](int32_t) {});
  kv->End(&sequence);
  return found;
}

TEST(KvWindowGroups, KeepWhatLaterTokensSeeAndNoMore) {
  KvCacheManager kv(Config(100, {0, 6}, 8));
  const Tokens tokens = Iota(60);
  KvSequence sequence = kv.Open("", "", 60);
  ASSERT_EQ(kv.TryBegin(&sequence, tokens, true, 0), 0);
  EXPECT_EQ(sequence.blocks(0).size(), 15u) << "all of a full group";
  EXPECT_EQ(sequence.blocks(1).size(), 0u) << "of the other, only a claim";
  EXPECT_EQ(sequence.table(1).claim(), (5 + 8 + 2) / 4 + 1);
  EXPECT_EQ(kv.pool().num_available(), 100 - 15 - 4);
  Compute(&kv, &sequence, tokens, 0, 8, [&](int32_t computed) {
    const auto blocks = sequence.blocks(1);
    ASSERT_EQ(static_cast<int32_t>(blocks.size()), kv.BlocksFor(computed));
    for (int32_t i = 0; i < static_cast<int32_t>(blocks.size()); ++i) {
      // Position p is seen by the next token if p > computed - 6.
      const bool seen = (i + 1) * kBlock - 1 > computed - 6;
      EXPECT_EQ(blocks[static_cast<size_t>(i)].valid(), seen) << i << " after " << computed;
    }
    EXPECT_EQ(kv.pool().num_available(), 100 - 15 - 4) << "the claim stays";
  });
  kv.End(&sequence);
  EXPECT_EQ(kv.pool().num_used(), 0);
  EXPECT_EQ(kv.pool().num_claimed(), 0);
  EXPECT_EQ(kv.pool().num_available(), 100);
  EXPECT_EQ(kv.pool().num_retained_free(), 30) << "what was given back is findable too";
  EXPECT_TRUE(kv.Consistent());
}

TEST(KvWindowGroups, DecodingNeedsNoMoreThanTheWindow) {
  KvCacheManager kv(Config(60, {0, 6}, 8));
  Tokens tokens = Iota(9);
  KvSequence sequence = kv.Open("", "", 200);
  ASSERT_TRUE(kv.TryBegin(&sequence, tokens, true, 0).has_value());
  Compute(&kv, &sequence, tokens, 0, 8, [](int32_t) {});
  for (int32_t n = 10; n <= 200; ++n) {
    tokens.push_back(7);
    ASSERT_TRUE(kv.TryGrow(&sequence, n));
    kv.Advance(&sequence, n);
    EXPECT_LE(sequence.table(1).num_held(), 3);
    EXPECT_LE(sequence.table(1).claim(), 3);
    EXPECT_EQ(kv.pool().num_used(), kv.BlocksFor(n) + sequence.table(1).num_held());
    kv.Computed(&sequence, tokens, n);
  }
  EXPECT_EQ(sequence.table(1).first(), FirstVisibleBlock(6, kBlock, 200));
}

// What is claimed is there, though another takes all it can get.
TEST(KvWindowGroups, APromptUnderWayNeverRunsOut) {
  KvCacheManager kv(Config(14, {6}, 8));
  const Tokens tokens = Iota(60, 0);
  KvSequence prompt = kv.Open("", "", 60);
  ASSERT_TRUE(kv.TryBegin(&prompt, tokens, true, 0).has_value());
  const Tokens other = Iota(40, 500);
  std::vector<KvSequence> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(kv.Open("", "", 40));
    const bool fits = kv.TryBegin(&others.back(), other, true, 0).has_value();
    ASSERT_EQ(fits, i < 2) << "14 - 4 leave room for two claims of 4";
  }
  others.pop_back();
  for (KvSequence& sequence : others) Compute(&kv, &sequence, other, 0, 8, [](int32_t) {});
  Compute(&kv, &prompt, tokens, 0, 8, [](int32_t) {});
  EXPECT_GE(kv.pool().num_available(), 2);
}

// A block that two share is not free when one of them gives it back: both have claimed it.
TEST(KvWindowGroups, SharedBlocksAreClaimedByEachHolder) {
  KvCacheManager kv(Config(9, {6}, 8));
  const Tokens tokens = Iota(40, 0);
  KvSequence first = kv.Open("", "", 60);
  ASSERT_EQ(kv.TryBegin(&first, tokens, true, 0), 0);
  Compute(&kv, &first, Iota(12, 0), 0, 8, [](int32_t) {});
  KvSequence second = kv.Open("", "", 60);
  ASSERT_EQ(kv.TryBegin(&second, tokens, true, 0), 12);
  EXPECT_EQ(second.table(0).first(), 1);
  EXPECT_EQ(second.blocks()[2], first.blocks()[2]);
  EXPECT_EQ(kv.pool().ref_count(first.blocks()[2]), 2);
  EXPECT_EQ(kv.pool().num_available(), 1);
  EXPECT_EQ(first.CountSoleBlocks(), 4) << "ending it makes its claim available";
  // The first one gives the shared blocks back and goes on, at its full width.
  Compute(&kv, &first, tokens, 12, 8, [](int32_t) {});
  Compute(&kv, &second, tokens, 12, 8, [](int32_t) {});
  EXPECT_EQ(kv.pool().num_available(), 1);
  kv.End(&first);
  kv.End(&second);
  EXPECT_EQ(kv.pool().num_available(), 9);
  EXPECT_TRUE(kv.Consistent());
}

TEST(KvWindowGroups, AMatchNeedsOnlyTheWindowOfWindowGroups) {
  KvCacheManager kv(Config(40, {0, 6}, 8));
  const Tokens tokens = Iota(41);
  EXPECT_EQ(RunThrough(&kv, tokens), 0);
  KvSequence sequence = kv.Open("", "", 41);
  ASSERT_EQ(kv.TryBegin(&sequence, tokens, true, 0), 40);
  EXPECT_EQ(sequence.table(0).first(), 0);
  // Position 40 sees 35 and on: blocks 8 and 9.
  EXPECT_EQ(sequence.table(1).first(), 8);
  EXPECT_EQ(sequence.table(1).num_held(), 2);
  EXPECT_FALSE(sequence.blocks(1)[7].valid());
  kv.End(&sequence);
  EXPECT_EQ(RunThrough(&kv, Iota(30)), 28) << "a shorter one finds the blocks given back long ago";
}

// Holds 16 of 17 tokens: all four blocks of the full group, and of the window what position 16
// sees, 2 and 3. Nothing else is left in the cache.
class AfterAReset : public testing::Test {
 protected:
  AfterAReset() : holder_(kv_.Open("", "", 17)) {
    EXPECT_EQ(kv_.TryBegin(&holder_, Iota(17), true, 0), 0);
    Compute(&kv_, &holder_, Iota(16), 0, 8, [](int32_t) {});
    kv_.ResetPrefixCache();
    EXPECT_EQ(kv_.index().size(), 4);
    EXPECT_EQ(kv_.index().num_blocks(), 4 + 2);
  }
  KvCacheManager kv_{Config(40, {0, 6}, 8)};
  KvSequence holder_;
};

// The longest length at which every group has what it needs, whatever is missing before.
TEST_F(AfterAReset, AHoleHidesOnlyWhatSeesIt) {
  EXPECT_EQ(RunThrough(&kv_, Iota(17)), 16);
  EXPECT_EQ(RunThrough(&kv_, Iota(13)), 0) << "12 tokens need window block 1";
}

// What was lost in one group is computed again and entered beside what the others still have.
TEST_F(AfterAReset, AnEntryIsFilledInAgain) {
  EXPECT_EQ(RunThrough(&kv_, Iota(13)), 0);
  EXPECT_EQ(kv_.index().size(), 4);
  EXPECT_EQ(kv_.index().num_blocks(), 4 + 4);
  EXPECT_EQ(RunThrough(&kv_, Iota(13)), 12);
  EXPECT_EQ(RunThrough(&kv_, Iota(9)), 8);
  EXPECT_EQ(RunThrough(&kv_, Iota(17)), 16);
  EXPECT_TRUE(kv_.Consistent());
}

TEST(KvWindowGroups, EvictionTakesOneGroupsBlockOnly) {
  PrefixIndex index(8, 2, 2);
  const BlockHash hash{1}, space{};
  const Tokens tokens{5, 6};
  const PrefixKey key{.space = space, .parent = kPrefixRoot, .hash = hash, .tokens = tokens};
  const BlockId both[] = {BlockId(3), BlockId(4)};
  const auto entry = index.Insert(both, key);
  index.Remove(BlockId(4));
  ASSERT_TRUE(index.Find(key).has_value());
  EXPECT_EQ(index.block(*index.Find(key), 0), BlockId(3));
  EXPECT_FALSE(index.block(*index.Find(key), 1).valid());
  const BlockId later[] = {BlockId(5), BlockId(6)};
  EXPECT_EQ(index.Insert(later, key).serial, entry.serial);
  EXPECT_FALSE(index.Contains(BlockId(5))) << "there was one";
  EXPECT_EQ(index.block(*index.Find(key), 1), BlockId(6));
  index.Remove(BlockId(3));
  index.Remove(BlockId(6));
  EXPECT_FALSE(index.Find(key).has_value());
  EXPECT_EQ(index.size() + index.num_blocks(), 0);
  const BlockId again[] = {BlockId(3), BlockId(4)};
  EXPECT_NE(index.Insert(again, key).serial, entry.serial) << "a serial never comes back";
}

TEST(KvWindowGroups, GrowthCountsTheGroupsThatGrow) {
  KvCacheManager kv(Config(60, {0, 6, 20}, 8));
  EXPECT_EQ(kv.NextGrowth(4, 4), 0);
  EXPECT_EQ(kv.NextGrowth(4, 100), 3);
  EXPECT_EQ(kv.NextGrowth(14, 100), 2) << "the narrow window is full";
  EXPECT_EQ(kv.NextGrowth(80, 100), 1);
}

}  // namespace
}  // namespace vivace
