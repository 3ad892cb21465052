#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "server/metrics/registry.h"
#include "server/metrics/server_metrics.h"
#include "server/testing/prometheus.h"

namespace vivace::server {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using testing::PrometheusPage;

TEST(MetricsRegistry, WritesTheFormatByteForByte) {
  static constexpr double kBounds[] = {0.5, 1};
  MetricsRegistry registry(Labels{{"model_name", "m\"x\\y\nz"}});
  registry.AddCounter("a_total", "Help\nwith \\.", {{"reason", "r"}})->Add(3);
  registry.AddGauge("g", "G.")->Set(0.25);
  Histogram* histogram = registry.AddHistogram("h", "H.", kBounds);
  histogram->Observe(0.5);
  histogram->Observe(0.75, 2);
  histogram->Observe(7);
  EXPECT_EQ(registry.Render(),
            R"(# HELP a_total Help\nwith \\.
# TYPE a_total counter
a_total{model_name="m\"x\\y\nz",reason="r"} 3
# HELP g G.
# TYPE g gauge
g{model_name="m\"x\\y\nz"} 0.25
# HELP h H.
# TYPE h histogram
h_bucket{model_name="m\"x\\y\nz",le="0.5"} 1
h_bucket{model_name="m\"x\\y\nz",le="1"} 3
h_bucket{model_name="m\"x\\y\nz",le="+Inf"} 4
h_sum{model_name="m\"x\\y\nz"} 9
h_count{model_name="m\"x\\y\nz"} 4
)");
}

TEST(MetricsRegistry, CountersNeverFall) {
  Counter counter;
  counter.Mirror(5);
  counter.Mirror(3);
  EXPECT_EQ(counter.value(), 5);
}

TEST(ServerMetrics, PageIsValidIdleAndBusy) {
  ServerMetrics metrics("m\"x\\y\nz");
  EXPECT_THAT(PrometheusPage(metrics.Render({})).problems(), IsEmpty());

  metrics.time_to_first_token->Observe(0.02);
  metrics.inter_token_latency->Observe(0.0007, 5);
  metrics.CountFinish(FinishLabel::kLength);
  metrics.CountRejection(Rejection::kOverloaded);
  metrics.CountResponse(503);
  metrics.CountResponse(999);
  EngineStats stats;
  stats.running = 2;
  stats.blocks_total = 8;
  stats.blocks_used = 2;
  stats.generation_tokens = 17;
  stats.step_ns = 30'000'000;
  stats.kernel_ns = 20'000'000;
  stats.sample_ns = 8'000'000;
  stats.step_buckets[2] = 3;
  stats.step_buckets.back() = 1;
  const PrometheusPage page(metrics.Render(stats));
  EXPECT_THAT(page.problems(), IsEmpty());
  EXPECT_EQ(page.Value("vllm:num_requests_running", {{"model_name", "m\"x\\y\nz"}}), 2);
  EXPECT_EQ(page.Value("vllm:kv_cache_usage_perc"), 0.25);
  EXPECT_EQ(page.Value("vllm:generation_tokens_total"), 17);
  EXPECT_EQ(page.Value("vllm:request_success_total", {{"finished_reason", "length"}}), 1);
  EXPECT_EQ(page.Value("vivace:requests_rejected_total", {{"reason", "overloaded"}}), 1);
  EXPECT_EQ(page.Value("vivace:http_responses_total", {{"status", "5xx"}}), 1);
  EXPECT_EQ(page.Value("vllm:inter_token_latency_seconds_bucket", {{"le", "0.0005"}}), 0);
  EXPECT_EQ(page.Value("vllm:inter_token_latency_seconds_bucket", {{"le", "0.001"}}), 5);
  EXPECT_EQ(page.Value("vivace:engine_step_seconds_bucket", {{"le", "0.002"}}), 0);
  EXPECT_EQ(page.Value("vivace:engine_step_seconds_bucket", {{"le", "0.004"}}), 3);
  EXPECT_EQ(page.Value("vivace:engine_step_seconds_count"), 4);
  EXPECT_NEAR(page.Value("vivace:engine_step_seconds_sum").value_or(0), 0.03, 1e-9);
  EXPECT_EQ(page.Value("vivace:engine_step_microseconds_total", {{"part", "other"}}), 2'000);
  EXPECT_GT(page.Value("process_resident_memory_bytes"), 1e6);
}

TEST(ServerMetrics, RendersWhileOthersCount) {
  ServerMetrics metrics("m");
  std::thread writer([&] {
    for (int i = 0; i < 20'000; ++i) metrics.e2e_latency->Observe(i * 0.001);
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(PrometheusPage(metrics.Render({})).problems(), IsEmpty());
  }
  writer.join();
  EXPECT_EQ(PrometheusPage(metrics.Render({})).Value("vllm:e2e_request_latency_seconds_count"),
            20'000);
}

// The checker itself must see what is wrong.
TEST(PrometheusPage, SeesBadPages) {
  const char* head = "# HELP a_total A.\n# TYPE a_total counter\n";
  for (const char* bad :
       {"a_total{x=\"1\"} 1", "a_total{x=\"1\"} NaN\n", "a_total{x=\"a\"b\"} 1\n", "b_total 1\n",
        "a_total -1\n", "a_total{x=\"\\q\"} 1\n", "a_total  1\n", "a_total 1\na_total 1\n", "\n"}) {
    EXPECT_THAT(PrometheusPage(std::string(head) + bad).problems(), Not(IsEmpty())) << bad;
  }
  EXPECT_THAT(PrometheusPage(std::string(head) + "a_total{x=\"1\"} 1\n").problems(), IsEmpty());
}

}  // namespace
}  // namespace vivace::server
