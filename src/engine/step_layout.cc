#include "engine/step_layout.h"

#include <algorithm>

#include "base/check.h"

namespace vivace {

StepLayout::StepLayout(int32_t max_rows, int32_t max_sequences, int32_t block_size,
                       int32_t num_groups)
    : block_size_(block_size) {
  positions_.reserve(static_cast<size_t>(max_rows));
  kept_.reserve(static_cast<size_t>(max_rows));
  groups_.reserve(static_cast<size_t>(num_groups));
  for (int32_t i = 0; i < num_groups; ++i) {
    Group& group = groups_.emplace_back(Group{.sequences = {},
                                              .logit_sequences = {},
                                              .prefixes = PrefixGroups(max_sequences),
                                              .logit_prefixes = PrefixGroups(max_sequences),
                                              .all = {},
                                              .logit_rows = {}});
    group.sequences.reserve(static_cast<size_t>(max_sequences));
    group.logit_sequences.reserve(static_cast<size_t>(max_sequences));
  }
}

void StepLayout::Fill(const StepPlan& plan) {
  positions_.clear();
  kept_.clear();
  end_block_ = 0;
  for (Group& group : groups_) {
    group.sequences.clear();
    group.logit_sequences.clear();
  }
  for (const PlanItem& item : plan.items) {
    const auto num_blocks = static_cast<size_t>(item.num_blocks);
    auto blocks = std::span(plan.block_ids).subspan(static_cast<size_t>(item.first_block));
    for (Group& group : groups_) {
      AddTable(item, blocks.first(num_blocks), &group);
      blocks = blocks.subspan(num_blocks);
    }
    AddItem(item);
  }
  VIVACE_DCHECK(positions_.size() == plan.tokens.size());
  const auto num_rows = static_cast<int32_t>(positions_.size());
  const auto num_kept = static_cast<int32_t>(kept_.size());
  for (Group& group : groups_) {
    group.all = {num_rows, group.sequences, group.prefixes.Find(group.sequences, block_size_)};
    group.logit_rows =
        num_kept == num_rows
            ? group.all
            : kernels::StepRows{num_kept, group.logit_sequences,
                                group.logit_prefixes.Find(group.logit_sequences, block_size_)};
  }
}

void StepLayout::AddItem(const PlanItem& item) {
  for (int32_t i = 0; i < item.num_tokens; ++i) positions_.push_back(item.first_position + i);
  for (int32_t row = item.first_logit_row(); row < item.end_logit_row(); ++row) {
    kept_.push_back(row);
  }
}

// Before AddItem: kept rows so far are those of earlier items.
void StepLayout::AddTable(const PlanItem& item, std::span<const BlockId> blocks, Group* group) {
  for (const BlockId block : blocks.subspan(static_cast<size_t>(item.first_position / block_size_)))
    end_block_ = std::max<int64_t>(end_block_, block.value + 1);
  group->sequences.push_back({.first_row = item.first_token,
                              .num_rows = item.num_tokens,
                              .first_position = item.first_position,
                              .blocks = blocks.data(),
                              .slot = item.slot.value});
  const int32_t first = item.first_logit_row(), end = item.end_logit_row();
  if (first == end) return;
  group->logit_sequences.push_back(
      {.first_row = static_cast<int32_t>(kept_.size()),
       .num_rows = end - first,
       .first_position = item.first_position + first - item.first_token,
       .blocks = blocks.data(),
       .slot = item.slot.value});
}

}  // namespace vivace
