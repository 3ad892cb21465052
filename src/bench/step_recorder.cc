#include "bench/step_recorder.h"

#include "base/clock.h"

namespace vivace::bench {
namespace {

constexpr size_t kReserved = size_t{1} << 16;  // steps
// Planning and publishing take less; a longer pause is an engine that had nothing to do.
constexpr int64_t kLongestPauseNs = 2 * kNanosPerMs;

StepPart PartOf(const PlanItem& item) {
  return {.first_position = item.first_position,
          .rows = item.num_tokens,
          .logit_rows = item.end_logit_row() - item.first_logit_row()};
}

}  // namespace

StepShape ShapeOf(const StepPlan& plan) {
  const int32_t answers = plan.decode_tokens + plan.appended_tokens;
  StepShape shape;
  for (const PlanItem& item : plan.items) {
    if (item.first_token < answers) {
      const int64_t n = item.num_tokens;
      shape.decodes += item.num_tokens;
      shape.decode_context += n * item.first_position + n * (n + 1) / 2;
    } else {
      shape.AddPrompt(item.first_position, item.num_tokens, item.logit_rows == LogitRows::kAll,
                      item.sample);
    }
  }
  return shape;
}

StepRecorder::StepRecorder(std::unique_ptr<Executor> executor, std::optional<ModelCost> cost)
    : executor_(std::move(executor)), cost_(std::move(cost)) {
  steps_.reserve(kReserved);
  parts_.reserve(static_cast<size_t>(executor_->limits().max_sequences));
}

void StepRecorder::Launch(const StepPlan& plan) {
  launched_ns_ = SteadyNanos();
  step_ = {.shape = ShapeOf(plan)};
  if (cost_) {
    parts_.clear();
    for (const PlanItem& item : plan.items) parts_.push_back(PartOf(item));
    step_.cost = CostOf(*cost_, parts_);
  }
  executor_->Launch(plan);
}

void StepRecorder::Await(StepResult* result) {
  executor_->Await(result);
  step_.ended_ns = SteadyNanos();
  step_.times = executor_->last_times();
  const int64_t before = steps_.empty() ? 0 : steps_.back().ended_ns;
  const bool straight = before > 0 && launched_ns_ - before < kLongestPauseNs;
  step_.ns = step_.ended_ns - (straight ? before : launched_ns_);
  steps_.push_back(step_);
}

}  // namespace vivace::bench
