// `vivace list` and `vivace rm`.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/flags.h"
#include "hub/cache.h"

namespace vivace::cli {
namespace {

struct ListOptions {
  hub::HubConfig config = HubFromEnvironment();
  bool json = false;
};

Command ListCommand(ListOptions* options) {
  return {.name = "list",
          .positional = "",
          .summary = "Shows the complete models in Hugging Face's cache, whoever put them there.",
          .details =
              "Their names are what serve, chat, inspect and rm take. HF_HOME and HF_HUB_CACHE "
              "say where\nthe cache is.",
          .flags = {{"json", "", "off", "one JSON array instead of a table",
                     StoreSwitch(&options->json)}}};
}

std::string Day(int64_t seconds) {
  const std::time_t time = seconds;
  return fmt::format("{:%Y-%m-%d}", fmt::localtime(time));
}

void PrintTable(const std::vector<hub::CachedModel>& models) {
  size_t width = 5;
  for (const hub::CachedModel& model : models) width = std::max(width, model.name.size());
  fmt::print("{:<{}}  {:>10}  {:<10}  {}\n", "MODEL", width, "SIZE", "CHANGED", "REVISION");
  for (const hub::CachedModel& model : models) {
    fmt::print("{:<{}}  {:>10}  {:<10}  {}\n", model.name, width, FormatBytes(model.bytes),
               Day(model.modified_s),
               model.revision.empty() ? model.commit.substr(0, 12) : model.revision);
  }
}

void PrintModelsJson(const std::vector<hub::CachedModel>& models) {
  boost::json::array rows;
  for (const hub::CachedModel& model : models) {
    rows.push_back({{"name", model.name},
                    {"bytes", model.bytes},
                    {"changed", model.modified_s},
                    {"revision", model.revision},
                    {"commit", model.commit}});
  }
  fmt::print("{}\n", boost::json::serialize(rows));
}

}  // namespace

int List(std::span<const std::string> args) {
  ListOptions options;
  const auto words =
      ParseWords(ListCommand(&options), args, {0, 0, "every model of the cache is listed"});
  if (!words) return words.error();
  const auto models = hub::ListModels(options.config.cache);
  if (options.json) {
    PrintModelsJson(models);
  } else if (models.empty()) {
    fmt::print(stderr, "no models in {} (`vivace pull ORG/NAME` gets one)\n", options.config.cache);
  } else {
    PrintTable(models);
  }
  return 0;
}

int Remove(std::span<const std::string> args) {
  const hub::HubConfig config = HubFromEnvironment();
  const Command command = {
      .name = "rm",
      .positional = "ORG/NAME[:FILE]",
      .summary = "Removes a model from Hugging Face's cache: all of it, or one file.",
      .details = "Examples:\n  vivace rm org/name\n  vivace rm org/name-GGUF:Q8_0",
      .flags = {}};
  const auto name = ParseModelWord(command, args);
  if (!name) return name.error();
  const auto freed = hub::RemoveModel(config.cache, *name);
  if (!freed) return Refuse(freed.error());
  fmt::print("removed {}, {}\n", name->text(), FormatBytes(*freed));
  return 0;
}

}  // namespace vivace::cli
