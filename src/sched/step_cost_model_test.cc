#include "sched/step_cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace vivace {
namespace {

StepShape Decodes(int32_t count, int64_t context_each) {
  return {.decodes = count, .decode_context = count * context_each};
}

StepShape WithPrompt(StepShape shape, int64_t position, int64_t count) {
  shape.AddPrompt(position, count, false, false);
  return shape;
}

// A machine that does not keep to the model's form: weights are read or rows are computed,
// whichever takes longer, and rows come in tiles.
struct Machine {
  double weights_ns = 4e6;
  double decode_row_ns = 0.9e6;
  double prompt_row_ns = 0.5e6;
  double decode_position_ns = 150;
  double prompt_position_ns = 40;
  double speed = 1.0;

  double Time(const StepShape& shape) const {
    double rows = weights_ns + decode_row_ns * shape.decodes;
    if (shape.prompt_rows > 0) {
      const double tiles = std::ceil((shape.prompt_rows + shape.decodes) / 8.0) * 8.0;
      rows = std::max(weights_ns, tiles * prompt_row_ns) + 1.5e6;
    }
    const double context = decode_position_ns * static_cast<double>(shape.decode_context) +
                           prompt_position_ns * static_cast<double>(shape.prompt_context);
    return speed * (rows + context);
  }
};

class Lab {
 public:
  explicit Lab(uint32_t seed) : random_(seed) {}

  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  StepShape Any() {
    const StepShape decodes = Decodes(static_cast<int32_t>(Between(1, 12)), Between(20, 800));
    switch (Between(0, 2)) {
      case 0:
        return decodes;
      case 1:
        return WithPrompt({}, Between(0, 4000), Between(20, 500));
      default:
        return WithPrompt(decodes, Between(0, 4000), Between(16, 120));
    }
  }
  // With 4 % of noise; `outlier_percent` of the steps lose a quantum or two of the processor.
  void Run(const StepShape& shape, int outlier_percent = 0) {
    double ns = machine.Time(shape) * (1.0 + 0.01 * static_cast<double>(Between(-4, 4)));
    if (Between(1, 100) <= outlier_percent) ns += static_cast<double>(Between(10, 200)) * 1e6;
    model.Observe(shape, static_cast<int64_t>(ns));
  }
  double Error(const StepShape& shape) const {
    return std::abs(model.Predict(shape) / machine.Time(shape) - 1.0);
  }
  // Of shapes it may not have seen: nine in ten are off by less.
  double ErrorOfMost() {
    std::vector<double> errors;
    for (int i = 0; i < 200; ++i) errors.push_back(Error(Any()));
    std::nth_element(errors.begin(), errors.begin() + 180, errors.end());
    return errors[180];
  }

  Machine machine;
  StepCostModel model;

 private:
  std::mt19937 random_;
};

TEST(StepCostModel, KnowsNothingAtFirst) {
  const StepCostModel model;
  EXPECT_EQ(model.Predict(Decodes(3, 100)), 0.0);
  EXPECT_FALSE(model.knows_prompts());
}

TEST(StepCostModel, IsRightAfterAFewDozenSteps) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Lab lab(seed);
    for (int i = 0; i < 60; ++i) lab.Run(lab.Any());
    EXPECT_LT(lab.ErrorOfMost(), 0.12) << "seed " << seed;
  }
}

TEST(StepCostModel, OutliersDoNotMoveIt) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Lab lab(seed);
    for (int i = 0; i < 120; ++i) lab.Run(lab.Any(), 8);
    EXPECT_LT(lab.ErrorOfMost(), 0.15) << "seed " << seed;
  }
}

// The very first step, cold, taking ten times as long is such an outlier too.
TEST(StepCostModel, AColdFirstStepIsForgotten) {
  Lab lab(1);
  const StepShape prompt = WithPrompt({}, 0, 100);
  lab.model.Observe(prompt, static_cast<int64_t>(10 * lab.machine.Time(prompt)));
  for (int i = 0; i < 20; ++i) lab.Run(prompt);
  EXPECT_LT(lab.Error(prompt), 0.06);
}

TEST(StepCostModel, FollowsALastingChange) {
  for (const double speed : {0.5, 2.0}) {
    Lab lab(3);
    for (int i = 0; i < 200; ++i) lab.Run(lab.Any());
    lab.machine.speed = speed;
    for (int i = 0; i < 150; ++i) lab.Run(lab.Any());
    EXPECT_LT(lab.ErrorOfMost(), 0.12) << "speed " << speed;
  }
}

TEST(StepCostModel, DecodesDoNotWashOutWhatPromptsTaught) {
  Lab lab(4);
  for (int i = 0; i < 100; ++i) lab.Run(lab.Any());
  for (int i = 0; i < 5'000; ++i) lab.Run(Decodes(8, 100 + i));
  EXPECT_LT(lab.Error(WithPrompt(Decodes(8, 1000), 1000, 50)), 0.12);
  EXPECT_LT(lab.Error(WithPrompt({}, 1000, 300)), 0.12);
}

// One prompt seen: all its time may be the rows', so a longer one is not underestimated.
TEST(StepCostModel, WhatIsUnknownIsOverestimated) {
  Lab lab(5);
  const StepShape prompt = WithPrompt({}, 0, 30);
  lab.model.Observe(prompt, static_cast<int64_t>(lab.machine.Time(prompt)));
  EXPECT_GE(lab.model.Predict(WithPrompt({}, 0, 300)), lab.machine.Time(WithPrompt({}, 0, 300)));
}

TEST(StepCostModel, AMixedStepIsNeverShorterThanItsDecodes) {
  Lab lab(6);
  for (int i = 0; i < 40; ++i) lab.Run(Decodes(8, 500));
  const StepShape mixed = WithPrompt(Decodes(8, 500), 0, 1);
  EXPECT_GE(lab.model.Predict(mixed), lab.model.Predict(Decodes(8, 500)));
}

// The context's cost is told apart from the rows': chunks of one size, further and further back.
TEST(StepCostModel, LearnsTheCostOfThePosition) {
  Lab lab(7);
  for (int64_t position = 0; position < 32 * 64; position += 64) {
    lab.Run(WithPrompt(Decodes(8, 200), position, 64));
  }
  EXPECT_LT(lab.Error(WithPrompt(Decodes(8, 200), 4'000, 64)), 0.1);
}

TEST(StepCostModel, IgnoresWhatIsNoMeasurement) {
  StepCostModel model;
  model.Observe(Decodes(1, 10), 0);
  model.Observe(Decodes(1, 10), -5);
  model.Observe({}, 1'000'000);
  EXPECT_EQ(model.Predict(Decodes(1, 10)), 0.0);
  model.Observe(Decodes(1, 10), INT64_MAX);
  for (int i = 0; i < 40; ++i) model.Observe(Decodes(1, 10), 1'000'000);
  EXPECT_NEAR(model.Predict(Decodes(1, 10)), 1e6, 1e4);
}

TEST(StepCostModel, SameObservationsSamePredictions) {
  Lab a(8), b(8);
  for (int i = 0; i < 100; ++i) {
    a.Run(a.Any(), 5);
    b.Run(b.Any(), 5);
  }
  const StepShape shape = WithPrompt(Decodes(5, 300), 700, 80);
  EXPECT_EQ(a.model.Predict(shape), b.model.Predict(shape));
}

}  // namespace
}  // namespace vivace
