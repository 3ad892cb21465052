// The flags of `vivace serve` and where each one goes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "cli/flags.h"
#include "cli/model_argument.h"
#include "engine/config.h"
#include "server/server.h"

namespace vivace::cli {

struct ServeOptions {
  EngineConfig engine;
  HubOptions hub;
  server::ServerConfig server;
  std::string chat_template;  // path; empty: the model's own
  log::Format log_format = log::Format::kText;
};

// Flags that shape the engine, shared by `serve` and `chat`.
std::vector<Flag> EngineFlags(EngineConfig* config);
// Those of them that are named.
std::vector<Flag> EngineFlags(EngineConfig* config, std::span<const std::string_view> names);

// Where packed weights are kept. Sets the default: the user's cache folder.
std::vector<Flag> WeightCacheFlags(EngineConfig* config);

Command ServeCommand(ServeOptions* options);

}  // namespace vivace::cli
