// The flags of `vivace serve` that say who may reach it, and how: keys, origins, TLS, socket, size
// of bodies. Names are vLLM's where it has one.
#pragma once

#include <vector>

#include "cli/flags.h"
#include "server/server.h"

namespace vivace::cli {

// They store into `config`, which outlives them.
std::vector<Flag> AccessFlags(server::ServerConfig* config);

// Keys from the environment (cli/environment.h), for what no flag gave.
void AddKeysOfEnvironment(server::KeyOptions* keys);

}  // namespace vivace::cli
