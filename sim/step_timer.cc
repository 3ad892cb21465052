#include "sim/step_timer.h"

#include <algorithm>
#include <cmath>

namespace vivace::sim {
namespace {

constexpr double kTileRows = 8.0;  // rows are computed in tiles

// Positions that the rows of an item attend to, summed.
double Positions(const PlanItem& item) {
  const double n = item.num_tokens;
  return n * item.first_position + n * (n + 1) / 2;
}

double Between(double low, double high, Random* random) {
  return low + (high - low) * random->Between(0, 1000) / 1000.0;
}

}  // namespace

MachineSpeed RandomSpeed(Random* random) {
  MachineSpeed speed;
  speed.weights = Between(1e6, 10e6, random);
  speed.batch_row = Between(0.05e6, 0.8e6, random);
  // Rows of a batch are cheaper than rows of a few.
  speed.decode_row = speed.batch_row * Between(0.8, 2.0, random);
  speed.batch_fixed = Between(0.0, 2e6, random);
  speed.decode_position = Between(10, 300, random);
  speed.prompt_position = Between(2, 60, random);
  speed.logit_row = Between(0.0, 0.3e6, random);
  speed.noise = Between(0.0, 0.06, random);
  speed.outliers_per_mille = random->Between(0, 2);
  speed.outlier = Between(5e6, 200e6, random);
  return speed;
}

// Output that was appended costs what decodes cost.
double StepTimer::DecodeCost(const StepPlan& plan) const {
  const int32_t tokens = plan.decode_tokens + plan.appended_tokens;
  if (tokens == 0) return 0.0;
  double cost = speed_.weights + (speed_.decode_row + speed_.logit_row) * tokens;
  for (const PlanItem& item : plan.items) {
    if (item.first_token >= tokens) break;
    cost += speed_.decode_position * Positions(item);
  }
  return cost;
}

double StepTimer::Cost(const StepPlan& plan) const {
  if (plan.prefill_tokens == 0) return DecodeCost(plan);
  const double rows = std::ceil(static_cast<double>(plan.tokens.size()) / kTileRows) * kTileRows;
  double cost = std::max(speed_.weights, rows * speed_.batch_row) + speed_.batch_fixed;
  for (size_t i = 0; i < plan.items.size(); ++i) {
    const PlanItem& item = plan.items[i];
    const bool decode = item.first_token < plan.decode_tokens + plan.appended_tokens;
    cost += (decode ? speed_.decode_position : speed_.prompt_position) * Positions(item);
    if (item.logit_rows == LogitRows::kAll) cost += speed_.logit_row * item.num_tokens;
    if (item.logit_rows == LogitRows::kLast) cost += speed_.logit_row;
  }
  return cost;
}

int64_t StepTimer::Measure(const StepPlan& plan) {
  double ns = Cost(plan) * (1.0 + Between(-speed_.noise, speed_.noise, &random_));
  if (random_.Between(1, 1000) <= speed_.outliers_per_mille) {
    ns += Between(0.0, speed_.outlier, &random_);
  }
  return static_cast<int64_t>(ns);
}

}  // namespace vivace::sim
