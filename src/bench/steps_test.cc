#include "bench/steps.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "bench/report.h"
#include "bench/step_driver.h"
#include "engine/testing/tiny_model.h"

namespace vivace::bench {
namespace {

constexpr int kThreads = 1;

// A machine so fast that no step comes near its limits.
MachineLimits FastMachine(double factor = 1) {
  MachineLimits limits;
  limits.threads = kThreads;
  limits.clock_before = limits.clock_after = 1e9;
  limits.reads = {{1 << 20, kThreads, 1e15 * factor, 1e15}};
  for (const MacKernel& kernel : MacKernels())
    limits.macs.push_back({kernel.kind, kThreads, 1e18 * factor});
  return limits;
}

class Steps : public ::testing::Test {
 protected:
  StepOptions Options() {
    StepOptions options;
    options.engine.model = model_.file().path();
    options.engine.threads = kThreads;
    options.prompts = {5, 20};
    options.batches = {1, 3};
    options.contexts = {17};
    options.rounds = 2;
    options.limits = &limits_;
    return options;
  }
  testing::TinyModel model_;
  MachineLimits limits_ = FastMachine();
};

TEST_F(Steps, MeasuresEveryCaseAgainstItsLimit) {
  const auto report = RunStepBench(Options(), {});
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->figures.size(), 4u);
  EXPECT_EQ(report->figures[1].step.prompt, 20);
  EXPECT_EQ(report->figures[3].step.batch, 3);
  EXPECT_EQ(report->figures[3].step.context, 17);
  EXPECT_GT(report->weight_bytes, 0u);
  for (const StepFigures& f : report->figures) {
    EXPECT_GT(f.seconds, 0);
    EXPECT_LE(f.fastest, f.seconds);
    EXPECT_GE(f.slowest, f.seconds);
    EXPECT_GT(f.limit.seconds, 0);
    EXPECT_DOUBLE_EQ(f.fraction_of_limit, f.limit.seconds / f.seconds);
    EXPECT_GT(f.kernel_share, 0);
    EXPECT_LE(f.kernel_share + f.sample_share, 1);
    EXPECT_NEAR(f.tokens_per_second * f.seconds, f.step.is_prompt() ? f.step.prompt : f.step.batch,
                1e-6);
  }
  EXPECT_TRUE(CheckFractions(*report));
}

TEST_F(Steps, AChunkedPromptsLimitIsTheSumOfItsChunks) {
  StepOptions options = Options();
  options.prompts = {20};
  options.batches = {};
  const auto whole = RunStepBench(options, {});
  options.engine.max_num_batched_tokens = 8;
  const auto chunked = RunStepBench(options, {});
  ASSERT_TRUE(whole && chunked);
  // Three chunks read the weights three times; the machine is bound by reading.
  EXPECT_EQ(chunked->figures[0].limit.side, Side::kBandwidth);
  EXPECT_GT(chunked->figures[0].limit.seconds, 1.5 * whole->figures[0].limit.seconds);
}

TEST_F(Steps, FasterThanTheLimitIsAnError) {
  limits_ = FastMachine(1e-12);
  const auto report = RunStepBench(Options(), {});
  ASSERT_TRUE(report) << report.error().message;
  const Status checked = CheckFractions(*report);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().reason, "limit_exceeded");
}

TEST_F(Steps, WhatTheModelCannotHoldIsLeftOutWithAReason) {
  StepOptions options = Options();
  options.contexts = {17, model_.file().spec().context};
  const auto report = RunStepBench(options, {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->figures.size(), 4u);
  ASSERT_EQ(report->left_out.size(), 2u);
  EXPECT_NE(report->left_out[0].find("decode 1 at"), std::string::npos) << report->left_out[0];
}

TEST_F(Steps, RefusesWhatItCannotMeasure) {
  StepOptions options = Options();
  for (const int32_t prompt : {0, limits::kMaxBenchTokens + 1}) {
    options.prompts = {prompt};
    EXPECT_EQ(RunStepBench(options, {}).error().field, "prompt");
  }
  options = Options();
  options.contexts = {limits::kMaxBenchTokens + 1};
  EXPECT_EQ(RunStepBench(options, {}).error().field, "context");
  options = Options();
  options.batches = {limits::kMaxBenchSequences + 1};
  EXPECT_EQ(RunStepBench(options, {}).error().field, "decode");
  for (const int32_t rounds : {0, limits::kMaxBenchRounds + 1}) {
    options = Options();
    options.rounds = rounds;
    EXPECT_EQ(RunStepBench(options, {}).error().field, "rounds");
  }
  options = Options();
  options.prompts = options.batches = {};
  EXPECT_EQ(RunStepBench(options, {}).error().reason, "nothing_to_measure");
  options = Options();
  options.engine.model += ".not";
  EXPECT_FALSE(RunStepBench(options, {}));
}

TEST_F(Steps, ReportsSayTheFigures) {
  const auto report = RunStepBench(Options(), {});
  ASSERT_TRUE(report);
  EXPECT_NE(Text(*report).find("decode 3 at 17"), std::string::npos) << Text(*report);
  const std::string json = Json(*report);
  EXPECT_NE(json.find(R"("prompt":20,"batch":0,"context":0,"seconds":)"), std::string::npos)
      << json;
  EXPECT_NE(json.find(R"("limits":{"cpu":)"), std::string::npos) << json;
}

// A plan whose blocks or slots were wrong would stop on the executor's checks.
TEST_F(Steps, TheDriverComputesWhatTheExecutorIsGiven) {
  const auto executor = testing::MakeExecutor(testing::TestConfig(BestIsa()), model_.file());
  StepDriver driver(executor.get(), 2, 40);
  driver.TouchCache();
  driver.Bind(2, 33);
  driver.Chunk(0, 33, true);
  EXPECT_GT(driver.wall_ns(), 0);
  driver.Decode(2, 33);
  EXPECT_GT(driver.times().kernel_ns, 0);
  EXPECT_LE(driver.times().total_ns, driver.wall_ns());
}

}  // namespace
}  // namespace vivace::bench
