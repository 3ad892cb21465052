#include "load/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "load/testing/make_run.h"

namespace vivace::load {
namespace {

using testing::Completed;
using ::testing::ElementsAre;
using testing::Failed;
using testing::Ms;
using ::testing::Pair;

// numpy 2: np.percentile([15, 20, 35, 40, 50], [50, 90, 95, 99]), np.std.
TEST(Describe, IsNumpys) {
  const Distribution d = Describe({40, 15, 50, 35, 20});
  EXPECT_EQ(d.n, 5);
  EXPECT_DOUBLE_EQ(d.mean, 32);
  EXPECT_DOUBLE_EQ(d.stddev, 12.884098726725126);
  EXPECT_DOUBLE_EQ(d.min, 15);
  EXPECT_DOUBLE_EQ(d.p50, 35);
  EXPECT_DOUBLE_EQ(d.p90, 46);
  EXPECT_DOUBLE_EQ(d.p95, 48);
  EXPECT_DOUBLE_EQ(d.p99, 49.6);
  EXPECT_DOUBLE_EQ(d.max, 50);
}

TEST(Describe, OfOneAndOfNone) {
  const Distribution one = Describe({7});
  EXPECT_EQ(one.n, 1);
  EXPECT_DOUBLE_EQ(one.p50, 7);
  EXPECT_DOUBLE_EQ(one.p99, 7);
  EXPECT_DOUBLE_EQ(one.stddev, 0);
  EXPECT_EQ(Describe({}).n, 0);
}

TEST(Percentile, InterpolatesBetweenRanks) {
  const std::vector<double> even = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(Percentile(even, 0), 1);
  EXPECT_DOUBLE_EQ(Percentile(even, 50), 2.5);
  EXPECT_DOUBLE_EQ(Percentile(even, 99), 3.97);
  EXPECT_DOUBLE_EQ(Percentile(even, 100), 4);
}

TEST(Figures, OneRequestByHand) {
  const RequestRecord r = Completed(0, 100, {150, 160, 180, 210});
  const Figures f = ComputeFigures({&r, 1}, {});
  EXPECT_EQ(f.completed, 1);
  EXPECT_DOUBLE_EQ(f.ttft_ms.mean, 50);
  EXPECT_DOUBLE_EQ(f.e2el_ms.mean, 110);
  EXPECT_DOUBLE_EQ(f.tpot_ms.mean, 20);  // 60 over 3
  EXPECT_EQ(f.itl_ms.n, 3);
  EXPECT_DOUBLE_EQ(f.itl_ms.mean, 20);
  EXPECT_DOUBLE_EQ(f.itl_ms.max, 30);
  EXPECT_DOUBLE_EQ(f.duration_s, 0.11);
  EXPECT_DOUBLE_EQ(f.output_throughput, 4 / 0.11);
  EXPECT_DOUBLE_EQ(f.input_throughput, 10 / 0.11);
  EXPECT_DOUBLE_EQ(f.total_throughput, 14 / 0.11);
  EXPECT_DOUBLE_EQ(f.mean_concurrency, 1);
  EXPECT_EQ(f.goodput, -1);
}

// vLLM #7242, #6531: TTFT inside ITL made ITL smaller or larger than it was.
TEST(Figures, TheFirstTokenIsInNoGap) {
  const RequestRecord slow = Completed(0, 0, {5000, 5010, 5020});
  const Figures f = ComputeFigures({&slow, 1}, {});
  EXPECT_DOUBLE_EQ(f.itl_ms.max, 10);
  EXPECT_DOUBLE_EQ(f.tpot_ms.max, 10);
}

// vLLM #54101: the wait for a place was in no figure.
TEST(Figures, LatencyCountsFromTheSchedule) {
  RequestRecord late = Completed(0, 0, {150, 160});
  late.sent_ns = Ms(100);
  const Figures f = ComputeFigures({&late, 1}, {});
  EXPECT_DOUBLE_EQ(f.ttft_ms.mean, 150);
  EXPECT_DOUBLE_EQ(f.e2el_ms.mean, 160);
  EXPECT_DOUBLE_EQ(f.queue_ms.mean, 100);
  EXPECT_DOUBLE_EQ(f.send_lag_ms.mean, 100);
}

// vLLM #29657, aiperf #340: coalesced chunks of a server that says how many tokens each has.
TEST(Figures, AGapIsSharedByTheTokensThatEndIt) {
  RequestRecord r = Completed(0, 0, {100, 140, 200});
  r.chunk_tokens = {1, 4, 2};
  r.output_tokens = r.wanted_output_tokens = 7;
  const Figures f = ComputeFigures({&r, 1}, {});
  EXPECT_TRUE(f.itl_per_token);
  EXPECT_EQ(f.itl_ms.n, 6);  // 4 of 10 ms, 2 of 30
  EXPECT_DOUBLE_EQ(f.itl_ms.mean, 100 / 6.);
  EXPECT_DOUBLE_EQ(f.itl_ms.min, 10);
  EXPECT_DOUBLE_EQ(f.itl_ms.max, 30);
  EXPECT_DOUBLE_EQ(f.tpot_ms.mean, 100 / 6.);
  EXPECT_DOUBLE_EQ(f.tokens_per_chunk, 7 / 3.);
}

TEST(Figures, ChunksAreNotTokensWhereTheServerDoesNotCount) {
  RequestRecord r = Completed(0, 0, {100, 140, 200});
  r.output_tokens = 7;
  const Figures f = ComputeFigures({&r, 1}, {});
  EXPECT_FALSE(f.itl_per_token);
  EXPECT_EQ(f.itl_ms.n, 2);
  EXPECT_DOUBLE_EQ(f.itl_ms.mean, 50);
  EXPECT_DOUBLE_EQ(f.tpot_ms.mean, 100 / 6.);
}

TEST(Figures, CountsThatDoNotAddUpAreNotBelieved) {
  RequestRecord r = Completed(0, 0, {100, 140, 200});
  r.chunk_tokens = {1, 2'000'000'000, 2};
  r.output_tokens = 7;
  EXPECT_FALSE(CountsTokens(r));
  EXPECT_EQ(ComputeFigures({&r, 1}, {}).itl_ms.n, 2);
  // Nor are those that add up to what no memory holds.
  r.chunk_tokens = {1, 2'000'000'000, 2};
  r.output_tokens = 2'000'000'003;
  EXPECT_EQ(ComputeFigures({&r, 1}, {}).itl_ms.n, 2);
  std::vector<double> gaps;
  AppendGaps(r, /*per_token=*/true, &gaps);
  EXPECT_THAT(gaps, ElementsAre(40, 60));
}

TEST(Figures, TextWithoutATokenWaitsForTheNext) {
  RequestRecord r = Completed(0, 0, {100, 110, 130});
  r.chunk_tokens = {1, 0, 1};
  r.output_tokens = 2;
  const Figures f = ComputeFigures({&r, 1}, {});
  EXPECT_EQ(f.itl_ms.n, 1);
  EXPECT_DOUBLE_EQ(f.itl_ms.mean, 30);
}

// guidellm #444, #216: failures in latencies, a negative TTFT.
TEST(Figures, FailuresAreInNoLatency) {
  RequestRecord cut = Completed(2, 20, {30, 40});
  cut.outcome = Outcome::kCut;
  cut.reason = "the connection broke";
  const std::vector<RequestRecord> records = {
      Completed(0, 10, {20, 30}), Failed(1, 10, Outcome::kRefused, "503: overloaded"), cut,
      Failed(3, 15, Outcome::kRefused, "503: overloaded"), Failed(4, 15, Outcome::kTimeout, "")};
  const Figures f = ComputeFigures(records, {});
  EXPECT_EQ(f.requests, 5);
  EXPECT_EQ(f.completed, 1);
  EXPECT_EQ(f.failed, 4);
  EXPECT_EQ(f.ttft_ms.n, 1);
  EXPECT_DOUBLE_EQ(f.ttft_ms.min, 10);
  EXPECT_EQ(f.output_tokens, 2);
  EXPECT_THAT(f.failures, ElementsAre(Pair("503: overloaded", 2), Pair("the connection broke", 1),
                                      Pair("timeout", 1)));
  EXPECT_DOUBLE_EQ(f.duration_s, 0.03);  // to the cut one's end: a failure takes time too
}

TEST(Figures, ReasonsAreBounded) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 100; ++i) {
    records.push_back(Failed(i, 1, Outcome::kRefused, std::to_string(i) + std::string(1000, 'x')));
  }
  const Figures f = ComputeFigures(records, {});
  EXPECT_LE(f.failures.size(), 33u);
  EXPECT_EQ(f.failures.at("other reasons"), 68);
  EXPECT_LE(f.failures.begin()->first.size(), 200u);
}

TEST(Figures, WhatWasNotRunIsNeitherDoneNorFailed) {
  RequestRecord never;
  never.index = 1;
  never.scheduled_ns = Ms(1'000'000);  // planned for long after the run was stopped
  const std::vector<RequestRecord> records = {Completed(0, 10, {20, 30}), never};
  const Figures f = ComputeFigures(records, {});
  EXPECT_EQ(f.not_run, 1);
  EXPECT_EQ(f.failed, 0);
  EXPECT_DOUBLE_EQ(f.duration_s, 0.02);
  EXPECT_EQ(f.send_lag_ms.n, 1);
}

TEST(Figures, OneTokenHasNoTpotAndNoneHasNoLatency) {
  const std::vector<RequestRecord> records = {Completed(0, 0, {10}), Completed(1, 0, {})};
  const Figures f = ComputeFigures(records, {});
  EXPECT_EQ(f.completed, 2);
  EXPECT_EQ(f.ttft_ms.n, 1);
  EXPECT_EQ(f.e2el_ms.n, 1);
  EXPECT_EQ(f.tpot_ms.n, 0);
  EXPECT_EQ(f.itl_ms.n, 0);
}

TEST(Figures, NothingAtAll) {
  const Figures f = ComputeFigures({}, {});
  EXPECT_EQ(f.requests, 0);
  EXPECT_EQ(f.output_throughput, 0);
  EXPECT_EQ(f.peak_concurrency, 0);
}

TEST(Figures, GoodputKeepsEveryPromise) {
  const std::vector<RequestRecord> records = {Completed(0, 0, {100, 120, 140}),   // keeps both
                                              Completed(1, 0, {300, 320, 340}),   // TTFT too long
                                              Completed(2, 0, {100, 400, 1000}),  // TPOT too long
                                              Completed(3, 0, {100}),             // no TPOT: keeps
                                              Failed(4, 0, Outcome::kRefused, "no")};
  const Promise promises[] = {{Promise::What::kTtft, 200}, {Promise::What::kTpot, 50}};
  const Figures f = ComputeFigures(records, promises);
  EXPECT_DOUBLE_EQ(f.goodput, 2 / 1.0);
  EXPECT_DOUBLE_EQ(f.good_share, 2 / 5.);
}

TEST(Figures, APromiseHoldsAtItsLimitAndForTheLargestGap) {
  const RequestRecord r = Completed(0, 0, {100, 150, 160});
  const Promise at_limit[] = {{Promise::What::kTtft, 100},
                              {Promise::What::kItl, 50},
                              {Promise::What::kE2el, 160},
                              {Promise::What::kTpot, 30}};
  EXPECT_TRUE(KeepsPromises(r, at_limit));
  const Promise gap[] = {{Promise::What::kItl, 49.9}};
  EXPECT_FALSE(KeepsPromises(r, gap));
  const Promise whole[] = {{Promise::What::kE2el, 159.9}};
  EXPECT_FALSE(KeepsPromises(r, whole));
}

TEST(Figures, PeakConcurrencyCountsAPlaceHandedOnOnce) {
  const std::vector<RequestRecord> records = {
      Completed(0, 10, {20, 30}), Completed(1, 10, {20, 40}),
      Completed(2, 30, {40, 50}),  // begins as the first ends
  };
  EXPECT_EQ(ComputeFigures(records, {}).peak_concurrency, 2);
}

// Two places. The first two begin at once and take long to their first token; the tail, when one
// request is left, is slower: neither is in the steady state.
TEST(Figures, SteadyThroughputLeavesTheStartAndTheTailOut) {
  std::vector<double> even, tail;
  for (int i = 1; i <= 100; ++i) even.push_back(1000 + 10 * i);
  tail = even;
  for (int i = 1; i <= 10; ++i) tail.push_back(2000 + 100 * i);
  const std::vector<RequestRecord> records = {Completed(0, 10, {900, 1000}),
                                              Completed(1, 10, {900, 990}), Completed(2, 990, even),
                                              Completed(3, 1000, tail)};
  const Figures f = ComputeFigures(records, {});
  EXPECT_DOUBLE_EQ(f.steady_s, 1);
  EXPECT_DOUBLE_EQ(f.steady_output_throughput, 200);
  EXPECT_DOUBLE_EQ(f.output_throughput, 214 / 2.99);
}

TEST(Figures, ThePeakSecondIsOfWholeSeconds) {
  // Seconds count from the first that was scheduled, at 500 ms: 2 tokens, then 3, then 1.
  const std::vector<RequestRecord> records = {Completed(0, 500, {600, 1499, 1500, 1600}),
                                              Completed(1, 900, {2499, 2500}),
                                              Failed(2, 0, Outcome::kCut, "broke")};
  EXPECT_DOUBLE_EQ(ComputeFigures(records, {}).peak_second_tokens, 3);
  EXPECT_DOUBLE_EQ(ComputeFigures({}, {}).peak_second_tokens, -1);
}

TEST(Figures, OneWaveHasNoSteadyState) {
  const std::vector<RequestRecord> records = {Completed(0, 5, {10, 20}), Completed(1, 5, {10, 20})};
  const Figures f = ComputeFigures(records, {});
  EXPECT_EQ(f.steady_s, 0);
  EXPECT_EQ(f.steady_output_throughput, -1);
}

// An open loop with one place: waiting for it is no concurrency.
TEST(Figures, MeanConcurrencyIsNeverAboveThePeak) {
  RequestRecord waits = Completed(1, 10, {120, 200});
  waits.sent_ns = Ms(100);
  const std::vector<RequestRecord> records = {Completed(0, 10, {50, 100}), waits};
  const Figures f = ComputeFigures(records, {});
  EXPECT_EQ(f.peak_concurrency, 1);
  EXPECT_DOUBLE_EQ(f.mean_concurrency, 1);
}

TEST(Figures, WhatWasInterruptedTakesNoTime) {
  RequestRecord cut = Completed(1, 0, {20, 500});
  cut.outcome = Outcome::kNotRun;
  cut.ended_ns = Ms(900);
  const std::vector<RequestRecord> records = {Completed(0, 0, {50, 100}), cut};
  EXPECT_DOUBLE_EQ(ComputeFigures(records, {}).duration_s, 0.1);
}

TEST(Figures, WrongLengthsAreCounted) {
  std::vector<RequestRecord> records = {Completed(0, 5, {10, 20}), Completed(1, 5, {10, 20})};
  records[1].wanted_output_tokens = 5;
  EXPECT_EQ(ComputeFigures(records, {}).wrong_lengths, 1);
}

TEST(Figures, ServersOwnQueueWhereItTells) {
  std::vector<RequestRecord> records = {Completed(0, 5, {10, 20}), Completed(1, 5, {10, 20})};
  records[0].server_queue_ms = 4;
  const Figures f = ComputeFigures(records, {});
  EXPECT_EQ(f.server_queue_ms.n, 1);
  EXPECT_DOUBLE_EQ(f.server_queue_ms.mean, 4);
}

TEST(Definitions, AreThere) {
  for (const Definition& d : Definitions()) {
    EXPECT_FALSE(d.name.empty());
    EXPECT_GT(d.text.size(), 20u) << d.name;
  }
  EXPECT_GE(Definitions().size(), 10u);
}

}  // namespace
}  // namespace vivace::load
