#include "tune/candidate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace vivace::tune {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

load::Distribution Of(double p99) { return {.n = 10, .mean = p99 / 2, .p50 = p99 / 2, .p99 = p99}; }

Measured RunWith(double throughput, double ttft, double itl) {
  Measured measured;
  measured.figures.requests = measured.figures.completed = 10;
  measured.figures.output_throughput = throughput;
  measured.figures.ttft_ms = Of(ttft);
  measured.figures.itl_ms = Of(itl);
  measured.figures.e2el_ms = Of(ttft + 10 * itl);
  return measured;
}

Candidate Tried(std::vector<Measured> runs, const Objective& objective) {
  Candidate candidate{.setting = {}};
  for (Measured& run : runs) candidate.trials.push_back({.setting = {}, .measured = run});
  Summarise(objective, &candidate);
  return candidate;
}

const Objective kThroughput({}, false);

TEST(Objective, IsThroughputUnlessARateIsGiven) {
  EXPECT_EQ(kThroughput.Of(RunWith(100, 1, 1).figures, false).value, 100);
  const Objective latency({}, true);
  EXPECT_GT(latency.Of(RunWith(100, 10, 1).figures, false).value,
            latency.Of(RunWith(100, 20, 1).figures, false).value);
}

Objective Promising(const char* slo) {
  auto terms = load::ParseSlos(slo, "slo");
  EXPECT_TRUE(terms);
  return {terms ? std::move(*terms) : std::vector<load::Slo>(), true};
}

TEST(Objective, WhatKeepsThePromiseGoesBeforeAllThatDoesNot) {
  const Objective objective = Promising("p99:ttft:500 p99:itl:50");
  const Score slow = objective.Of(RunWith(40, 499, 50).figures, false);
  EXPECT_TRUE(slow.kept());
  EXPECT_EQ(slow.value, 40);
  const Score fast = objective.Of(RunWith(100, 501, 50).figures, false);
  EXPECT_FALSE(fast.kept());
  EXPECT_THAT(fast.broken[0], HasSubstr("p99 ttft is 501 ms, not 500"));
  EXPECT_TRUE(Better(slow, fast));
  EXPECT_FALSE(Better(fast, slow));
  // Of those that break it, the further off the worse; and the worst term counts.
  for (const auto& [ttft, itl] : {std::pair(900.0, 50.0), {501.0, 80.0}, {900.0, 80.0}}) {
    const Score further = objective.Of(RunWith(100, ttft, itl).figures, false);
    EXPECT_TRUE(Better(fast, further)) << ttft << " " << itl;
    EXPECT_LT(further.margin, fast.margin);
  }
  EXPECT_FALSE(objective.Of(RunWith(100, 1, 1).figures, /*partial=*/true).kept());
}

TEST(Objective, AtThePromiseItIsKept) {
  const Objective objective = Promising("p99:itl:50");
  EXPECT_TRUE(objective.Of(RunWith(1, 1, 50).figures, false).kept());
  const double above = std::nextafter(50.0, 51.0);
  EXPECT_FALSE(objective.Of(RunWith(1, 1, above).figures, false).kept());
  EXPECT_TRUE(objective.Of(RunWith(1, 1, 0).figures, false).kept());
}

// As `bench max-rate` has it.
TEST(Objective, APromiseWithoutAFigureIsNotKept) {
  Measured run = RunWith(100, 5, 5);
  run.figures.itl_ms = {};
  const Score score = Promising("p99:itl:50").Of(run.figures, false);
  EXPECT_FALSE(score.kept());
  EXPECT_THAT(score.broken[0], HasSubstr("no request has a figure for p99 itl"));
}

TEST(Objective, TheMiddleKeepsWhatMostKeep) {
  const Score kept{.value = 10, .margin = 0.5}, broken{.value = 90, .margin = -0.5};
  EXPECT_TRUE(std::vector({kept, broken, kept})[MiddleOf({kept, broken, kept})].kept());
  EXPECT_EQ(MiddleOf({kept, broken}), 1u);
  EXPECT_EQ(MiddleOf({kept}), 0u);
}

TEST(Objective, NothingCompletedIsNothing) {
  Measured none = RunWith(100, 1, 1);
  none.figures.completed = 0;
  none.figures.output_throughput = 0;
  EXPECT_EQ(kThroughput.Of(none.figures, false).value, 0);
}

TEST(Candidate, IsTheTrialInTheMiddle) {
  const Candidate c =
      Tried({RunWith(90, 1, 1), RunWith(110, 3, 1), RunWith(100, 2, 1)}, kThroughput);
  EXPECT_EQ(c.measured.figures.output_throughput, 100);
  EXPECT_EQ(c.score.value, 100);
}

// It was ranked by one number and shown with another.
TEST(Candidate, OfTwoTrialsFiguresAndScoreAreOfTheSame) {
  const Candidate c = Tried({RunWith(738.98, 1, 1), RunWith(690.23, 2, 1)}, kThroughput);
  EXPECT_EQ(c.score.value, c.measured.figures.output_throughput);
  EXPECT_EQ(c.score.value, 690.23);
}

TEST(Candidate, RankedByWhatIsKeptFirst) {
  const Objective objective = Promising("p99:itl:50");
  const std::vector<Candidate> all = {
      Tried({RunWith(100, 1, 51)}, objective), Tried({RunWith(40, 1, 50)}, objective),
      Candidate{.setting = {}}, Tried({RunWith(45, 1, 20)}, objective)};
  EXPECT_THAT(Ranked(all), ::testing::ElementsAre(3, 1, 0));
}

TEST(Candidate, TheFrontIsWhatNothingBeats) {
  std::vector<Candidate> all;
  all.push_back(Tried({RunWith(100, 50, 10)}, kThroughput));  // fast
  all.push_back(Tried({RunWith(80, 20, 10)}, kThroughput));   // soon
  all.push_back(Tried({RunWith(80, 30, 10)}, kThroughput));   // beaten by the one before
  all.push_back(Tried({RunWith(60, 90, 2)}, kThroughput));    // smooth
  all.push_back(Candidate{.setting = {}});                    // not measured
  MarkFront(&all);
  EXPECT_TRUE(all[0].front);
  EXPECT_TRUE(all[1].front);
  EXPECT_FALSE(all[2].front);
  EXPECT_TRUE(all[3].front);
  EXPECT_FALSE(all[4].front);
  all[0].outside = true;  // and beats nothing any more
  all[1].outside = true;
  MarkFront(&all);
  EXPECT_FALSE(all[0].front);
  EXPECT_TRUE(all[2].front);
}

TEST(Candidate, ErrorsOfForecastsAreMedians) {
  std::vector<Candidate> all;
  for (const double forecast : {90.0, 100.0, 150.0}) {
    all.push_back(Tried({RunWith(100, 50, 10)}, kThroughput));
    all.back().forecast = RunWith(forecast, 25, 10);
  }
  const ForecastError error = ErrorOfForecasts(all);
  EXPECT_EQ(error.n, 3u);
  EXPECT_NEAR(error.throughput, 0.1, 1e-9);
  EXPECT_NEAR(error.worst_throughput, 0.5, 1e-9);
  EXPECT_NEAR(error.p99_ttft, 0.5, 1e-9);
  EXPECT_EQ(ErrorOfForecasts({}).n, 0u);
}

TEST(Setting, NamesAndSpaces) {
  Setting setting;
  setting.max_num_seqs = 8;
  setting.max_num_batched_tokens = 256;
  setting.max_itl_ms = 0;
  EXPECT_EQ(Name(setting), "8 sequences, 256 tokens, itl any, cache auto, 1 thread");
  EXPECT_THAT(ThreadChoices(8), ::testing::ElementsAre(8, 7, 6, 4));
  EXPECT_THAT(ThreadChoices(1), ::testing::ElementsAre(1));
  Space space;
  EXPECT_FALSE(SettingsOf(space));  // no threads
  space.threads = {2, 1};
  EXPECT_EQ(SettingsOf(space)->size(), 8u * 7 * 5 * 2);
  space.threads.assign(100, 1);
  EXPECT_FALSE(SettingsOf(space));
}

// Fewer than 64 sequences where recurrent states are large: what `serve` would choose is the
// plan's.
TEST(Setting, TheDefaultsAreThoseOfThePlan) {
  LoadPlan plan;
  plan.threads = 3;
  plan.memory.limits.max_sequences = 7;
  const Setting own = SettingOf(EngineConfig(), plan);
  EXPECT_EQ(own.max_num_seqs, 7);
  EXPECT_EQ(own.threads, 3);
  EXPECT_EQ(own.max_num_batched_tokens, EngineConfig().max_num_batched_tokens);
}

TEST(Trial, IsReadBackAsWritten) {
  Trial trial;
  trial.setting.max_num_seqs = 8;
  trial.setting.max_itl_ms = 12.5;
  trial.setting.threads = 3;
  trial.measured = RunWith(123.5, 40, 7);
  trial.took_s = 2;
  trial.setting.kv_cache_dtype = kernels::KvDType::kI8;
  trial.measured.use.mean_batch = 3.5;
  trial.measured.use.preemptions = 4;
  trial.steps = {
      {.shape = {.decodes = 3, .decode_context = 90, .prompt_rows = 5}, .seconds = 0.01}};
  const auto text = boost::json::serialize(ToJson(trial));
  const auto read = TrialFromJson(boost::json::parse(text));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->setting, trial.setting);
  EXPECT_EQ(read->measured.figures.output_throughput, 123.5);
  EXPECT_EQ(read->measured.figures.ttft_ms.p99, 40);
  EXPECT_EQ(read->measured.use.mean_batch, 3.5);
  EXPECT_EQ(read->measured.use.preemptions, 4);
  ASSERT_EQ(read->steps.size(), 1u);
  EXPECT_EQ(read->steps[0].shape.decode_context, 90);
  EXPECT_EQ(read->took_s, 2);
}

TEST(Trial, DamageIsRefused) {
  const boost::json::object good =
      ToJson(Trial{.setting = {}, .measured = RunWith(1, 1, 1), .took_s = 1});
  ASSERT_TRUE(TrialFromJson(good));
  const auto with = [&](std::string_view name, boost::json::value value) {
    boost::json::object object = good;
    object[name] = std::move(value);
    return object;
  };
  EXPECT_FALSE(TrialFromJson(with("setting", 3)));
  EXPECT_FALSE(TrialFromJson(with("measured", boost::json::object())));
  EXPECT_FALSE(TrialFromJson(with("took_s", "long")));
  EXPECT_FALSE(TrialFromJson(with("steps", boost::json::array{boost::json::array{1, 2}})));
  EXPECT_FALSE(
      TrialFromJson(with("steps", boost::json::array{boost::json::array{1e300, 2, 3, 4, 5, 6}})));
  boost::json::object setting = good.at("setting").get_object();
  setting["max_num_seqs"] = -1;
  EXPECT_FALSE(TrialFromJson(with("setting", setting)));
  setting["max_num_seqs"] = 1e300;
  EXPECT_FALSE(TrialFromJson(with("setting", setting)));
  EXPECT_FALSE(TrialFromJson(boost::json::array()));
}

}  // namespace
}  // namespace vivace::tune
