#include "cli/traffic_flags.h"

#include <algorithm>

#include "base/limits.h"
#include "cli/value_flags.h"

namespace vivace::cli {
namespace {

Flag WithAlias(Flag flag, std::string alias) {
  flag.aliases.push_back(std::move(alias));
  return flag;
}

Status StoreDataset(const std::string& text, load::DatasetOptions* options) {
  std::vector<std::string> names;
  for (const load::DatasetKind& kind : load::Datasets()) names.emplace_back(kind.name);
  if (std::ranges::count(names, text) == 0)
    return BadValue("dataset-name", text, fmt::format("{}", fmt::join(names, ", ")));
  options->name = text;
  return {};
}

}  // namespace

std::vector<Flag> OfflineDatasetFlags(load::DatasetOptions* options) {
  load::DatasetOptions& o = *options;
  constexpr double kMostLen = limits::kMaxPromptTokens;
  std::vector<Flag> flags = {
      {"dataset-name", "NAME", o.name, "what is sent",
       [options](const std::string& text) { return StoreDataset(text, options); }},
      {"dataset-path", "FILE", "", "file of a dataset that is one", StoreText(&o.path)},
      WithAlias(
          CountFlag("input-len", "tokens of a prompt", &o.input_len, 1, limits::kMaxPromptTokens),
          "random-input-len"),
      WithAlias(CountFlag("output-len", "tokens of an answer", &o.output_len, 1,
                          limits::kMaxPromptTokens),
                "random-output-len"),
      NumberFlag("input-len-std", "N", "standard deviation of the prompts' lengths",
                 &o.input_len_std, 0, kMostLen),
      NumberFlag("output-len-std", "N", "standard deviation of the answers' lengths",
                 &o.output_len_std, 0, kMostLen),
      WithAlias(NumberFlag("random-range-ratio", "R",
                           "lengths are uniform in length * [1 - R, 1 + R]", &o.range_ratio, 0, 1),
                "range-ratio"),
      WithAlias(CountFlag("random-prefix-len", "tokens that all prompts share, in front",
                          &o.prefix_len, 0, limits::kMaxPromptTokens),
                "prefix-len"),
      CountFlag("num-prefixes", "different ones of these", &o.num_prefixes, 1,
                limits::kMaxPromptTokens),
      CountFlag("turns", "turns of a conversation", &o.turns, 1, 1024),
  };
  const auto store = flags[3].store;  // an answer's length that was asked for goes before a file's
  flags[3].store = [options, store](const std::string& text) -> Status {
    options->output_len_given = true;
    return store(text);
  };
  return flags;
}

std::vector<Flag> OfflineSamplingFlags(float* temperature, bool* ignore_eos) {
  return {{"temperature", "T", fmt::format("{:g}", *temperature),
           "0 takes the most likely token each time",
           [temperature](const std::string& text) -> Status {
             double value = 0;
             VIVACE_RETURN_IF_ERROR(NumberFlag("temperature", "T", "", &value, 0, 100).store(text));
             *temperature = static_cast<float>(value);
             return {};
           }},
          {"ignore-eos", "", *ignore_eos ? "on" : "off", "answers end at their length only",
           StoreSwitch(ignore_eos)}};
}

Flag PromptsFlag(size_t* to, std::string default_text, std::string help) {
  return {"num-prompts", "N", std::move(default_text), std::move(help),
          [to](const std::string& text) -> Status {
            int32_t value = 0;
            VIVACE_RETURN_IF_ERROR(
                CountFlag("num-prompts", "", &value, 1, limits::kMaxLoadRequests).store(text));
            *to = static_cast<size_t>(value);
            return {};
          }};
}

std::string DatasetHelp() {
  std::string help = "Datasets:\n";
  for (const load::DatasetKind& kind : load::Datasets())
    help += fmt::format("  {:<16} {}\n", kind.name, kind.help);
  return help;
}

}  // namespace vivace::cli
