// What a server says of itself: its models, its version. Asked before a run.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "load/client/fetch.h"

namespace vivace::load {

// The only model of /v1/models. Where there are several, the sentence says to give --model, and
// which there are. Of a server that may yet come the error's reason is no_answer or not_ready.
Result<std::string> OnlyModel(Fetcher* fetch);

// "server_version", "server_model_owner" and "server_max_model_len", as far as it
// tells; for RunResult::environment.
std::map<std::string, std::string> ServerFacts(Fetcher* fetch, const std::string& model);

// The client's: processor, cores, memory, kernel, program. No names of machines or users.
std::map<std::string, std::string> ClientFacts();

}  // namespace vivace::load
