// Offline throughput and latency for people and for programs: vLLM's lines and JSON members, and
// what share of the machine's limit was reached. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/offline.h"
#include "load/figures.h"

namespace vivace::bench {

// The least time the steps could have taken, and how long they took.
struct OfflineLimit {
  double least_s = 0, steps_s = 0;
  double fraction() const { return steps_s > 0 ? least_s / steps_s : 0; }
};
// An error above kMostFraction: the limit was measured wrongly.
Status CheckFraction(const OfflineLimit& limit);

struct ThroughputReport {
  std::string model, isa, kv_dtype, workload;
  int threads = 0;
  int32_t max_num_seqs = 0, max_num_batched_tokens = 0;
  double elapsed_s = 0;
  load::Figures figures;
  EngineUse use;
  std::optional<OfflineLimit> limit = {};
};
std::string Text(const ThroughputReport& report);
std::string Json(const ThroughputReport& report);

struct LatencyReport {
  std::string model, isa, kv_dtype;
  int threads = 0;
  int32_t input_len = 0, output_len = 0, batch_size = 0;
  std::vector<double> latencies = {};  // seconds, of each measured iteration
  EngineUse use = {};                  // of the last
  std::optional<OfflineLimit> limit = {};
};
std::string Text(const LatencyReport& report);
std::string Json(const LatencyReport& report);

}  // namespace vivace::bench
