// Runs made by hand and by seed, for the tests of figures and reports.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "load/figures.h"
#include "load/random.h"
#include "load/run_result.h"

namespace vivace::load::testing {

inline int64_t Ms(double ms) { return std::llround(ms * 1e6); }

// A completed request: scheduled and sent at `at`, one token at each of `chunks` (ms, absolute).
inline RequestRecord Completed(int32_t index, double at, const std::vector<double>& chunks) {
  RequestRecord r;
  r.index = index;
  r.scheduled_ns = r.sent_ns = Ms(at);
  for (double chunk : chunks) r.chunk_ns.push_back(Ms(chunk));
  if (!chunks.empty()) {
    r.first_ns = r.chunk_ns.front();
    r.last_ns = r.chunk_ns.back();
  }
  r.ended_ns = chunks.empty() ? r.sent_ns + 1 : r.last_ns;
  r.prompt_tokens = r.wanted_prompt_tokens = 10;
  r.output_tokens = r.wanted_output_tokens = static_cast<int32_t>(chunks.size());
  r.counted = true;
  r.outcome = Outcome::kCompleted;
  r.status = 200;
  r.finish_reason = "length";
  return r;
}

inline RequestRecord Failed(int32_t index, double at, Outcome outcome, std::string reason) {
  RequestRecord r;
  r.index = index;
  r.scheduled_ns = r.sent_ns = Ms(at);
  r.ended_ns = Ms(at + 1);
  r.outcome = outcome;
  r.reason = std::move(reason);
  return r;
}

struct RunShape {
  int32_t concurrency = 8, requests = 64, tokens = 24;
  double ttft_ms = 60, tpot_ms = 12, spread = 0.2;  // of a normal, relative
  uint64_t seed = 1, workload_seed = 0;
};

// A closed loop of made-up requests: each place takes the next when its last has ended.
inline RunResult MakeRun(const RunShape& shape) {
  Random random(shape.seed, 7);
  const auto vary = [&](double mean) {
    return mean * std::max(0.05, 1 + shape.spread * random.Normal());
  };
  RunResult run;
  std::vector<double> free(static_cast<size_t>(shape.concurrency), 1000);
  for (int32_t i = 0; i < shape.requests; ++i) {
    auto place = free.begin();
    for (auto it = free.begin(); it != free.end(); ++it) place = *it < *place ? it : place;
    std::vector<double> chunks = {*place + vary(shape.ttft_ms)};
    for (int32_t t = 1; t < shape.tokens; ++t) {
      const bool stall = random.Below(60) == 0;
      chunks.push_back(chunks.back() + vary(shape.tpot_ms) * (stall ? 6 : 1));
    }
    run.records.push_back(Completed(i, *place, chunks));
    *place = chunks.back();
  }
  run.label = "c=" + std::to_string(shape.concurrency);
  run.base_url = "http://127.0.0.1:8000";
  run.endpoint = "/v1/completions";
  run.model = "SmolLM2-135M-Instruct";
  run.workload = "random 256/24";
  run.seed = shape.workload_seed;
  run.max_concurrency = shape.concurrency;
  run.started_unix_ms = 1'796'000'000'000;
  run.client = {.cpu_share = 0.03, .loop_lag_p99_ms = 0.2, .bottleneck = false, .why = ""};
  run.environment = {{"cpu", "a processor"}, {"threads", "2"}};
  run.figures = ComputeFigures(run.records, run.promises);
  return run;
}

}  // namespace vivace::load::testing
