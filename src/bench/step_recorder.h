// An Executor that writes down what each step of another computed and how long it took: where
// offline figures find batch sizes and limits, and `vivace tune` the costs of steps.
//
// Thread: the engine thread writes. Read the steps when the engine is idle, or has published what
// the last of them made. Cost: under a microsecond a step, and where a limit is wanted some 10 ns
// for each layer and sequence. Allocates only beyond the steps that were reserved.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bench/roofline.h"
#include "engine/executor.h"
#include "sched/step_cost_model.h"

namespace vivace::bench {

struct RecordedStep {
  StepShape shape = {};
  // All of the step: from the end of the one before, if the engine came straight from there.
  int64_t ns = 0;
  int64_t ended_ns = 0;  // steady clock
  StepTimes times = {};
  StepCost cost = {};  // zeros where no model cost was given
};

// What a plan computes, as far as time goes.
StepShape ShapeOf(const StepPlan& plan);

class StepRecorder final : public Executor {
 public:
  // `cost`: of the model, to have each step's bytes and multiply-adds.
  StepRecorder(std::unique_ptr<Executor> executor, std::optional<ModelCost> cost);

  const ExecutorLimits& limits() const override { return executor_->limits(); }
  void BindSlot(SeqSlot slot, const SlotBinding& binding) override {
    executor_->BindSlot(slot, binding);
  }
  void ReleaseSlot(SeqSlot slot) override { executor_->ReleaseSlot(slot); }
  void Launch(const StepPlan& plan) override;
  void Await(StepResult* result) override;
  StepTimes last_times() const override { return executor_->last_times(); }

  const std::vector<RecordedStep>& steps() const { return steps_; }
  void Clear() { steps_.clear(); }

 private:
  const std::unique_ptr<Executor> executor_;
  const std::optional<ModelCost> cost_;
  std::vector<RecordedStep> steps_;
  std::vector<StepPart> parts_;
  RecordedStep step_;  // in flight
  int64_t launched_ns_ = 0;
};

}  // namespace vivace::bench
