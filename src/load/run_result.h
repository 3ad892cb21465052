// Everything one measured run leaves: the input of every report and of `compare`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "load/figures.h"
#include "load/load_point.h"
#include "load/record.h"

namespace vivace::load {

// A reading of the server's own /metrics during the run; -1: it does not tell.
struct ServerSample {
  double at_s = 0;                                   // after the run's start
  double running = -1, waiting = -1, kv_usage = -1;  // a share, 0 to 1
  double preemptions = -1, prefix_hit_rate = -1;     // since the run's start
};

struct ClientLoad {
  double cpu_share = 0;        // of one core, of the thread that sends and receives
  double loop_lag_p99_ms = 0;  // how late timers ran
  bool bottleneck = false;     // the run is invalid: the client slowed it down
  std::string why;
};

struct RunResult : LoadPoint {
  std::string label;        // "c=8", "rate 4/s"
  std::string server_name;  // where runs of several servers stand together (report/servers.h)
  std::string base_url, endpoint, model;
  std::string workload;  // its name
  uint64_t seed = 0;
  int64_t started_unix_ms = 0;
  int64_t started_ns = 0;  // on the records' clock, before the first arrival's gap; 0: not known
  double shared_prompts =
      1;                 // of the prompts' tokens, those that stand in one before; 1: not known
  bool partial = false;  // ended early; `note` says why
  std::string note;
  std::map<std::string, std::string> environment;  // client's and, where it tells, server's
  std::vector<Promise> promises;
  std::vector<RequestRecord> records;
  Figures figures;
  ClientLoad client;
  std::vector<ServerSample> server;
};

}  // namespace vivace::load
