#include "bench/offline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>

#include "bench/offline_report.h"
#include "bench/step_samples.h"
#include "engine/testing/tiny_model.h"
#include "load/chains.h"
#include "load/figures.h"

namespace vivace::bench {
namespace {

using ::testing::HasSubstr;

load::Workload Requests(size_t n, int32_t input, int32_t output) {
  load::Workload workload{.name = "test", .requests = {}};
  for (size_t i = 0; i < n; ++i) {
    load::PromptIds prompt(static_cast<size_t>(input), static_cast<int32_t>(i + 5));
    workload.requests.push_back(
        {.prompt = prompt, .prompt_tokens = input, .output_tokens = output});
  }
  return workload;
}

class Offline : public ::testing::Test {
 protected:
  Offline() {
    auto text = ReadModelText(model_.file());
    VIVACE_CHECK(text.has_value());
    text_ = std::move(*text);
  }
  std::unique_ptr<OfflineEngine> Load(int32_t max_num_seqs = 40) {
    EngineConfig config = testing::TestConfig(Isa::kReference, 1);
    config.max_num_seqs = max_num_seqs;
    auto engine = OfflineEngine::Load(config, model_.file(), text_, /*with_cost=*/true);
    VIVACE_CHECK(engine.has_value());
    return std::move(*engine);
  }
  OfflineRun Run(OfflineEngine* engine, const load::Workload& workload,
                 const OfflineOptions& options) {
    auto run = engine->Run(workload, options);
    if (run) return std::move(*run);
    ADD_FAILURE() << run.error().message;
    return {};
  }

  testing::TinyModel model_;
  ModelText text_;
};

TEST_F(Offline, EveryRequestHasItsRecord) {
  const auto engine = Load();
  const OfflineRun run = Run(engine.get(), Requests(6, 10, 7), {});
  ASSERT_EQ(run.records.size(), 6u);
  EXPECT_FALSE(run.partial);
  for (const load::RequestRecord& record : run.records) {
    EXPECT_EQ(record.outcome, load::Outcome::kCompleted);
    EXPECT_EQ(record.finish_reason, "length");
    EXPECT_EQ(record.prompt_tokens, 10);
    EXPECT_EQ(record.output_tokens, 7);
    EXPECT_EQ(record.chunk_ns.size(), 7u);  // stamped step by step
    EXPECT_TRUE(std::ranges::is_sorted(record.chunk_ns));
    EXPECT_LE(record.scheduled_ns, record.sent_ns);
    EXPECT_LT(record.sent_ns, record.first_ns);
    EXPECT_LE(record.last_ns, record.ended_ns);
    EXPECT_GE(record.server_queue_ms, 0);
  }
  const load::Figures f = load::ComputeFigures(run.records, {});
  EXPECT_EQ(f.output_tokens, 42);
  EXPECT_EQ(f.wrong_lengths, 0);
  EXPECT_TRUE(f.itl_per_token);
  EXPECT_EQ(run.use.peak_batch, 6);
  EXPECT_GT(run.use.kernel_share, 0);
  EXPECT_EQ(run.use.steps, static_cast<int64_t>(engine->steps().size()));
}

TEST_F(Offline, AClosedLoopKeepsItsPlaces) {
  const auto engine = Load();
  const OfflineRun run = Run(engine.get(), Requests(9, 10, 5), {.max_concurrency = 3});
  const load::Figures f = load::ComputeFigures(run.records, {});
  EXPECT_EQ(f.completed, 9);
  EXPECT_LE(f.peak_concurrency, 3);
  EXPECT_LE(run.use.peak_batch, 3);
}

TEST_F(Offline, TheEngineBoundsTheBatch) {
  const auto engine = Load(/*max_num_seqs=*/2);
  const OfflineRun run = Run(engine.get(), Requests(6, 10, 8), {});
  EXPECT_EQ(run.use.peak_batch, 2);
  EXPECT_GT(run.use.mean_waiting, 0);
}

TEST_F(Offline, AnOpenLoopKeepsItsTimes) {
  const auto engine = Load();
  const OfflineRun run = Run(engine.get(), Requests(3, 4, 2), {.arrivals = {0, 0.05, 0.1}});
  EXPECT_EQ(run.records[1].scheduled_ns - run.records[0].scheduled_ns, 50'000'000);
  for (const load::RequestRecord& record : run.records)
    EXPECT_GE(record.sent_ns, record.scheduled_ns);
  EXPECT_GE(run.elapsed_s, 0.1);
  EXPECT_FALSE(engine->Run(Requests(3, 4, 2), {.arrivals = {0}}));
}

TEST_F(Offline, SeveralAnswersToAPromptCountTogether) {
  const auto engine = Load();
  const OfflineRun run = Run(engine.get(), Requests(2, 10, 4), {.num_choices = 3});
  EXPECT_EQ(run.records[0].output_tokens, 12);
  const load::Figures f = load::ComputeFigures(run.records, {});
  EXPECT_EQ(f.wrong_lengths, 0);
  EXPECT_EQ(f.ttft_ms.n, 2);
  EXPECT_EQ(f.e2el_ms.n, 2);
  // Three answers' tokens come together: time by their number is nobody's time per token.
  EXPECT_EQ(f.tpot_ms.n, 0);
  EXPECT_EQ(f.itl_ms.n, 0);
}

TEST_F(Offline, ATurnFollowsTheAnswerToTheLast) {
  const auto engine = Load();
  load::Workload workload = Requests(4, 20, 12);
  for (size_t i = 0; i < 4; ++i) workload.requests[i].conversation = static_cast<int32_t>(i / 2);
  EXPECT_EQ(load::ChainsOf(workload).size(), 2u);
  const OfflineRun run = Run(engine.get(), workload, {});
  EXPECT_EQ(run.records[1].prompt_tokens, 20 + 12 + 20);
  EXPECT_EQ(run.records[1].scheduled_ns, run.records[0].ended_ns);
  EXPECT_EQ(run.records[1].cached_tokens, 16);
  EXPECT_GT(run.use.prefix_hit_rate, 0);
}

TEST_F(Offline, TextsAndMessagesBecomeTokens) {
  const auto engine = Load();
  load::Workload workload{.name = "text", .requests = {}};
  workload.requests.push_back({.prompt = "Hello there", .output_tokens = 3});
  workload.requests.push_back(
      {.prompt = load::Messages{{.role = "user", .content = "Hello"}}, .output_tokens = 3});
  const OfflineRun run = Run(engine.get(), workload, {});
  EXPECT_EQ(run.records[0].prompt_tokens,
            static_cast<int32_t>(text_.tokenizer->Encode("Hello there").size()));
  EXPECT_GT(run.records[1].prompt_tokens, 5);  // the template's tokens around it
  EXPECT_EQ(run.records[1].output_tokens, 3);
}

TEST_F(Offline, StoppedItKeepsWhatHadEnded) {
  const auto engine = Load(/*max_num_seqs=*/1);
  std::atomic<bool> stop{false};
  const OfflineRun run = Run(engine.get(), Requests(50, 20, 200),
                             {.stop = &stop, .progress = [&](size_t, size_t) { stop = true; }});
  EXPECT_TRUE(run.partial);
  ASSERT_EQ(run.records.size(), 50u);
  const load::Figures f = load::ComputeFigures(run.records, {});
  EXPECT_GE(f.completed, 1);
  EXPECT_GT(f.not_run, 0);
  // And goes on being used.
  EXPECT_EQ(Run(engine.get(), Requests(1, 4, 2), {}).records[0].output_tokens, 2);
}

TEST_F(Offline, EndsAtItsTime) {
  const auto engine = Load(/*max_num_seqs=*/1);
  const OfflineRun run = Run(engine.get(), Requests(200, 20, 200), {.most_seconds = 0.05});
  EXPECT_TRUE(run.partial);
}

TEST_F(Offline, WhatCannotFitIsRefusedByItsNumber) {
  const auto engine = Load();
  load::Workload workload = Requests(2, 10, 3);
  workload.requests[1].prompt = load::PromptIds(5000, 7);
  const auto run = engine->Run(workload, {});
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message, HasSubstr("request 2 of test"));
  EXPECT_EQ(Run(engine.get(), Requests(1, 4, 2), {}).records[0].output_tokens, 2);
}

TEST_F(Offline, StepsKnowTheirShapesAndLimits) {
  const auto engine = Load();
  Run(engine.get(), Requests(2, 10, 3), {});
  const std::vector<RecordedStep>& steps = engine->steps();
  ASSERT_GE(steps.size(), 3u);
  EXPECT_GT(steps.front().shape.prompt_rows, 0);
  EXPECT_EQ(steps.back().shape.prompt_rows, 0);
  int32_t prompt_rows = 0, decodes = 0;
  for (const RecordedStep& step : steps) {
    EXPECT_GT(step.ns, 0);
    EXPECT_GT(step.cost.bytes, 0);
    prompt_rows += step.shape.prompt_rows;
    decodes += step.shape.decodes;
  }
  EXPECT_EQ(prompt_rows, 20);
  EXPECT_EQ(decodes, 2 * 2);
  MachineLimits limits;
  limits.threads = 1;
  limits.reads = {{1 << 20, 1, 1e9, 1e9}};
  for (const MacKernel& kernel : MacKernels()) limits.macs.push_back({kernel.kind, 1, 1e12});
  double bytes = 0;
  for (const RecordedStep& step : steps) bytes += step.cost.bytes;
  EXPECT_NEAR(engine->LeastSeconds(limits), bytes / 1e9, bytes / 1e9 * 0.01);
}

TEST_F(Offline, SamplesOfStepsAreOfBothKinds) {
  const auto samples = SampleSteps({.engine = testing::TestConfig(Isa::kReference, 1),
                                    .input_len = 40,
                                    .output_len = 10,
                                    .sequences = 8,
                                    .step_tokens = 64,
                                    .most_seconds = 0.05},
                                   model_.file());
  ASSERT_TRUE(samples) << samples.error().message;
  int decodes = 0, prompts = 0;
  for (const StepSample& sample : *samples) {
    EXPECT_GT(sample.seconds, 0);
    decodes += sample.shape.decodes > 0 && sample.shape.prompt_rows == 0;
    prompts += sample.shape.prompt_rows > 0;
    EXPECT_LE(sample.shape.decodes, 9);
  }
  EXPECT_GT(decodes, 0);
  EXPECT_GT(prompts, 0);
}

TEST(OfflineReport, HasVllmsMembers) {
  ThroughputReport report;
  report.model = "m";
  report.elapsed_s = 2;
  report.figures.requests = report.figures.completed = 4;
  report.figures.input_tokens = 100;
  report.figures.output_tokens = 60;
  report.limit = OfflineLimit{.least_s = 1, .steps_s = 2};
  EXPECT_THAT(Text(report), HasSubstr("Throughput: 2.00 requests/s, 80.00 total tokens/s, 30.00 "
                                      "output tokens/s"));
  EXPECT_THAT(Text(report), HasSubstr("Of the machine's limit: 0.50"));
  const auto json = boost::json::parse(Json(report)).get_object();
  EXPECT_EQ(json.at("elapsed_time").to_number<double>(), 2);
  EXPECT_EQ(json.at("num_requests").to_number<int>(), 4);
  EXPECT_EQ(json.at("total_num_tokens").to_number<int>(), 160);
  EXPECT_EQ(json.at("requests_per_second").to_number<double>(), 2);
  EXPECT_EQ(json.at("tokens_per_second").to_number<double>(), 80);
  EXPECT_EQ(json.at("fraction_of_limit").to_number<double>(), 0.5);

  LatencyReport latency;
  latency.latencies = {0.5, 1.5, 1.0};
  EXPECT_THAT(Text(latency), HasSubstr("Avg latency: 1.000000 seconds"));
  const auto of = boost::json::parse(Json(latency)).get_object();
  EXPECT_EQ(of.at("avg_latency").to_number<double>(), 1);
  EXPECT_EQ(of.at("latencies").get_array().size(), 3u);
  EXPECT_EQ(of.at("percentiles").at("50").to_number<double>(), 1);
  EXPECT_TRUE(of.at("fraction_of_limit").is_null());
}

TEST(OfflineReport, AnImpossibleShareIsAnError) {
  EXPECT_TRUE(CheckFraction({.least_s = 1.02, .steps_s = 1}));
  EXPECT_FALSE(CheckFraction({.least_s = 1.04, .steps_s = 1}));
}

}  // namespace
}  // namespace vivace::bench
