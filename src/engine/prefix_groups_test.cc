#include "engine/prefix_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace vivace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int32_t kBlock = 16;
constexpr int32_t kLeast = PrefixGroups::kMinSharedPositions / kBlock;

// Sequences by their block ids, every block full but the last.
class Step {
 public:
  void Add(std::vector<int32_t> ids) {
    tables_.emplace_back();
    for (const int32_t id : ids) tables_.back().emplace_back(id);
  }
  // `shared` ids from `first_id` on, then `own` of the sequence's own.
  void Add(int32_t first_id, int32_t shared, int32_t own) {
    std::vector<int32_t> ids(static_cast<size_t>(shared));
    std::iota(ids.begin(), ids.end(), first_id);
    for (int32_t i = 0; i < own; ++i) ids.push_back(next_own_++);
    Add(ids);
  }
  std::span<const kernels::SequenceRows> rows() {
    rows_.clear();
    for (const auto& table : tables_) {
      const auto blocks = static_cast<int32_t>(table.size());
      rows_.push_back({static_cast<int32_t>(rows_.size()), 1, blocks * kBlock - 1, table.data()});
    }
    return rows_;
  }
  const std::vector<std::vector<BlockId>>& tables() const { return tables_; }

 private:
  int32_t next_own_ = 1'000'000;
  std::vector<std::vector<BlockId>> tables_;
  std::vector<kernels::SequenceRows> rows_;
};

TEST(PrefixGroups, NothingToShare) {
  PrefixGroups groups(8);
  Step step;
  EXPECT_THAT(groups.Find(step.rows(), kBlock), IsEmpty());
  step.Add(0, 20, 2);
  EXPECT_THAT(groups.Find(step.rows(), kBlock), IsEmpty());
  step.Add(100, 20, 2);
  EXPECT_THAT(groups.Find(step.rows(), kBlock), IsEmpty());
}

TEST(PrefixGroups, SequencesNeedNotBeNeighbours) {
  PrefixGroups groups(8);
  Step step;
  step.Add(500, 20, 1);
  step.Add(0, 20, 2);
  step.Add(100, 30, 5);
  step.Add(500, 20, 3);
  step.Add(0, 20, 7);
  const auto found = groups.Find(step.rows(), kBlock);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].sequences, ElementsAre(1, 4));
  EXPECT_EQ(found[0].shared_positions, 20 * kBlock);
  EXPECT_THAT(found[1].sequences, ElementsAre(0, 3));
}

TEST(PrefixGroups, FromTheLeastPositionsOn) {
  PrefixGroups groups(8);
  for (const int32_t shared : {kLeast - 1, kLeast}) {
    Step step;
    step.Add(0, shared, 9);
    step.Add(0, shared, 9);
    EXPECT_EQ(groups.Find(step.rows(), kBlock).size(), shared < kLeast ? 0u : 1u);
  }
}

// The last block of a sequence is being written: it is never counted, even if ids are equal.
TEST(PrefixGroups, OnlyFullBlocksCount) {
  PrefixGroups groups(8);
  Step step;
  step.Add(0, 20, 0);
  step.Add(0, 20, 0);
  const auto found = groups.Find(step.rows(), kBlock);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].shared_positions, 19 * kBlock);
}

// A greeting that all share does not break up what some share beyond it.
TEST(PrefixGroups, JoinsOnlyWhatSavesReads) {
  PrefixGroups groups(16);
  Step step;
  for (int32_t i = 0; i < 6; ++i) {
    std::vector<int32_t> ids(100);
    std::iota(ids.begin(), ids.end(), i < 3 ? 1000 : 2000);
    std::iota(ids.begin(), ids.begin() + kLeast, 0);
    ids.push_back(3000 + i);
    step.Add(ids);
  }
  const auto found = groups.Find(step.rows(), kBlock);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].sequences, ElementsAre(0, 1, 2));
  EXPECT_THAT(found[1].sequences, ElementsAre(3, 4, 5));
  EXPECT_EQ(found[1].shared_positions, 100 * kBlock);
}

TEST(PrefixGroups, OneThatLeavesEarlyDoesNotShortenTheRest) {
  PrefixGroups groups(16);
  Step step;
  for (int32_t i = 0; i < 4; ++i) step.Add(0, 100, 2);
  step.Add(0, kLeast, 50);
  const auto found = groups.Find(step.rows(), kBlock);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].sequences, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(found[0].shared_positions, 100 * kBlock);
}

// In a window group: what both have left saves nothing, and is not what makes them alike.
TEST(PrefixGroups, PlacesWithoutABlockDoNotCount) {
  const auto table = [](int32_t left, int32_t shared, int32_t own) {
    std::vector<int32_t> ids(100, -1);
    std::iota(ids.begin() + left, ids.end(), own);
    std::iota(ids.begin() + left, ids.begin() + left + shared, 500);
    return ids;
  };
  PrefixGroups groups(8);
  Step apart;
  apart.Add(table(80, 0, 1000));
  apart.Add(table(80, 0, 2000));
  apart.Add(table(80, kLeast - 1, 3000));
  apart.Add(table(80, kLeast - 1, 4000));
  EXPECT_THAT(groups.Find(apart.rows(), kBlock), IsEmpty());

  Step step;
  step.Add(table(80, kLeast, 1000));
  step.Add(table(81, kLeast, 2000));  // the window has left one more
  step.Add(table(80, kLeast, 3000));
  const auto found = groups.Find(step.rows(), kBlock);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].sequences, ElementsAre(0, 2));
  EXPECT_EQ(found[0].shared_positions, (80 + kLeast) * kBlock);
}

// Whatever the tables: groups are disjoint, of two or more, and their blocks really are equal.
TEST(PrefixGroups, WhatIsFoundIsTrue) {
  std::mt19937 engine(1);
  const auto draw = [&](int32_t n) {
    return static_cast<int32_t>(engine() % static_cast<uint32_t>(n));
  };
  PrefixGroups groups(64);
  size_t found_any = 0;
  for (int round = 0; round < 300; ++round) {
    Step step;
    const int32_t count = draw(64) + 1;
    for (int32_t i = 0; i < count; ++i) {
      // A tree of prefixes: at each depth one of two continuations.
      std::vector<int32_t> ids;
      int32_t node = 0;
      for (int32_t depth = draw(5) + 1; depth > 0; --depth) {
        node = node * 2 + draw(2) + 1;
        for (int32_t b = 0; b < 5; ++b) ids.push_back(node * 10 + b);
      }
      step.Add(ids);
    }
    const auto rows = step.rows();
    std::vector<bool> seen(rows.size());
    for (const kernels::PrefixGroup& group : groups.Find(rows, kBlock)) {
      ++found_any;
      ASSERT_GE(group.sequences.size(), 2u);
      ASSERT_TRUE(std::is_sorted(group.sequences.begin(), group.sequences.end()));
      const int32_t blocks = group.shared_positions / kBlock;
      ASSERT_GE(blocks, kLeast);
      for (const int32_t i : group.sequences) {
        ASSERT_FALSE(seen[static_cast<size_t>(i)]);
        seen[static_cast<size_t>(i)] = true;
        ASSERT_LE(group.shared_positions, rows[static_cast<size_t>(i)].first_position);
        const auto& table = step.tables()[static_cast<size_t>(i)];
        const auto& first = step.tables()[static_cast<size_t>(group.sequences[0])];
        ASSERT_TRUE(std::equal(first.begin(), first.begin() + blocks, table.begin()));
      }
    }
  }
  EXPECT_GT(found_any, 100u);
}

}  // namespace
}  // namespace vivace
