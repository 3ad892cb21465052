// Runs of several servers in one report: which run is of which server, and what to call it. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "load/run_result.h"

namespace vivace::load {

// Names each run's server in `server_name` where the runs are of more than one: by who owns its
// model (as /v1/models has it), with the address where that does not tell them apart.
void TellServersApart(std::vector<RunResult>* runs);

struct ServerRuns {
  std::string name;          // empty: there is one server
  std::string short_name;    // for legends and columns: as long as tells them apart
  std::vector<size_t> runs;  // their indexes, in order
};
std::vector<ServerRuns> ByServer(const std::vector<RunResult>& runs);

// "llamacpp c=8"; "c=8" where there is one server.
std::string FullLabel(const RunResult& run);

// The same of each run for tables and legends: of a long server's name the middle is left out.
std::vector<std::string> ShortLabels(const std::vector<RunResult>& runs);

}  // namespace vivace::load
