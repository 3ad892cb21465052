#include "tune/step_time_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace vivace::tune {
namespace {

using bench::StepSample;

// A machine whose steps cost what StepTimeModel can say.
double TrueSeconds(const StepShape& s) {
  const double rows = s.decodes + s.prompt_rows;
  const double context = 2e-7 * static_cast<double>(s.decode_context);
  if (s.prompt_rows == 0) {
    return 2e-3 + 0.6e-3 * std::min(rows, 8.0) + 0.7e-3 * std::clamp(rows - 8, 0.0, 56.0) +
           0.5e-3 * std::max(rows - 64, 0.0) + context;
  }
  return 4e-3 + 0.6e-3 * std::min(rows, 64.0) + 0.45e-3 * std::max(rows - 64, 0.0) + context +
         5e-8 * static_cast<double>(s.prompt_context) + 0.2e-3 * (s.decodes + s.prompt_logit_rows);
}

StepShape Shape(int32_t decodes, int32_t context, int32_t rows, int32_t position) {
  StepShape shape{.decodes = decodes, .decode_context = int64_t{decodes} * context};
  if (rows > 0) shape.AddPrompt(position, rows, false, rows % 2 == 0);
  return shape;
}

std::vector<StepShape> Shapes() {
  std::vector<StepShape> shapes;
  for (const int32_t decodes : {0, 1, 4, 16, 32, 64, 96}) {
    for (const int32_t context : {16, 600}) {
      for (const int32_t rows : {0, 16, 65, 256, 1024})
        if (decodes + rows > 0) shapes.push_back(Shape(decodes, context, rows, rows / 2));
    }
  }
  return shapes;
}

std::vector<StepSample> Samples() {
  std::vector<StepSample> samples;
  for (const StepShape& shape : Shapes()) samples.push_back({shape, TrueSeconds(shape)});
  return samples;
}

TEST(StepTimeModel, FitsWhatItCanSay) {
  const StepTimeModel cost = StepTimeModel::Fit(Samples());
  EXPECT_LT(cost.error(), 0.01);
  for (const StepShape& shape : Shapes())
    EXPECT_NEAR(cost.Seconds(shape) / TrueSeconds(shape), 1, 0.03)
        << shape.decodes << " " << shape.prompt_rows;
  // Between and beyond what was measured.
  for (const StepShape& shape :
       {Shape(8, 300, 0, 0), Shape(128, 600, 0, 0), Shape(24, 300, 512, 0)})
    EXPECT_NEAR(cost.Seconds(shape) / TrueSeconds(shape), 1, 0.05);
}

// Rows that no step had cost what the last ones did, not nothing.
TEST(StepTimeModel, RowsBeyondThoseMeasuredAreNotFree) {
  std::vector<StepSample> samples = Samples();
  std::erase_if(samples, [](const StepSample& s) { return s.shape.decodes > 32; });
  const StepTimeModel cost = StepTimeModel::Fit(samples);
  const StepShape large = Shape(256, 16, 0, 0), small = Shape(64, 16, 0, 0);
  EXPECT_GT(cost.Seconds(large), 2.5 * cost.Seconds(small));
}

TEST(StepTimeModel, SlowMomentsMoveLittle) {
  std::vector<StepSample> samples;
  for (int repeat = 0; repeat < 4; ++repeat)
    for (const StepSample& sample : Samples()) samples.push_back(sample);
  for (size_t i = 0; i < samples.size(); i += 17) samples[i].seconds *= 6;
  const StepTimeModel cost = StepTimeModel::Fit(samples);
  for (const StepShape& shape : Shapes())
    EXPECT_NEAR(cost.Seconds(shape) / TrueSeconds(shape), 1, 0.08);
}

TEST(StepTimeModel, ALargerStepNeverCostsLess) {
  // Times that fall with the size, as no machine's do.
  std::vector<StepSample> samples;
  for (const int32_t decodes : {1, 8, 64})
    samples.push_back({Shape(decodes, 100, 0, 0), 0.1 / decodes});
  const StepTimeModel cost = StepTimeModel::Fit(samples);
  for (const double term : cost.terms()) EXPECT_GE(term, 0);
  EXPECT_LE(cost.Seconds(Shape(8, 100, 0, 0)), cost.Seconds(Shape(64, 100, 0, 0)));
}

TEST(StepTimeModel, NothingMeasuredIsNothingKnown) {
  const StepTimeModel cost = StepTimeModel::Fit({});
  EXPECT_EQ(cost.Seconds(Shape(1, 1, 1, 0)), 0);
  EXPECT_EQ(cost.error(), 0);
}

}  // namespace
}  // namespace vivace::tune
