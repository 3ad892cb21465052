// Hidden states to one vector for each sequence, for embeddings: after the final norm, of the last
// token, or the mean over all of them. Sums run over positions in their order, in double, so a
// vector does not depend on how the prompt was cut or what stood beside it.
//
// Sums stand by slot; one starts with the item at position 0. All memory is taken at construction;
// a step allocates nothing. Thread: the engine thread; items are pooled in parallel on the pool.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "engine/executor.h"
#include "engine/forward.h"
#include "sched/step_plan.h"

namespace vivace {

class Pooler {
 public:
  static size_t Bytes(const ExecutorLimits& limits);

  Pooler(const ExecutorLimits& limits, ThreadPool* pool);

  // Takes the hidden rows of the plan's pooled items, which `forward` has just computed.
  void Take(const StepPlan& plan, Forward* forward);
  // Adds the vectors that are complete to `result`; valid until the next Take.
  void Finish(StepResult* result) const;

 private:
  struct Item {
    int32_t index = 0;  // into the plan's items
    int32_t row = 0;    // its first one, of those `forward` has
  };

  void TakeItem(const PlanItem& item, int32_t row, Forward* forward);

  const size_t hidden_;
  ThreadPool* const pool_;
  std::vector<double> sums_;    // [slots, hidden]
  std::vector<float> vectors_;  // [slots, hidden]
  std::vector<Item> items_;     // of the step
  std::vector<PooledRow> done_;
};

}  // namespace vivace
