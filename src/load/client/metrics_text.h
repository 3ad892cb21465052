// What of a server's /metrics (Prometheus text) a report shows, under the names that vLLM, Vivace,
// SGLang, llama-server and TGI give it. Pure; one pass over the text.
#pragma once

#include <string_view>

#include "load/run_result.h"

namespace vivace::load {

// -1: not told. Counts of several engines or models are added up, shares are averaged.
struct MetricsReading {
  double running = -1, waiting = -1, kv_usage = -1;
  double preemptions = -1, prefix_queries = -1, prefix_hits = -1;  // since the server's start
  double hit_rate = -1;                                            // where only a rate is told

  bool empty() const { return running < 0 && waiting < 0 && kv_usage < 0; }
};

MetricsReading ParseMetrics(std::string_view text);

// A reading as of the run: counters less those of its start.
ServerSample SampleOf(const MetricsReading& reading, const MetricsReading& start, double at_s);

}  // namespace vivace::load
