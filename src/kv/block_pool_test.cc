#include "kv/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

namespace vivace {
namespace {

std::vector<int32_t> Ids(const BlockTable& table) {
  std::vector<int32_t> ids;
  for (const BlockId block : table.blocks()) ids.push_back(block.value);
  return ids;
}

TEST(BlockPool, HandsOutEveryBlockOnce) {
  BlockPool pool(4);
  BlockTable table(&pool);
  for (int32_t i = 0; i < 4; ++i) EXPECT_EQ(table.AppendFree().value, i);
  EXPECT_EQ(pool.num_free(), 0);
  EXPECT_EQ(pool.num_used(), 4);
  table.Clear();
  EXPECT_EQ(pool.num_free(), 4);
  EXPECT_TRUE(pool.Consistent());
}

TEST(BlockPool, ASharedBlockIsFreeOnlyAfterItsLastHolder) {
  BlockPool pool(2);
  BlockTable first(&pool);
  const BlockId block = first.AppendFree();
  {
    BlockTable second(&pool);
    second.AppendShared(block);
    EXPECT_EQ(pool.ref_count(block), 2);
    EXPECT_EQ(first.CountSole(), 0);
    first.Clear();
    EXPECT_EQ(pool.num_free(), 1);
    EXPECT_EQ(second.CountSole(), 1);
  }
  EXPECT_EQ(pool.num_free(), 2);
}

TEST(BlockPool, RetainedBlocksGoLastAndTheLeastRecentFirst) {
  BlockPool pool(5);
  BlockTable old_one(&pool);
  BlockTable new_one(&pool);
  for (int i = 0; i < 2; ++i) pool.SetRetained(old_one.AppendFree(), true);  // 0 1
  for (int i = 0; i < 2; ++i) pool.SetRetained(new_one.AppendFree(), true);  // 2 3
  old_one.Clear();
  new_one.Clear();
  EXPECT_EQ(pool.num_retained_free(), 4);
  BlockTable table(&pool);
  while (pool.num_free() > 0) table.AppendFree();
  // The one never used, then each chain from its tail.
  EXPECT_EQ(Ids(table), (std::vector<int32_t>{4, 1, 0, 3, 2}));
}

TEST(BlockPool, TakingARetainedBlockBackMakesItTheMostRecent) {
  BlockPool pool(2);
  BlockTable table(&pool);
  pool.SetRetained(table.AppendFree(), true);
  pool.SetRetained(table.AppendFree(), true);
  table.Clear();  // order: 1, 0
  table.AppendShared(BlockId(1));
  EXPECT_EQ(pool.num_retained_free(), 1);
  table.Clear();  // order: 0, 1
  EXPECT_EQ(table.AppendFree().value, 0);
}

TEST(BlockTable, AMovedTableHoldsTheBlocksAndTheOldOneNothing) {
  BlockPool pool(3);
  BlockTable table(&pool);
  table.AppendFree();
  BlockTable moved(std::move(table));
  EXPECT_EQ(moved.size(), 1);
  BlockTable other(&pool);
  other.AppendFree();
  other = std::move(moved);
  EXPECT_EQ(pool.num_used(), 1);
  EXPECT_EQ(other.size(), 1);
}

TEST(BlockTable, AClaimKeepsBlocksFreeForIt) {
  BlockPool pool(6);
  BlockTable table(&pool, BlockTable::Kind::kClaiming);
  table.SetClaim(4);
  EXPECT_EQ(pool.num_free(), 6);
  EXPECT_EQ(pool.num_available(), 2);
  for (int i = 0; i < 4; ++i) table.AppendFree();
  EXPECT_EQ(pool.num_available(), 2);
  table.DropBefore(2);
  EXPECT_EQ(pool.num_free(), 4);
  EXPECT_EQ(pool.num_available(), 2) << "it may take two again";
  EXPECT_EQ(Ids(table), (std::vector<int32_t>{-1, -1, 2, 3}));
  EXPECT_EQ(table.num_held(), 2);
  table.SetClaim(2);
  EXPECT_EQ(pool.num_available(), 4);
  EXPECT_EQ(table.CountSole(), 2);
  BlockTable moved(std::move(table));
  EXPECT_EQ(pool.num_claimed(), 2);
  moved.Clear();
  EXPECT_EQ(pool.num_available(), 6);
  EXPECT_EQ(pool.num_claimed() + pool.num_claimed_used(), 0);
  EXPECT_TRUE(pool.Consistent());
}

TEST(BlockTable, ASharedBlockIsClaimedTwice) {
  BlockPool pool(6);
  BlockTable first(&pool, BlockTable::Kind::kClaiming);
  BlockTable second(&pool, BlockTable::Kind::kClaiming);
  first.SetClaim(2);
  second.SetClaim(2);
  const BlockId block = first.AppendFree();
  second.SkipTo(3);
  second.AppendShared(block);
  EXPECT_EQ(pool.num_used(), 1);
  EXPECT_EQ(pool.num_available(), 2);
  first.DropBefore(1);
  EXPECT_EQ(pool.num_used(), 1);
  EXPECT_EQ(pool.num_available(), 2);
  second.Clear();
  EXPECT_EQ(pool.num_available(), 4);
}

// The pool as anyone would write it without minding the cost.
struct ReferencePool {
  std::deque<int32_t> free;  // in the order they are handed out
  std::map<int32_t, int32_t> refs;
  std::map<int32_t, bool> retained;

  explicit ReferencePool(int32_t n) {
    for (int32_t i = 0; i < n; ++i) free.push_back(i);
  }
  int32_t Take() {
    const int32_t block = free.front();
    free.pop_front();
    refs[block] = 1;
    return block;
  }
  void Share(int32_t block) {
    if (refs[block]++ == 0) std::erase(free, block);
  }
  void Drop(int32_t block) {
    if (--refs[block] > 0) return;
    retained[block] ? free.push_back(block) : free.push_front(block);
  }
  int32_t RetainedFree() {
    return static_cast<int32_t>(
        std::count_if(free.begin(), free.end(), [&](int32_t b) { return retained[b]; }));
  }
};

TEST(BlockPool, AgreesWithAReferenceModelOnRandomOperations) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const int32_t num_blocks = 1 + static_cast<int32_t>(random() % 20);
    BlockPool pool(num_blocks);
    ReferencePool reference(num_blocks);
    std::vector<BlockTable> tables;
    for (int i = 0; i < 4; ++i) tables.emplace_back(&pool);
    for (int op = 0; op < 2'000; ++op) {
      BlockTable& table = tables[random() % tables.size()];
      const BlockId block(static_cast<int32_t>(random() % static_cast<uint32_t>(num_blocks)));
      switch (random() % 8) {
        case 0: {
          const std::vector<int32_t> held = Ids(table);
          table.Clear();
          for (auto it = held.rbegin(); it != held.rend(); ++it) reference.Drop(*it);
          break;
        }
        case 1:
        case 2:
          table.AppendShared(block);
          reference.Share(block.value);
          break;
        case 3: {
          const bool retained = random() % 2 == 0;
          pool.SetRetained(block, retained);
          reference.retained[block.value] = retained;
          break;
        }
        default:
          if (pool.num_free() == 0) break;
          ASSERT_EQ(table.AppendFree().value, reference.Take()) << "seed " << seed << " op " << op;
      }
      ASSERT_EQ(pool.num_free(), static_cast<int32_t>(reference.free.size())) << "seed " << seed;
      ASSERT_EQ(pool.num_retained_free(), reference.RetainedFree()) << "seed " << seed;
      ASSERT_EQ(pool.ref_count(block), reference.refs[block.value]) << "seed " << seed;
    }
    ASSERT_TRUE(pool.Consistent()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace vivace
