// How a plan's rows stand before the block ops: all of them, and those whose logits are needed; in
// each group of the cache (kv/kv_groups.h), which have block tables of their own.
//
// Every row goes into the cache in every layer. What the last layer makes of a row after that only
// its logits read, so there the rows without logits are dropped: a prompt keeps its last row, a
// chunk that does not end its prompt none. A row's values do not depend on the rows beside it
// (design rule 1), so the ones kept are the same as if all were computed.
//
// Nothing is allocated after construction. Thread: the engine thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/prefix_groups.h"
#include "kernels/block_ops.h"
#include "sched/step_plan.h"

namespace vivace {

class StepLayout {
 public:
  StepLayout(int32_t max_rows, int32_t max_sequences, int32_t block_size, int32_t num_groups = 1);

  // `plan` stays unchanged as long as what follows is used.
  void Fill(const StepPlan& plan);

  // Rows as the plan has them.
  const kernels::StepRows& all(size_t group = 0) const { return groups_[group].all; }
  std::span<const int32_t> positions() const { return positions_; }
  // No block from here on is written to.
  int64_t end_block() const { return end_block_; }

  // Rows whose logits are needed, without gaps and in the plan's order; row i is all()'s kept()[i],
  // which is i or greater. For attention after the cache was written.
  const kernels::StepRows& logit_rows(size_t group = 0) const { return groups_[group].logit_rows; }
  std::span<const int32_t> kept() const { return kept_; }

 private:
  struct Group {
    std::vector<kernels::SequenceRows> sequences, logit_sequences;
    PrefixGroups prefixes, logit_prefixes;
    kernels::StepRows all, logit_rows;
  };

  void AddItem(const PlanItem& item);
  void AddTable(const PlanItem& item, std::span<const BlockId> blocks, Group* group);

  const int32_t block_size_;
  std::vector<int32_t> positions_, kept_;
  std::vector<Group> groups_;
  int64_t end_block_ = 0;
};

}  // namespace vivace
