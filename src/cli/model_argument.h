// The one place where a model on a command line, a path or a hub's "org/name[:file]", becomes a
// path to open; and the flags that go with it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"
#include "hub/hub_config.h"
#include "hub/model_name.h"

namespace vivace::cli {

struct HubOptions {
  hub::HubConfig config;  // from the environment
  std::string revision = "main";
  HubOptions();
};

// --revision and --offline; for every command that takes a model.
std::vector<Flag> HubFlags(HubOptions* options);

struct ModelArgument {
  std::string path;
  std::string name;  // of the hub: "org/name"; empty for a path
};

// What exists is a path, whatever it looks like. Else a model's name on the hub is looked up in the
// cache, and pulled (with a bar on a terminal) if it is not there. Anything else stays as it is,
// for its reader to refuse.
Result<ModelArgument> ResolveModel(const std::string& argument, const HubOptions& options);

// For commands of one model of the hub: its name, or the exit code, as ParseWords has it.
tl::expected<hub::ModelName, int> ParseModelWord(const Command& command,
                                                 std::span<const std::string> args);

}  // namespace vivace::cli
