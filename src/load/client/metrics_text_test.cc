#include "load/client/metrics_text.h"

#include <gtest/gtest.h>

namespace vivace::load {
namespace {

TEST(MetricsText, VllmAndVivace) {
  const MetricsReading r = ParseMetrics(
      "# HELP vllm:num_requests_running x\n"
      "vllm:num_requests_running{engine=\"0\",model_name=\"a}b\\\"\"} 3.0\n"
      "vllm:num_requests_running{engine=\"1\"} 2\n"
      "vllm:num_requests_waiting 7\nvllm:num_requests_waiting_by_reason{reason=\"x\"} 99\n"
      "vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.75\n"
      "vllm:gpu_cache_usage_perc 0.9\n"
      "vllm:num_preemptions_total 4\nvllm:prefix_cache_queries_total 100\n"
      "vllm:prefix_cache_hits_total 40 1700000000\nvllm:broken\nvllm:num_requests_waiting NaN");
  EXPECT_EQ(r.running, 5);
  EXPECT_EQ(r.waiting, 7);
  EXPECT_EQ(r.kv_usage, 0.5);
  EXPECT_EQ(r.preemptions, 4);
  EXPECT_EQ(r.prefix_queries, 100);
  EXPECT_EQ(r.prefix_hits, 40);
}

TEST(MetricsText, OtherServers) {
  const MetricsReading llama = ParseMetrics(
      "llamacpp:requests_processing 2\nllamacpp:requests_deferred 1\n"
      "llamacpp:kv_cache_usage_ratio 0.125\n");
  EXPECT_EQ(llama.running, 2);
  EXPECT_EQ(llama.waiting, 1);
  EXPECT_EQ(llama.kv_usage, 0.125);
  EXPECT_EQ(ParseMetrics("sglang:num_running_reqs{a=\"b\"} 4").running, 4);
  EXPECT_TRUE(ParseMetrics("python_gc_objects_collected_total 1\n").empty());
  EXPECT_TRUE(ParseMetrics("<html>").empty());
}

TEST(MetricsText, CountersAreThoseOfTheRun) {
  MetricsReading start, now;
  start.preemptions = 4;
  start.prefix_queries = 100;
  start.prefix_hits = 90;
  now = {.running = 1, .preemptions = 6, .prefix_queries = 300, .prefix_hits = 140};
  const ServerSample sample = SampleOf(now, start, 2.5);
  EXPECT_EQ(sample.at_s, 2.5);
  EXPECT_EQ(sample.running, 1);
  EXPECT_EQ(sample.waiting, -1);
  EXPECT_EQ(sample.preemptions, 2);
  EXPECT_EQ(sample.prefix_hit_rate, 0.25);
  EXPECT_EQ(SampleOf(start, start, 0).prefix_hit_rate, -1);
}

}  // namespace
}  // namespace vivace::load
