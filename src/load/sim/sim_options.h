// What a simulated server does with time, and what it does wrong.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace vivace::load {

// Of the requests for completions in the order they come in, from 1: every n-th has the fault; 0:
// none has. A request has at most one, the first of this list that it is due for.
struct SimFaults {
  int32_t error_every = 0;    // HTTP 500
  int32_t cut_every = 0;      // the connection is reset after half of the tokens
  int32_t garbage_every = 0;  // events that are no JSON after half of the tokens
  int32_t stall_every = 0;    // no token for stall_ms after half of them, then it goes on
  int32_t endless_every = 0;  // goes on past max_tokens for ever
  double stall_ms = 1'000;
};

struct SimOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;  // 0: any
  std::string uds = {};  // a Unix socket instead
  std::string model = "simulated";

  double ttft_ms = 0;               // of any request, once it runs
  double prefill_ms_per_token = 0;  // and for each token of its prompt
  double itl_ms = 0;                // between its tokens
  double itl_ms_per_running = 0;    // and for each other request that runs
  int32_t max_running = 0;          // the others wait, first come first served; 0: all run
  int32_t chunk_tokens = 1;         // tokens an event, but the first, which brings one
  double slow_start_s = 0;          // answers 503 for so long
  bool continuous_usage = true;     // false: a 400 that names the parameter
  bool null_server = false;         // answers whole at once, as fast as it can
  SimFaults faults = {};
};

// In range, or the sentence with the flag's name.
Status CheckSim(const SimOptions& options);

}  // namespace vivace::load
