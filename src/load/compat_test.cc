#include "load/compat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "load/testing/make_run.h"

namespace vivace::load {
namespace {

using testing::Completed;
using testing::Ms;

// Two requests that differ where the tools do: sent 5 ms late, and 5 tokens in 3 chunks.
RunResult TwoRequests() {
  RunResult run;
  RequestRecord late = Completed(0, 1000, {1055, 1075, 1115});
  late.sent_ns = Ms(1005);
  RequestRecord coalesced = Completed(1, 1000, {1100, 1140, 1180});
  coalesced.chunk_tokens = {1, 2, 2};
  coalesced.output_tokens = 5;
  coalesced.ended_ns = Ms(1205);  // the end of the stream comes after the last content
  run.records = {late, coalesced, testing::Failed(2, 1000, Outcome::kRefused, "no")};
  run.promises = {{Promise::What::kTtft, 50}};
  run.figures = ComputeFigures(run.records, run.promises);
  return run;
}

double Column(std::string_view tool, std::string_view name) {
  const auto found = FindCompatTool(tool);
  EXPECT_TRUE(found.has_value()) << tool;
  for (const CompatColumn& column : (*found)->columns(TwoRequests())) {
    if (column.name == name) return column.value;
  }
  ADD_FAILURE() << tool << " has no " << name;
  return NAN;
}

TEST(Compat, Vllm) {
  EXPECT_DOUBLE_EQ(Column("vllm", "completed"), 2);
  EXPECT_DOUBLE_EQ(Column("vllm", "duration"), 0.205);
  EXPECT_DOUBLE_EQ(Column("vllm", "mean_ttft_ms"), (50 + 100) / 2.);  // from when it was sent
  EXPECT_DOUBLE_EQ(Column("vllm", "mean_tpot_ms"), (30 + 20) / 2.);
  EXPECT_DOUBLE_EQ(Column("vllm", "mean_itl_ms"), (20 + 40 + 40 + 40) / 4.);
  EXPECT_DOUBLE_EQ(Column("vllm", "mean_e2el_ms"), (110 + 180) / 2.);
  EXPECT_DOUBLE_EQ(Column("vllm", "median_ttft_ms"), 75);
  EXPECT_DOUBLE_EQ(Column("vllm", "p99_ttft_ms"), 50 + 0.99 * 50);
  EXPECT_DOUBLE_EQ(Column("vllm", "output_throughput"), 8 / 0.205);
  EXPECT_DOUBLE_EQ(Column("vllm", "request_goodput"), 1 / 0.205);
}

// As vLLM's chat endpoint streams: a role, the text, a finish_reason. Its client counts all of
// them.
TEST(Compat, VllmCountsEventsWithoutText) {
  RunResult run;
  RequestRecord r = Completed(0, 1000, {1050, 1060});
  r.empty_ns = {Ms(1010), Ms(1065)};
  r.ended_ns = Ms(1070);
  run.records = {r, testing::Failed(1, 1100, Outcome::kCut, "no")};
  run.records[1].ended_ns = Ms(1200);
  run.started_ns = Ms(900);
  run.figures = ComputeFigures(run.records, {});
  const auto columns = (*FindCompatTool("vllm"))->columns(run);
  const auto value = [&](std::string_view name) {
    for (const CompatColumn& column : columns) {
      if (column.name == name) return column.value;
    }
    return static_cast<double>(NAN);
  };
  EXPECT_DOUBLE_EQ(value("mean_ttft_ms"), 10);
  EXPECT_DOUBLE_EQ(value("mean_itl_ms"), (40 + 10 + 5) / 3.);
  EXPECT_DOUBLE_EQ(value("mean_e2el_ms"), 65);
  EXPECT_DOUBLE_EQ(value("mean_tpot_ms"), 55);
  EXPECT_DOUBLE_EQ(value("duration"), 0.3);
  EXPECT_DOUBLE_EQ(run.figures.ttft_ms.mean, 50);
}

// A server that claims what no memory holds, in two events.
TEST(Compat, TokensThatAreOnlyClaimedAreNotMade) {
  RunResult run;
  RequestRecord r = Completed(0, 0, {10, 30});
  r.chunk_tokens = {1, 2'000'000'000};
  r.output_tokens = 2'000'000'001;
  run.records = {r};
  run.figures = ComputeFigures(run.records, {});
  for (const CompatTool& tool : CompatTools()) EXPECT_FALSE(tool.columns(run).empty());
}

TEST(Compat, Sglang) {
  // The first has no counts: its gaps are of chunks. The second's gaps are shared by two tokens.
  EXPECT_DOUBLE_EQ(Column("sglang", "mean_itl_ms"), (20 + 40 + 20 * 4) / 6.);
  EXPECT_DOUBLE_EQ(Column("sglang", "mean_e2e_latency_ms"), (110 + 205) / 2.);
  EXPECT_DOUBLE_EQ(Column("sglang", "concurrency"), (0.110 + 0.205) / 0.205);
}

TEST(Compat, Mlc) {
  EXPECT_DOUBLE_EQ(Column("mlc", "inter_token_latency_s.mean"), (0.110 / 3 + 0.205 / 5) / 2);
  EXPECT_DOUBLE_EQ(Column("mlc", "time_per_output_token_s.mean"), (0.060 / 2 + 0.105 / 4) / 2);
  EXPECT_DOUBLE_EQ(Column("mlc", "time_to_first_token_s.quantiles.p50"), 0.075);
  EXPECT_DOUBLE_EQ(Column("mlc", "num_total_requests"), 3);
  // pandas divides by n - 1.
  EXPECT_NEAR(Column("mlc", "time_to_first_token_s.stddev"), 0.05 / std::sqrt(2), 1e-12);
}

TEST(Compat, Guidellm) {
  EXPECT_DOUBLE_EQ(Column("guidellm", "inter_token_latency_ms.mean"), (30 + 20) / 2.);
  EXPECT_DOUBLE_EQ(Column("guidellm", "time_per_output_token_ms.mean"), (110 / 3. + 180 / 5.) / 2);
  EXPECT_DOUBLE_EQ(Column("guidellm", "request_latency.mean"), (0.110 + 0.205) / 2);
}

TEST(Compat, Aiperf) {
  EXPECT_DOUBLE_EQ(Column("aiperf", "inter_token_latency.avg"), 25);
  EXPECT_DOUBLE_EQ(Column("aiperf", "inter_chunk_latency.avg"), 35);
  EXPECT_DOUBLE_EQ(Column("aiperf", "time_to_second_token.avg"), 30);
  EXPECT_DOUBLE_EQ(Column("aiperf", "output_token_throughput_per_user.avg"),
                   (1000 / 30. + 1000 / 20.) / 2);
  EXPECT_DOUBLE_EQ(Column("aiperf", "request_latency.max"), 180);
}

TEST(Compat, WithoutAnythingCompletedThereIsNothing) {
  for (const CompatTool& tool : CompatTools()) {
    for (const CompatColumn& column : tool.columns(RunResult{})) {
      EXPECT_TRUE(std::isnan(column.value) || column.value == 0) << tool.name << column.name;
      EXPECT_FALSE(column.definition.empty()) << tool.name << column.name;
    }
  }
}

TEST(Compat, UnknownToolsAreNamed) {
  const auto found = FindCompatTool("locust");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().message,
            "--compat is 'locust'; there are vllm, sglang, mlc, guidellm, aiperf");
}

}  // namespace
}  // namespace vivace::load
