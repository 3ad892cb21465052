#include "kv/kv_cache_manager.h"

#include <gtest/gtest.h>

#include <numeric>

namespace vivace {
namespace {

using Tokens = std::vector<TokenId>;

Tokens Iota(int32_t n, TokenId first = 100) {
  Tokens tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// All blocks of one depth collide, and most of the others too.
class FourBitHasher final : public BlockHasher {
 public:
  BlockHash Hash(const BlockHash&, std::span<const TokenId> tokens) override {
    BlockHash hash{};
    hash[0] = static_cast<uint8_t>(tokens[0] & 15);
    return hash;
  }
};

KvCacheConfig Config(int32_t num_blocks, bool caching = true) {
  return {.num_blocks = num_blocks, .block_size = 4, .enable_prefix_caching = caching};
}

// Runs a prompt through the cache and leaves it there; returns what it found.
int32_t RunThrough(KvCacheManager* kv, const Tokens& tokens, std::string_view salt = "",
                   std::string_view adapter = "") {
  KvSequence sequence = kv->Open(salt, adapter, static_cast<int64_t>(tokens.size()));
  const int32_t found = kv->TryBegin(&sequence, tokens, true, 0).value();
  kv->Computed(&sequence, tokens, static_cast<int64_t>(tokens.size()));
  return found;
}

TEST(KvCacheManager, FindsFullBlocksAndLeavesTheLastToken) {
  KvCacheManager kv(Config(16));
  EXPECT_EQ(RunThrough(&kv, Iota(10)), 0);
  EXPECT_EQ(kv.pool().num_used(), 0);
  EXPECT_EQ(kv.pool().num_retained_free(), 2);  // the third block is not full
  EXPECT_EQ(RunThrough(&kv, Iota(10)), 8);
  EXPECT_EQ(RunThrough(&kv, Iota(8)), 4);  // the whole prompt is there: its last block is not used
  EXPECT_EQ(RunThrough(&kv, Iota(9)), 8);
  EXPECT_EQ(RunThrough(&kv, Iota(4)), 0);
  EXPECT_EQ(RunThrough(&kv, Iota(10, 101)), 0);
  EXPECT_TRUE(kv.Consistent());
}

TEST(KvCacheManager, SharesBlocksWithARunningSequence) {
  KvCacheManager kv(Config(8));
  const Tokens tokens = Iota(9);
  KvSequence first = kv.Open("", "", 9);
  ASSERT_EQ(kv.TryBegin(&first, tokens, true, 0), 0);
  KvSequence early = kv.Open("", "", 9);
  ASSERT_EQ(kv.TryBegin(&early, tokens, true, 0), 0) << "nothing is computed yet";
  kv.End(&early);
  kv.Computed(&first, tokens, 7);  // the second block is not full yet
  KvSequence second = kv.Open("", "", 9);
  ASSERT_EQ(kv.TryBegin(&second, tokens, true, 0), 4);
  EXPECT_EQ(second.blocks()[0], first.blocks()[0]);
  EXPECT_NE(second.blocks()[1], first.blocks()[1]);
  EXPECT_EQ(first.CountSoleBlocks(), 2);
  kv.End(&first);
  EXPECT_EQ(kv.pool().ref_count(second.blocks()[0]), 1);
}

TEST(KvCacheManager, SaltsAndAdaptersDoNotShare) {
  KvCacheManager kv(Config(32));
  const Tokens tokens = Iota(9);
  EXPECT_EQ(RunThrough(&kv, tokens), 0);
  EXPECT_EQ(RunThrough(&kv, tokens, "x"), 0);
  EXPECT_EQ(RunThrough(&kv, tokens, "", "x"), 0) << "adapter x is not salt x";
  EXPECT_EQ(RunThrough(&kv, tokens, "x", "x"), 0);
  EXPECT_EQ(RunThrough(&kv, tokens, "x"), 8);
  EXPECT_EQ(RunThrough(&kv, tokens, "", "x"), 8);
  EXPECT_EQ(RunThrough(&kv, tokens), 8);
}

TEST(BlockHash, FieldsCannotRunIntoEachOther) {
  EXPECT_NE(NamespaceHash("ab", "c"), NamespaceHash("a", "bc"));
  EXPECT_NE(NamespaceHash("x", ""), NamespaceHash("", "x"));
  EXPECT_NE(NamespaceHash("", ""), NamespaceHash(std::string_view("\0", 1), ""));
  Sha256Hasher hasher;
  const BlockHash root = NamespaceHash("", "");
  const Tokens one{1, 2, 3, 4};
  EXPECT_EQ(hasher.Hash(root, one), hasher.Hash(root, one));
  EXPECT_NE(hasher.Hash(root, one), hasher.Hash(hasher.Hash(root, one), one));
  EXPECT_NE(hasher.Hash(root, Tokens{1, 2}), hasher.Hash(root, Tokens{1, 2, 0}));
}

// Known answers: hashlib.sha256 of b"N" + le64(0) + b"S" + le64(4) + b"salt" + b"A" + le64(0), then
// of that digest + b"B" + le64(12) + the tokens as little-endian int32.
TEST(BlockHash, IsASha256Chain) {
  const auto first_bytes = [](const BlockHash& hash) {
    return std::array{hash[0], hash[1], hash[2], hash[3]};
  };
  const BlockHash root = NamespaceHash("salt", "");
  EXPECT_EQ(first_bytes(root), (std::array<uint8_t, 4>{0x8a, 0x54, 0xeb, 0x60}));
  Sha256Hasher hasher;
  const BlockHash block = hasher.Hash(root, Tokens{1, 2, 3});
  EXPECT_EQ(first_bytes(block), (std::array<uint8_t, 4>{0x2a, 0x6a, 0x6a, 0xf6}));
}

TEST(KvCacheManager, CollidingHashesNeverMixPrompts) {
  KvCacheManager kv(Config(64), std::make_unique<FourBitHasher>());
  const Tokens a{0, 1, 2, 3, 16, 5, 6, 7, 9};
  Tokens b = a;
  b[1] = 50;  // same hashes throughout
  EXPECT_EQ(RunThrough(&kv, a), 0);
  EXPECT_EQ(RunThrough(&kv, b), 0) << "the first block differs";
  EXPECT_EQ(RunThrough(&kv, a, "salt"), 0) << "the namespace differs";
  // The second block's tokens and hash are equal in both: only the parent tells them apart.
  EXPECT_EQ(RunThrough(&kv, a), 8);
  EXPECT_EQ(RunThrough(&kv, b), 8);
  KvSequence sa = kv.Open("", "", 9);
  KvSequence sb = kv.Open("", "", 9);
  ASSERT_EQ(kv.TryBegin(&sa, a, true, 0), 8);
  ASSERT_EQ(kv.TryBegin(&sb, b, true, 0), 8);
  EXPECT_NE(sa.blocks()[1], sb.blocks()[1]);
}

TEST(KvCacheManager, GeneratedTokensAreFoundToo) {
  KvCacheManager kv(Config(16));
  Tokens tokens = Iota(3);
  KvSequence sequence = kv.Open("", "", 12);
  ASSERT_EQ(kv.TryBegin(&sequence, tokens, true, 0), 0);
  kv.Computed(&sequence, tokens, 3);
  for (TokenId next = 7; next < 13; ++next) {
    tokens.push_back(next);
    ASSERT_TRUE(kv.TryGrow(&sequence, static_cast<int64_t>(tokens.size())));
    kv.Computed(&sequence, tokens, static_cast<int64_t>(tokens.size()));
  }
  kv.End(&sequence);
  EXPECT_EQ(RunThrough(&kv, tokens), 8);
}

TEST(KvCacheManager, EvictsTheLeastRecentlyUsedFirst) {
  KvCacheManager kv(Config(6));
  const Tokens a = Iota(9, 0);
  const Tokens b = Iota(9, 50);
  RunThrough(&kv, a);
  RunThrough(&kv, b);
  RunThrough(&kv, a);              // now b's blocks are the oldest
  RunThrough(&kv, Iota(12, 200));  // takes what is free: no room for all three
  EXPECT_EQ(RunThrough(&kv, a), 8);
  EXPECT_EQ(RunThrough(&kv, b), 0);
  EXPECT_TRUE(kv.Consistent());
}

TEST(KvCacheManager, FailsWithoutAChange) {
  KvCacheManager kv(Config(4));
  const Tokens tokens = Iota(9);
  RunThrough(&kv, tokens);
  KvSequence sequence = kv.Open("", "", 20);
  EXPECT_FALSE(kv.TryBegin(&sequence, tokens, true, 2).has_value()) << "only one would be left";
  EXPECT_EQ(kv.pool().num_used(), 0);
  ASSERT_EQ(kv.TryBegin(&sequence, tokens, true, 1), 8);
  EXPECT_TRUE(kv.TryGrow(&sequence, 16));
  EXPECT_FALSE(kv.TryGrow(&sequence, 17));
  EXPECT_EQ(sequence.blocks().size(), 4u);
  // Matched blocks that are free do not count twice: as cache and as space.
  kv.End(&sequence);
  KvSequence longer = kv.Open("", "", 17);
  EXPECT_FALSE(kv.TryBegin(&longer, Iota(17), true, 0).has_value());
  EXPECT_TRUE(kv.Consistent());
}

TEST(KvCacheManager, ResetForgetsWhatNobodyHolds) {
  KvCacheManager kv(Config(16));
  const Tokens held = Iota(9, 0);
  KvSequence sequence = kv.Open("", "", 9);
  ASSERT_EQ(kv.TryBegin(&sequence, held, true, 0), 0);
  kv.Computed(&sequence, held, 9);
  RunThrough(&kv, Iota(9, 50));
  kv.ResetPrefixCache();
  EXPECT_EQ(kv.pool().num_retained_free(), 0);
  EXPECT_EQ(RunThrough(&kv, Iota(9, 50)), 0);
  EXPECT_EQ(RunThrough(&kv, held), 8);
  EXPECT_TRUE(kv.Consistent());
}

TEST(KvCacheManager, FindsNothingWhenCachingIsOffOrNotWanted) {
  KvCacheManager off(Config(16, false));
  RunThrough(&off, Iota(9));
  EXPECT_EQ(RunThrough(&off, Iota(9)), 0);
  EXPECT_EQ(off.pool().num_retained_free(), 0);

  KvCacheManager on(Config(16));
  RunThrough(&on, Iota(9));
  KvSequence sequence = on.Open("", "", 9);
  EXPECT_EQ(on.TryBegin(&sequence, Iota(9), false, 0), 0);
}

// Two sequences compute the same prompt at once: the second one's blocks are not indexed, and its
// later blocks still continue the first one's chain.
TEST(KvCacheManager, TwinsKeepOneChain) {
  KvCacheManager kv(Config(16));
  const Tokens tokens = Iota(13);
  KvSequence first = kv.Open("", "", 13);
  KvSequence second = kv.Open("", "", 13);
  ASSERT_EQ(kv.TryBegin(&first, tokens, true, 0), 0);
  ASSERT_EQ(kv.TryBegin(&second, tokens, true, 0), 0);
  kv.Computed(&first, tokens, 8);
  kv.Computed(&second, tokens, 12);
  EXPECT_EQ(kv.index().size(), 3);
  EXPECT_FALSE(kv.index().Contains(second.blocks()[0]));
  EXPECT_TRUE(kv.index().Contains(second.blocks()[2]));
  EXPECT_EQ(RunThrough(&kv, tokens), 12);
}

}  // namespace
}  // namespace vivace
