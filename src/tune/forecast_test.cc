#include "tune/forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "load/figures.h"

namespace vivace::tune {
namespace {

using ::testing::HasSubstr;

// A row takes a millisecond, and each step one more.
double StepSeconds(const StepPlan& plan) {
  return 1e-3 + 1e-3 * static_cast<double>(plan.tokens.size());
}

Traffic Requests(size_t n, int32_t input, int32_t output) {
  Traffic traffic;
  traffic.workload.name = "test";
  for (size_t i = 0; i < n; ++i) {
    std::vector<TokenId> prompt(static_cast<size_t>(input), static_cast<TokenId>(i + 10));
    traffic.workload.requests.push_back(
        {.prompt = load::PromptIds(prompt), .output_tokens = output});
    traffic.turns.push_back(std::move(prompt));
  }
  return traffic;
}

ForecastOptions Options(int32_t seqs, int32_t tokens) {
  return {.scheduler = {.max_num_seqs = seqs,
                        .max_num_batched_tokens = tokens,
                        .max_model_len = 1000,
                        .kv = {.num_blocks = 1000, .block_size = 16}},
          .step_seconds = StepSeconds,
          .noise = 0};
}

TEST(Forecast, OneRequestTakesItsSteps) {
  const auto run = Forecast(Options(4, 512), Requests(1, 100, 5));
  ASSERT_TRUE(run);
  const load::Figures f = load::ComputeFigures(run->records, {});
  EXPECT_EQ(f.completed, 1);
  EXPECT_EQ(f.output_tokens, 5);
  EXPECT_NEAR(f.ttft_ms.mean, 101, 1e-6);  // one step of 100 rows
  EXPECT_NEAR(f.itl_ms.mean, 2, 1e-6);
  EXPECT_NEAR(f.e2el_ms.mean, 101 + 4 * 2, 1e-6);
  EXPECT_NEAR(run->elapsed_s, 0.109, 1e-9);
  EXPECT_EQ(run->use.steps, 5);
}

TEST(Forecast, LongPromptsAreCut) {
  const auto run = Forecast(Options(4, 32), Requests(1, 100, 1));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->use.steps, 4);
  EXPECT_EQ(run->use.peak_step_tokens, 32);
  EXPECT_NEAR(run->elapsed_s, 0.104, 1e-9);
}

TEST(Forecast, SequencesBoundTheBatchAndTheRestWaits) {
  const auto run = Forecast(Options(2, 512), Requests(8, 10, 20));
  ASSERT_TRUE(run);
  EXPECT_EQ(run->use.peak_batch, 2);
  EXPECT_GT(run->use.mean_waiting, 2);
  const auto wide = Forecast(Options(8, 512), Requests(8, 10, 20));
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->use.peak_batch, 8);
  EXPECT_LT(wide->elapsed_s, run->elapsed_s);
}

TEST(Forecast, ConcurrencyBoundsWhatIsSent) {
  Traffic traffic = Requests(9, 10, 20);
  traffic.max_concurrency = 3;
  const auto run = Forecast(Options(8, 512), traffic);
  ASSERT_TRUE(run);
  const load::Figures f = load::ComputeFigures(run->records, {});
  EXPECT_EQ(f.completed, 9);
  EXPECT_EQ(f.peak_concurrency, 3);
  EXPECT_NEAR(run->use.mean_waiting, 0, 1e-9);
}

TEST(Forecast, ArrivalsAreKept) {
  Traffic traffic = Requests(3, 10, 2);
  traffic.arrivals = {0.5, 2, 2.001};
  const auto run = Forecast(Options(8, 512), traffic);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->records[1].scheduled_ns - run->records[0].scheduled_ns, 1'500'000'000);
  EXPECT_NEAR(run->elapsed_s, 2.011 + 0.012 + 0.002, 0.02);
  EXPECT_LT(run->use.busy_share, 0.1);
}

// The second turn's prompt is what was said before and what it adds, found in the cache.
TEST(Forecast, ConversationsGoOnFromTheCache) {
  Traffic traffic = Requests(2, 64, 33);
  for (load::PlannedRequest& request : traffic.workload.requests) request.conversation = 7;
  const auto run = Forecast(Options(8, 512), traffic);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->records[1].prompt_tokens, 64 + 33 + 64);
  EXPECT_EQ(run->records[1].cached_tokens, 96);  // whole blocks of what was computed
  EXPECT_EQ(run->records[1].scheduled_ns, run->records[0].ended_ns);
}

TEST(Forecast, WhatCanNeverFitIsRefused) {
  const auto run = Forecast(Options(8, 512), Requests(2, 999, 10));
  ASSERT_TRUE(run);  // cut to the context, as the engine does
  const auto refused = Forecast(Options(8, 512), Requests(2, 1000, 10));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("request 1 of test has 1000 prompt"));
}

TEST(Forecast, EndsAtItsTime) {
  ForecastOptions options = Options(8, 512);
  options.most_seconds = 0.05;
  const auto run = Forecast(options, Requests(4, 10, 500));
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->partial);
  EXPECT_LT(run->elapsed_s, 0.1);
}

TEST(Forecast, NoiseIsTheSameEachTime) {
  ForecastOptions options = Options(8, 512);
  options.noise = 0.05;
  const auto a = Forecast(options, Requests(4, 10, 20));
  const auto b = Forecast(options, Requests(4, 10, 20));
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->elapsed_s, b->elapsed_s);
  options.noise = 0;
  EXPECT_NE(a->elapsed_s, Forecast(options, Requests(4, 10, 20))->elapsed_s);
}

}  // namespace
}  // namespace vivace::tune
