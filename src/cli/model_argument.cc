#include "cli/model_argument.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/environment.h"
#include "cli/pull_progress.h"
#include "hub/pull.h"

namespace vivace::cli {

HubOptions::HubOptions() : config(HubFromEnvironment()) {}

std::vector<Flag> HubFlags(HubOptions* options) {
  return {{"revision", "REV", options->revision, "branch, tag or commit of a model on the hub",
           StoreText(&options->revision)},
          {"offline", "", options->config.offline ? "on" : "off",
           "never ask the hub; take models from the cache", StoreSwitch(&options->config.offline)}};
}

Result<ModelArgument> ResolveModel(const std::string& argument, const HubOptions& options) {
  std::error_code error;
  const auto name = hub::ParseModelName(argument);
  if (std::filesystem::exists(argument, error) || !name) return ModelArgument{argument, ""};
  const hub::PullRequest request{.name = *name, .revision = options.revision};
  auto found = hub::FindInCache(options.config, request);
  // What the cache can't tell apart, the person must; the hub would not know better.
  if (!found && !options.config.offline && found.error().reason != "several_models") {
    PullProgress progress(argument);
    found = hub::Pull(options.config, request, {.on_progress = progress.Hook(), .stop = {}});
  }
  if (!found) return tl::unexpected<Error>(std::move(found.error()));
  return ModelArgument{found->path, name->repo};
}

}  // namespace vivace::cli
