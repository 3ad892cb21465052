// A machine's clock for the simulator: how long a plan would take on hardware of made-up speed,
// with noise and now and then a stolen quantum. Its form is not the one that sched/ fits.
#pragma once

#include <cstdint>

#include "sched/step_plan.h"
#include "sim/workload.h"

namespace vivace::sim {

// Nanoseconds and shares.
struct MachineSpeed {
  double weights = 4e6;          // reading them once
  double decode_row = 0.8e6;     // of a step without prompts
  double batch_row = 0.5e6;      // of a step with prompts
  double batch_fixed = 1e6;      // the same
  double decode_position = 120;  // attended to, one row
  double prompt_position = 30;
  double logit_row = 0.2e6;
  double noise = 0.03;  // plus or minus
  int32_t outliers_per_mille = 3;
  double outlier = 15e6;  // at most
};

MachineSpeed RandomSpeed(Random* random);

class StepTimer {
 public:
  StepTimer(const MachineSpeed& speed, uint64_t seed) : speed_(speed), random_(seed) {}

  // What the plan costs, without noise; of its decodes alone.
  double Cost(const StepPlan& plan) const;
  double DecodeCost(const StepPlan& plan) const;
  int64_t Measure(const StepPlan& plan);

 private:
  MachineSpeed speed_;
  Random random_;
};

}  // namespace vivace::sim
