#include "engine/step_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace vivace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int32_t kBlock = 16;

// Items in order; blocks [0, shared) are those of every other item, the rest its own.
struct Plan : StepPlan {
  void Add(int32_t position, int32_t count, LogitRows rows, bool sample, TokenId next = -1,
           int32_t shared = 0) {
    items.push_back({.slot = SeqSlot(static_cast<int32_t>(items.size())),
                     .first_token = static_cast<int32_t>(tokens.size()),
                     .num_tokens = count,
                     .first_position = position,
                     .first_block = static_cast<int32_t>(block_ids.size()),
                     .num_blocks = (position + count + kBlock - 1) / kBlock,
                     .logit_rows = rows,
                     .sample = sample,
                     .next_prompt_token = next});
    tokens.resize(tokens.size() + static_cast<size_t>(count));
    for (int32_t i = 0; i < items.back().num_blocks; ++i) {
      block_ids.emplace_back(i < shared ? i : next_block_++);
    }
  }
  int32_t next_block_ = 100;
};

class StepLayoutTest : public ::testing::Test {
 protected:
  // Of the rows with logits: first row, rows, first position.
  std::vector<std::array<int32_t, 3>> LogitSequences() const {
    std::vector<std::array<int32_t, 3>> out;
    for (const auto& s : layout.logit_rows().sequences)
      out.push_back({s.first_row, s.num_rows, s.first_position});
    return out;
  }
  using Rows = std::array<int32_t, 3>;

  Plan plan;
  StepLayout layout{512, 8, kBlock};
};

TEST_F(StepLayoutTest, EachItemKeepsTheRowsItNeedsLogitsOf) {
  plan.Add(40, 1, LogitRows::kLast, true);    // row 0: a decode
  plan.Add(16, 20, LogitRows::kNone, false);  // 1 .. 20: a chunk that ends nothing
  plan.Add(0, 3, LogitRows::kAll, false, 7);  // 21 .. 23: with more of the prompt to come
  plan.Add(32, 10, LogitRows::kLast, true);   // 24 .. 33: the end of a prompt
  plan.Add(5, 4, LogitRows::kAll, false);     // 34 .. 37: the end of one that draws nothing
  plan.Add(5, 2, LogitRows::kAll, true);      // 38, 39: of one that does
  layout.Fill(plan);
  EXPECT_EQ(layout.all().num_rows, 40);
  EXPECT_EQ(layout.all().sequences.size(), 6u);
  EXPECT_EQ(layout.positions()[33], 41);
  EXPECT_EQ(layout.logit_rows().num_rows, 10);
  EXPECT_THAT(layout.kept(), ElementsAre(0, 21, 22, 23, 33, 34, 35, 36, 38, 39));
  EXPECT_THAT(LogitSequences(), ElementsAre(Rows{0, 1, 40}, Rows{1, 3, 0}, Rows{4, 1, 41},
                                            Rows{5, 3, 5}, Rows{8, 2, 5}));
  EXPECT_EQ(layout.logit_rows().sequences[2].blocks, layout.all().sequences[3].blocks);
  EXPECT_EQ(layout.all().sequences[3].slot, 3);
  EXPECT_EQ(layout.logit_rows().sequences[2].slot, 3);
}

TEST_F(StepLayoutTest, AStepMayNeedNoLogitsOrAll) {
  plan.Add(0, 100, LogitRows::kNone, false);
  layout.Fill(plan);
  EXPECT_EQ(layout.logit_rows().num_rows, 0);
  EXPECT_THAT(layout.logit_rows().sequences, IsEmpty());
  EXPECT_THAT(layout.kept(), IsEmpty());

  Plan decodes;
  for (int i = 0; i < 3; ++i) decodes.Add(200 + i, 1, LogitRows::kLast, true, -1, 12);
  layout.Fill(decodes);
  EXPECT_EQ(layout.logit_rows().num_rows, 3);
  EXPECT_EQ(layout.logit_rows().sequences.data(), layout.all().sequences.data());
  ASSERT_EQ(layout.logit_rows().prefix_groups.size(), 1u);
}

// Sequences without logits have no place among the others, so groups name the rest anew.
TEST_F(StepLayoutTest, PrefixGroupsNameTheSequencesThatAreLeft) {
  plan.Add(200, 30, LogitRows::kNone, false, -1, 12);
  plan.Add(210, 1, LogitRows::kLast, true, -1, 12);
  plan.Add(215, 9, LogitRows::kLast, true, -1, 12);
  layout.Fill(plan);
  ASSERT_EQ(layout.all().prefix_groups.size(), 1u);
  EXPECT_THAT(layout.all().prefix_groups[0].sequences, ElementsAre(0, 1, 2));
  ASSERT_EQ(layout.logit_rows().prefix_groups.size(), 1u);
  EXPECT_THAT(layout.logit_rows().prefix_groups[0].sequences, ElementsAre(0, 1));
  EXPECT_EQ(layout.logit_rows().prefix_groups[0].shared_positions, 12 * kBlock);
}

TEST_F(StepLayoutTest, OnlyBlocksThatAreWrittenToCount) {
  plan.Add(0, 20, LogitRows::kLast, true);  // blocks 100, 101
  layout.Fill(plan);
  EXPECT_EQ(layout.end_block(), 102);
  Plan later;
  later.next_block_ = 5;
  later.Add(200, 1, LogitRows::kLast, true, -1, 12);  // block 5 after 12 shared
  layout.Fill(later);
  EXPECT_EQ(layout.end_block(), 6);
}

// Rows are the same in all groups of the cache, block tables are not.
TEST_F(StepLayoutTest, EachGroupHasItsOwnTables) {
  StepLayout grouped{512, 8, kBlock, 2};
  for (int32_t s = 0; s < 2; ++s) {
    plan.Add(160, 4, LogitRows::kLast, true, -1, /*shared=*/10);
    for (int32_t i = 0; i < 11; ++i) plan.block_ids.emplace_back(i < 9 ? -1 : 200 + 50 * s + i);
  }
  grouped.Fill(plan);
  EXPECT_EQ(grouped.end_block(), 261);
  for (const size_t group : {0u, 1u}) {
    ASSERT_EQ(grouped.all(group).sequences.size(), 2u);
    const kernels::SequenceRows& second = grouped.all(group).sequences[1];
    EXPECT_EQ(second.first_row, 4);
    EXPECT_EQ(second.blocks, plan.block_ids.data() + 22 + 11 * group);
    ASSERT_EQ(grouped.logit_rows(group).sequences.size(), 2u);
    EXPECT_EQ(grouped.logit_rows(group).sequences[1].first_row, 1);
    EXPECT_EQ(grouped.logit_rows(group).sequences[1].blocks, second.blocks);
    EXPECT_EQ(grouped.all(group).prefix_groups.size(), group == 0 ? 1u : 0u);
  }
  EXPECT_THAT(grouped.kept(), ElementsAre(3, 7));
}

}  // namespace
}  // namespace vivace
