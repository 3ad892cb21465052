#include "engine/pooler.h"

#include <algorithm>
#include <atomic>

namespace vivace {

size_t Pooler::Bytes(const ExecutorLimits& limits) {
  return static_cast<size_t>(limits.max_sequences) * static_cast<size_t>(limits.hidden) *
         (sizeof(double) + sizeof(float));
}

Pooler::Pooler(const ExecutorLimits& limits, ThreadPool* pool)
    : hidden_(static_cast<size_t>(limits.hidden)),
      pool_(pool),
      sums_(static_cast<size_t>(limits.max_sequences) * hidden_),
      vectors_(sums_.size()) {
  items_.reserve(static_cast<size_t>(limits.max_sequences));
  done_.reserve(static_cast<size_t>(limits.max_sequences));
}

void Pooler::Take(const StepPlan& plan, Forward* forward) {
  items_.clear();
  done_.clear();
  int32_t row = 0;
  for (size_t i = 0; i < plan.items.size(); ++i) {
    const PlanItem& item = plan.items[i];
    if (item.pools()) items_.push_back({static_cast<int32_t>(i), row});
    row += item.end_logit_row() - item.first_logit_row();
    if (!item.pool_ends) continue;
    const auto slot = static_cast<size_t>(item.slot.value);
    done_.push_back({.item = static_cast<int32_t>(i),
                     .values = std::span(vectors_).subspan(slot * hidden_, hidden_)});
  }
  if (items_.empty()) return;
  std::atomic<size_t> next{0};
  pool_->Run([&](int) {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < items_.size();) {
      TakeItem(plan.items[static_cast<size_t>(items_[i].index)], items_[i].row, forward);
    }
  });
}

void Pooler::TakeItem(const PlanItem& item, int32_t row, Forward* forward) {
  const auto at = static_cast<size_t>(item.slot.value) * hidden_;
  const auto vector = std::span(vectors_).subspan(at, hidden_);
  if (item.logit_rows == LogitRows::kPoolLast) {
    std::ranges::copy(forward->NormedHidden(row), vector.begin());
    return;
  }
  const auto sum = std::span(sums_).subspan(at, hidden_);
  if (item.first_position == 0) std::ranges::fill(sum, 0.0);
  for (int32_t i = 0; i < item.num_tokens; ++i) {
    const std::span<const float> x = forward->NormedHidden(row + i);
    for (size_t k = 0; k < hidden_; ++k) sum[k] += x[k];
  }
  if (!item.pool_ends) return;
  const double positions = item.first_position + item.num_tokens;
  for (size_t k = 0; k < hidden_; ++k) vector[k] = static_cast<float>(sum[k] / positions);
}

void Pooler::Finish(StepResult* result) const { result->pooled.assign(done_.begin(), done_.end()); }

}  // namespace vivace
