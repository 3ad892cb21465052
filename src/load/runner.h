// One measured run: warm-ups, the run, the drain, and what it leaves.
//
// Runs on the calling thread until it is over; nothing is generated, read from disk or printed
// while it measures but what `on_progress` does, a few times a second. Errors are of the start (no
// server, flags that do not go together, "interrupted" before it began); what goes wrong with a
// request is in its record.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "load/client/request_body.h"
#include "load/client/target.h"
#include "load/run_result.h"
#include "load/workload.h"

namespace vivace::load {

// What all runs of a command share.
struct LoadSettings {
  Target target;
  BodyOptions body;                         // as Prepare returned it
  double ready_timeout_s = 0;               // 0: the first answer decides
  double request_timeout_s = 6 * 3'600;     // vLLM's
  const std::atomic<bool>* stop = nullptr;  // ends a run early, with what there is; may be null
};

struct LiveFigures {
  int64_t completed = 0, failed = 0, total = 0;
  int32_t running = 0;
  double output_per_s = 0;  // tokens, over the last moments
  double elapsed_s = 0;
};

struct RunOptions : LoadPoint {  // of it only max_concurrency is heeded; the rest is for reports
  std::string label;
  std::vector<double> arrivals_s;  // of each chain (ChainsOf), ascending; empty: a closed loop,
                                   // or the times of a trace
  int32_t num_warmups = 0;         // sent and ended before the run begins
  double drain_timeout_s = 0;      // after the last request was due; 0: until all have ended
  bool sample_server = true;
  std::vector<Promise> promises;
  std::map<std::string, std::string> environment;
  std::function<void(const LiveFigures&)> on_progress;  // may be empty
};

// Waits for the server and settles what it takes: returns the body options for the runs.
Result<BodyOptions> Prepare(const LoadSettings& settings, const PlannedRequest& like);

Result<RunResult> Run(const LoadSettings& settings, const RunOptions& options,
                      const Workload& workload);

// Whether the client slowed the run down, and a sentence that says how. Pure.
struct ClientTimes {
  double cpu_share = 0, ttft_p50_ms = 0;
  double loop_lag_p99_ms = 0;             // of its beats: a share of the time
  double send_lag_p99_ms = 0;             // of requests in an open loop
  double wanted_rate = 0, sent_rate = 0;  // of requests in an open loop; 0: not to be judged
  int64_t connections = 0, waited = 0;    // there may be so many; requests that waited for one
};
ClientLoad JudgeClient(const ClientTimes& facts);

}  // namespace vivace::load
