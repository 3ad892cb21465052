#include "load/client/metrics_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace vivace::load {
namespace {

using Field = double MetricsReading::*;

struct MetricName {
  std::string_view name;
  Field field;
  bool is_share = false;
};

// Newer names first: of several names for one field the first that is there counts.
constexpr MetricName kNames[] = {
    {"vllm:num_requests_running", &MetricsReading::running},
    {"sglang:num_running_reqs", &MetricsReading::running},
    {"llamacpp:requests_processing", &MetricsReading::running},
    {"tgi_batch_current_size", &MetricsReading::running},
    {"vllm:num_requests_waiting", &MetricsReading::waiting},
    {"sglang:num_queue_reqs", &MetricsReading::waiting},
    {"llamacpp:requests_deferred", &MetricsReading::waiting},
    {"tgi_queue_size", &MetricsReading::waiting},
    {"vllm:kv_cache_usage_perc", &MetricsReading::kv_usage, true},
    {"vllm:gpu_cache_usage_perc", &MetricsReading::kv_usage, true},
    {"sglang:token_usage", &MetricsReading::kv_usage, true},
    {"llamacpp:kv_cache_usage_ratio", &MetricsReading::kv_usage, true},
    {"vllm:num_preemptions_total", &MetricsReading::preemptions},
    {"vllm:num_preemptions", &MetricsReading::preemptions},
    {"vllm:prefix_cache_queries_total", &MetricsReading::prefix_queries},
    {"vllm:prefix_cache_queries", &MetricsReading::prefix_queries},
    {"vllm:gpu_prefix_cache_queries_total", &MetricsReading::prefix_queries},
    {"vllm:prefix_cache_hits_total", &MetricsReading::prefix_hits},
    {"vllm:prefix_cache_hits", &MetricsReading::prefix_hits},
    {"vllm:gpu_prefix_cache_hits_total", &MetricsReading::prefix_hits},
    {"sglang:cache_hit_rate", &MetricsReading::hit_rate, true},
};
constexpr size_t kNumNames = std::size(kNames);

struct Sum {
  double value = 0;
  int n = 0;
};

// "name{labels} value timestamp"; false: a comment, or no sample.
bool SplitSample(std::string_view line, std::string_view* name, double* value) {
  if (line.empty() || line[0] == '#') return false;
  const size_t end = line.find_first_of("{ \t");
  if (end == std::string_view::npos) return false;
  *name = line.substr(0, end);
  std::string_view rest = line.substr(end);
  if (rest[0] == '{') {  // a label's value may have a brace, in quotes
    bool quoted = false;
    size_t i = 1;
    for (; i < rest.size() && (quoted || rest[i] != '}'); ++i) {
      if (quoted && rest[i] == '\\') {
        ++i;
      } else if (rest[i] == '"') {
        quoted = !quoted;
      }
    }
    if (i >= rest.size()) return false;
    rest.remove_prefix(i + 1);
  }
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), *value);
  return read.ec == std::errc() && std::isfinite(*value);
}

}  // namespace

MetricsReading ParseMetrics(std::string_view text) {
  Sum sums[kNumNames];
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::string_view name;
    double value = 0;
    if (!SplitSample(line, &name, &value)) continue;
    for (size_t i = 0; i < kNumNames; ++i) {
      if (kNames[i].name != name) continue;
      sums[i].value += value;
      ++sums[i].n;
    }
  }
  MetricsReading reading;
  for (size_t i = 0; i < kNumNames; ++i) {
    if (sums[i].n == 0 || reading.*kNames[i].field >= 0) continue;
    reading.*kNames[i].field =
        std::max(0.0, kNames[i].is_share ? sums[i].value / sums[i].n : sums[i].value);
  }
  return reading;
}

ServerSample SampleOf(const MetricsReading& reading, const MetricsReading& start, double at_s) {
  ServerSample sample;
  sample.at_s = at_s;
  sample.running = reading.running;
  sample.waiting = reading.waiting;
  sample.kv_usage = reading.kv_usage;
  if (reading.preemptions >= 0) {
    sample.preemptions = std::max(0.0, reading.preemptions - std::max(0.0, start.preemptions));
  }
  const double queries = reading.prefix_queries - std::max(0.0, start.prefix_queries);
  const double hits = reading.prefix_hits - std::max(0.0, start.prefix_hits);
  if (reading.prefix_queries >= 0 && reading.prefix_hits >= 0 && queries > 0) {
    sample.prefix_hit_rate = std::clamp(hits / queries, 0.0, 1.0);
  } else {
    sample.prefix_hit_rate = reading.hit_rate;
  }
  return sample;
}

}  // namespace vivace::load
