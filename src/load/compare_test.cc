#include "load/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "load/bootstrap.h"
#include "load/report/report.h"
#include "load/testing/make_run.h"

namespace vivace::load {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::MakeRun;
using testing::RunShape;

constexpr CompareOptions kFast = {.resamples = 400};

Comparison Compared(const RunResult& a, const RunResult& b, const CompareOptions& options = kFast) {
  const auto comparison = Compare({"a.json", "b.json"}, {{a}, {b}}, options);
  EXPECT_TRUE(comparison.has_value());
  return *comparison;
}

const ComparedValue& Value(const Comparison& comparison, std::string_view name) {
  for (const ComparedFigure& figure : comparison.runs.at(0).figures) {
    if (figure.name == name) return figure.others.at(0);
  }
  static const ComparedValue kNone;
  ADD_FAILURE() << "no figure " << name;
  return kNone;
}

TEST(GroupedValues, CountedTwiceIsThereTwice) {
  const GroupedValues values({{10}, {20, 30}, {40}});
  // {10, 20, 30, 40}
  EXPECT_DOUBLE_EQ(values.Whole()[0], 25);
  EXPECT_DOUBLE_EQ(values.Whole()[1], 25);
  EXPECT_DOUBLE_EQ(values.Whole()[2], 37);
  EXPECT_DOUBLE_EQ(values.Whole()[3], 39.7);
  // {20, 20, 30, 30, 40}
  const std::vector<uint32_t> counts = {0, 2, 1};
  EXPECT_DOUBLE_EQ(values.At(counts)[0], 28);
  EXPECT_DOUBLE_EQ(values.At(counts)[1], 30);
  EXPECT_DOUBLE_EQ(values.At(counts)[2], 36);
  EXPECT_DOUBLE_EQ(values.At(counts)[3], 39.6);
  EXPECT_TRUE(std::isnan(values.At(std::vector<uint32_t>(3, 0))[1]));
}

TEST(GroupedValues, IsFiguresPercentileForAnyDraw) {
  Random random(3, 3);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<std::vector<double>> groups(1 + random.Below(6));
    std::vector<uint32_t> counts(groups.size());
    std::vector<double> all;
    for (size_t g = 0; g < groups.size(); ++g) {
      counts[g] = static_cast<uint32_t>(random.Below(4));
      for (size_t i = 0; i < 1 + random.Below(4); ++i) {
        groups[g].push_back(random.Uniform());
        all.insert(all.end(), counts[g], groups[g].back());
      }
    }
    if (all.empty()) continue;
    const Distribution d = Describe(all);
    const auto stats = GroupedValues(groups).At(counts);
    EXPECT_NEAR(stats[0], d.mean, 1e-12);
    EXPECT_NEAR(stats[1], d.p50, 1e-12);
    EXPECT_NEAR(stats[2], d.p90, 1e-12);
    EXPECT_NEAR(stats[3], d.p99, 1e-12);
  }
}

// Of two samples of one distribution, the 95 % interval holds the true ratio, 1, in about 95 of 100
// trials; of 120, fewer than 106 would be a surprise of one in a thousand.
TEST(Bootstrap, CoversTheTruth) {
  Random random(11, 5);
  constexpr int kTrials = 120, kRequests = 100;
  std::array<int, 4> held{};
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<std::vector<double>> a, b;
    for (int i = 0; i < kRequests; ++i) {
      a.push_back({random.Gamma(4)});
      b.push_back({random.Gamma(4)});
    }
    const auto intervals = RatioIntervals(GroupedValues(a), GroupedValues(b), false,
                                          {.resamples = 200, .seed = static_cast<uint64_t>(trial)});
    for (size_t s = 0; s < held.size(); ++s) {
      held[s] += intervals[s].low <= 1 && intervals[s].high >= 1;
    }
  }
  EXPECT_GE(held[0], 106);  // mean
  EXPECT_GE(held[1], 106);  // p50
  EXPECT_GE(held[2], 103);  // p90
  // And it is an interval, not everything there is.
  EXPECT_LT(held[0], kTrials);
}

// In a queue a slow request is followed by slow ones: a run of 200 has far fewer than 200
// independent values, and an interval that forgets it calls every second run different from the
// next.
TEST(Bootstrap, CoversTheTruthOfNeighboursThatShareTheirLuck) {
  Random random(12, 5);
  constexpr int kTrials = 60, kRequests = 200;
  const auto queue = [&] {
    std::vector<std::vector<double>> values;
    double at = random.Normal();
    for (int i = 0; i < kRequests; ++i) {
      at = 0.8 * at + 0.6 * random.Normal();
      values.push_back({10 + at});
    }
    return GroupedValues(values);
  };
  int held = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const GroupedValues a = queue(), b = queue();
    const auto mean =
        RatioIntervals(a, b, false, {.resamples = 200, .seed = static_cast<uint64_t>(trial)})[0];
    held += mean.low <= 1 && mean.high >= 1;
  }
  EXPECT_GE(held, 47);  // drawn one by one it holds about half
}

TEST(Bootstrap, BlocksAreAsLongAsNeighboursAreAlike) {
  Random random(4, 4);
  std::vector<double> alone, alike;
  double at = 0;
  for (int i = 0; i < 500; ++i) {
    alone.push_back(random.Uniform());
    alike.push_back(at = 0.9 * at + random.Normal());
  }
  EXPECT_EQ(BlockLength(alone), 1u);
  EXPECT_GT(BlockLength(alike), 10u);
  EXPECT_LE(BlockLength(alike), 100u);
  EXPECT_EQ(BlockLength(std::vector<double>(500, 3)), 1u);
  EXPECT_EQ(BlockLength({}), 1u);
}

TEST(Bootstrap, PairsSeeWhatVariesBetweenRequestsAndNotRuns) {
  Random random(2, 2);
  std::vector<std::vector<double>> a, b;
  for (int i = 0; i < 60; ++i) {
    const double length = 100 + 400 * random.Uniform();  // long and short prompts
    a.push_back({length});
    b.push_back({length * (1.03 + 0.01 * random.Normal())});
  }
  const auto paired = RatioIntervals(GroupedValues(a), GroupedValues(b), true, {.resamples = 500});
  const auto apart = RatioIntervals(GroupedValues(a), GroupedValues(b), false, {.resamples = 500});
  EXPECT_GT(paired[0].low, 1.02);
  EXPECT_LT(paired[0].high, 1.04);
  EXPECT_LT(apart[0].low, 1);  // without pairs 3 % are lost in the lengths
}

TEST(Compare, ARunIsNoDifferentFromItself) {
  const RunResult run = MakeRun({.requests = 120});
  const Comparison comparison = Compared(run, run);
  for (const ComparedFigure& figure : comparison.runs[0].figures) {
    EXPECT_EQ(figure.others[0].verdict, Verdict::kNoDifference) << figure.name;
    EXPECT_DOUBLE_EQ(figure.others[0].ratio, 1) << figure.name;
  }
  EXPECT_TRUE(comparison.runs[0].warnings.empty());
}

TEST(Compare, FindsWhatIsFasterAndWhatIsNot) {
  const RunResult before = MakeRun({.requests = 160, .seed = 1});
  const RunResult after = MakeRun({.requests = 160, .ttft_ms = 30, .seed = 2});
  const Comparison comparison = Compared(before, after);
  EXPECT_EQ(Value(comparison, "mean TTFT").verdict, Verdict::kBetter);
  EXPECT_NEAR(Value(comparison, "mean TTFT").ratio, 0.5, 0.05);
  EXPECT_TRUE(Value(comparison, "mean TTFT").paired);
  EXPECT_EQ(Value(comparison, "mean TPOT").verdict, Verdict::kNoDifference);
  EXPECT_EQ(Value(Compared(after, before), "mean TTFT").verdict, Verdict::kWorse);
}

TEST(Compare, ThroughputIsBetterWhereItIsHigher) {
  const RunResult slow = MakeRun({.requests = 300, .seed = 1});
  const RunResult fast = MakeRun({.requests = 300, .tpot_ms = 6, .seed = 2});
  EXPECT_EQ(Value(Compared(slow, fast), "output throughput").verdict, Verdict::kBetter);
  EXPECT_EQ(Value(Compared(fast, slow), "request throughput").verdict, Verdict::kWorse);
}

// A closed loop of equal requests completes in waves, and slices of time cut between them.
TEST(Compare, RequestsThatCompleteInWavesAreRatesAsTheirTokensAre) {
  const RunShape shape = {
      .requests = 160, .tokens = 20, .ttft_ms = 50, .tpot_ms = 10, .spread = 0.001};
  RunShape slower = shape;
  slower.ttft_ms = 55;
  slower.tpot_ms = 11;
  RunResult a = MakeRun(shape), b = MakeRun(slower);
  for (RunResult* run : {&a, &b}) {
    run->promises = {{Promise::What::kTtft, 1'000}};
    run->figures = ComputeFigures(run->records, run->promises);
  }
  const Comparison comparison = Compared(a, b);
  const ComparedValue tokens = Value(comparison, "output throughput");
  for (const char* rate : {"request throughput", "goodput"}) {
    const ComparedValue& requests = Value(comparison, rate);
    EXPECT_EQ(requests.verdict, Verdict::kWorse) << rate;
    EXPECT_NEAR(requests.low, tokens.low, 1e-9) << rate;
    EXPECT_NEAR(requests.high, tokens.high, 1e-9) << rate;
  }
}

TEST(Compare, DifferencesThatDoNotMatterAreNone) {
  const RunResult a = MakeRun({.requests = 200, .spread = 0.001, .seed = 1});
  const RunResult b = MakeRun({.requests = 200, .ttft_ms = 60.3, .spread = 0.001, .seed = 1});
  EXPECT_EQ(Value(Compared(a, b), "mean TTFT").verdict, Verdict::kNoDifference);
  EXPECT_EQ(Value(Compared(a, b, {.least = 0.001, .resamples = 400}), "mean TTFT").verdict,
            Verdict::kWorse);
}

TEST(Compare, FewRequestsSayNothingOfATail) {
  const RunResult a = MakeRun({.requests = 40, .seed = 1});
  const RunResult b = MakeRun({.requests = 40, .ttft_ms = 600, .seed = 2});
  EXPECT_EQ(Value(Compared(a, b), "p99 TTFT").verdict, Verdict::kTooFew);
  EXPECT_EQ(Value(Compared(a, b), "p50 TTFT").verdict, Verdict::kWorse);
}

TEST(Compare, FromNothingToSomethingIsBetter) {
  RunResult a = MakeRun({.requests = 120, .ttft_ms = 600, .seed = 1});
  RunResult b = MakeRun({.requests = 120, .ttft_ms = 60, .seed = 2});
  for (RunResult* run : {&a, &b}) {
    run->promises = {{Promise::What::kTtft, 200}};
    run->figures = ComputeFigures(run->records, run->promises);
  }
  ASSERT_EQ(a.figures.goodput, 0);
  const Comparison comparison = Compared(a, b);
  EXPECT_EQ(Value(comparison, "goodput").verdict, Verdict::kBetter);
  EXPECT_THAT(ComparisonText(comparison), HasSubstr("from 0"));
  EXPECT_EQ(Value(Compared(b, a), "goodput").verdict, Verdict::kWorse);
  EXPECT_EQ(Value(Compared(a, a), "goodput").verdict, Verdict::kNoDifference);
}

TEST(Compare, OnePrefixCacheThatKnewThePrompts) {
  const RunResult a = MakeRun({.requests = 120});
  RunResult b = a;
  b.figures.cached_tokens = b.figures.input_tokens * 8 / 10;
  EXPECT_THAT(Compared(a, b).runs[0].warnings,
              Contains(HasSubstr("80 % of the prompts' tokens came from the prefix cache, 0 %")));
}

TEST(Compare, WithoutRecordsThereAreRatios) {
  const RunResult a = MakeRun({.requests = 120});
  RunResult b = MakeRun({.requests = 120, .ttft_ms = 120});
  b.records.clear();
  const Comparison comparison = Compared(a, b);
  EXPECT_EQ(Value(comparison, "mean TTFT").verdict, Verdict::kNoInterval);
  EXPECT_NEAR(Value(comparison, "mean TTFT").ratio, 2, 0.1);
  EXPECT_EQ(Value(comparison, "output throughput").verdict, Verdict::kNoInterval);
  EXPECT_THAT(comparison.runs[0].warnings, Contains(HasSubstr("--save-detailed")));
}

TEST(Compare, SaysWhyRunsMayNotCompare) {
  const RunResult a = MakeRun({.concurrency = 8, .requests = 120});
  RunResult b = MakeRun({.concurrency = 4, .requests = 120, .tokens = 48});
  b.model = "another";
  b.workload = "random 256/48";
  b.client.bottleneck = true;
  const auto warnings = Compared(a, b).runs[0].warnings;
  EXPECT_THAT(warnings,
              Contains(HasSubstr("model differs: SmolLM2-135M-Instruct against another")));
  EXPECT_THAT(warnings, Contains(HasSubstr("workload differs")));
  EXPECT_THAT(warnings, Contains(HasSubstr("maximum concurrency differs: 8 against 4")));
  EXPECT_THAT(warnings, Contains(HasSubstr("48.0 tokens long, 24.0 in the first")));
  EXPECT_THAT(warnings, Contains(HasSubstr("b.json: invalid: the client slowed the run down")));
  EXPECT_FALSE(Value(Compared(a, b), "mean TTFT").paired);
}

TEST(Compare, MatchesRunsByTheirLabels) {
  const std::vector<RunResult> first = {MakeRun({.concurrency = 1, .requests = 20}),
                                        MakeRun({.concurrency = 4, .requests = 20})};
  const std::vector<RunResult> second = {MakeRun({.concurrency = 4, .requests = 20}),
                                         MakeRun({.concurrency = 8, .requests = 20})};
  const auto comparison = Compare({"a", "b"}, {first, second}, kFast);
  ASSERT_TRUE(comparison.has_value());
  ASSERT_EQ(comparison->runs.size(), 1u);
  EXPECT_EQ(comparison->runs[0].label, "c=4");
  EXPECT_THAT(comparison->warnings, Contains("\"c=1\" is in a and not in b: left out"));
  const auto nothing = Compare({"a", "b"}, {{first[0], first[0]}, {second[1]}}, kFast);
  ASSERT_FALSE(nothing.has_value());
  EXPECT_THAT(nothing.error().message, HasSubstr("no run in common"));
}

TEST(Compare, RunsThatAreCalledAlikeAreMatchedInTheirOrder) {
  std::vector<RunResult> runs = {MakeRun({.concurrency = 1, .requests = 120}),
                                 MakeRun({.concurrency = 4, .requests = 120}),
                                 MakeRun({.concurrency = 8, .requests = 120})};
  for (RunResult& run : runs) run.label = "rate 1 to 9/s";
  const auto same = Compare({"a", "a"}, {runs, runs}, kFast);
  ASSERT_TRUE(same.has_value());
  ASSERT_EQ(same->runs.size(), 3u);
  for (const ComparedRun& run : same->runs) {
    for (const ComparedFigure& figure : run.figures) {
      EXPECT_DOUBLE_EQ(figure.others[0].ratio, 1) << figure.name;
    }
  }
  const auto fewer = Compare({"a", "b"}, {runs, {runs[0], runs[1]}}, kFast);
  ASSERT_TRUE(fewer.has_value());
  EXPECT_EQ(fewer->runs.size(), 2u);
  EXPECT_THAT(fewer->warnings, Contains(HasSubstr("not in b: left out")));
}

TEST(Compare, OtherRampsAndOtherArrivalsAreOtherLoads) {
  RunResult linear = MakeRun({.requests = 120});
  linear.ramp = ArrivalOptions::Ramp::kLinear;
  linear.ramp_from = 1;
  linear.ramp_to = 9;
  RunResult exponential = linear, bursty = linear, trace = MakeRun({.requests = 120});
  exponential.ramp = ArrivalOptions::Ramp::kExponential;
  bursty.burstiness = 0.5;
  trace.own_times = true;
  EXPECT_THAT(Compared(linear, exponential).runs[0].warnings,
              Contains("b.json: request rate differs: 1 to 9/s linear against 1 to 9/s "
                       "exponential"));
  EXPECT_THAT(Compared(linear, bursty).runs[0].warnings, Contains(HasSubstr("burstiness 0.5")));
  EXPECT_THAT(Compared(linear, trace).runs[0].warnings,
              Contains(HasSubstr("against each at its own time")));
}

TEST(Compare, ThreeReportsAndTheirTexts) {
  const RunResult a = MakeRun({.requests = 120, .seed = 1}),
                  b = MakeRun({.requests = 120, .seed = 2}),
                  c = MakeRun({.requests = 120, .ttft_ms = 200, .seed = 3});
  const auto comparison = Compare({"a\x1b[2J.json", "b.json", "c.json"}, {{a}, {b}, {c}}, kFast);
  ASSERT_TRUE(comparison.has_value());
  const std::string text = ComparisonText(*comparison);
  EXPECT_THAT(text, HasSubstr("c=8, B against A"));
  EXPECT_THAT(text, HasSubstr("c=8, C against A"));
  EXPECT_THAT(text, HasSubstr("no difference"));
  EXPECT_THAT(text, HasSubstr("worse"));
  EXPECT_EQ(text.find('\x1b'), text.npos);
  const std::string json = ComparisonJson(*comparison);
  EXPECT_THAT(json, HasSubstr("\"verdict\":\"worse\""));
  EXPECT_EQ(json.find("nan"), json.npos);
  EXPECT_FALSE(Compare({"a"}, {{a}}, kFast).has_value());
}

}  // namespace
}  // namespace vivace::load
