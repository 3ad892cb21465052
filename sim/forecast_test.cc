// Forecasts of `vivace tune` (src/tune) against a machine whose steps are not of the form that it
// fits: the same traffic and scheduler, once with the machine's own clock, once with what was
// learned from some of its steps.
#include "tune/forecast.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "load/figures.h"
#include "sim/step_timer.h"
#include "tune/step_time_model.h"

namespace vivace::sim {
namespace {

constexpr int32_t kInput = 200, kOutput = 40;

tune::Traffic MakeTraffic(Random* random) {
  tune::Traffic traffic;
  for (int i = 0; i < 60; ++i) {
    const int32_t input = random->Between(kInput / 2, kInput * 2);
    const int32_t output = random->Between(kOutput / 2, kOutput * 2);
    std::vector<TokenId> prompt(static_cast<size_t>(input));
    for (TokenId& token : prompt) token = random->Between(1, 1000);
    traffic.workload.requests.push_back(
        {.prompt = load::PromptIds(prompt), .output_tokens = output});
    traffic.turns.push_back(std::move(prompt));
  }
  traffic.max_concurrency = 16;
  return traffic;
}

// A plan of so many decodes and prompt rows, as bench/step_samples makes them.
StepPlan MakePlan(int32_t decodes, int32_t context, int32_t rows) {
  StepPlan plan;
  for (int32_t i = 0; i < decodes; ++i) {
    plan.items.push_back({.slot = SeqSlot(i),
                          .first_token = i,
                          .num_tokens = 1,
                          .first_position = context,
                          .logit_rows = LogitRows::kLast,
                          .sample = true});
  }
  if (rows > 0)
    plan.items.push_back({.slot = SeqSlot(decodes), .first_token = decodes, .num_tokens = rows});
  plan.tokens.resize(static_cast<size_t>(decodes + rows));
  plan.decode_tokens = decodes;
  plan.prefill_tokens = rows;
  return plan;
}

tune::StepTimeModel Learn(const MachineSpeed& speed, uint64_t seed) {
  StepTimer timer(speed, seed);
  std::vector<bench::StepSample> samples;
  for (int round = 0; round < 3; ++round) {
    for (const int32_t decodes : {0, 1, 4, 8, 16}) {
      for (const int32_t context : {16, 240}) {
        for (const int32_t rows : {0, 16, 64, 256, 512}) {
          if (decodes + rows == 0) continue;
          const StepPlan plan = MakePlan(decodes, context, rows);
          samples.push_back(
              {bench::ShapeOf(plan), static_cast<double>(timer.Measure(plan)) * 1e-9});
        }
      }
    }
  }
  return tune::StepTimeModel::Fit(samples);
}

load::Figures FiguresOf(const tune::Traffic& traffic, int32_t seqs, int32_t tokens,
                        const std::function<double(const StepPlan&)>& seconds) {
  const auto run = tune::Forecast({.scheduler = {.max_num_seqs = seqs,
                                                 .max_num_batched_tokens = tokens,
                                                 .max_model_len = 2048,
                                                 .kv = {.num_blocks = 4096, .block_size = 16}},
                                   .step_seconds = seconds,
                                   .noise = 0},
                                  traffic);
  EXPECT_TRUE(run);
  return run ? load::ComputeFigures(run->records, {}) : load::Figures();
}

TEST(ForecastAgainstSimulator, IsNearOnAMachineOfAnotherForm) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed);
    const MachineSpeed speed = RandomSpeed(&random);
    const tune::Traffic traffic = MakeTraffic(&random);
    const tune::StepTimeModel cost = Learn(speed, seed);
    const StepTimer machine(speed, seed);
    for (const int32_t seqs : {2, 8, 16}) {
      for (const int32_t tokens : {64, 512}) {
        const load::Figures truth = FiguresOf(
            traffic, seqs, tokens, [&](const StepPlan& plan) { return machine.Cost(plan) * 1e-9; });
        const load::Figures forecast = FiguresOf(traffic, seqs, tokens, [&](const StepPlan& plan) {
          return cost.Seconds(bench::ShapeOf(plan));
        });
        EXPECT_NEAR(forecast.output_throughput / truth.output_throughput, 1, 0.08)
            << "seed " << seed << ", " << seqs << " sequences, " << tokens << " tokens";
        EXPECT_NEAR(forecast.ttft_ms.p50 / truth.ttft_ms.p50, 1, 0.25);
      }
    }
  }
}

}  // namespace
}  // namespace vivace::sim
