#include "cli/model_argument.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/commands.h"
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

tl::expected<hub::ModelName, int> ParseModelWord(const Command& command,
                                                 std::span<const std::string> args) {
  constexpr std::string_view kWanted = "give one model as ORG/NAME[:FILE]";
  const auto words = ParseWords(command, args, {1, 1, kWanted});
  if (!words) return tl::unexpected(words.error());
  if (auto name = hub::ParseModelName((*words)[0])) return std::move(*name);
  fmt::print(stderr, "vivace: '{}' is no model's name; {} (`vivace {} --help`)\n", (*words)[0],
             kWanted, command.name);
  return tl::unexpected(kExitUsage);
}

}  // namespace vivace::cli
