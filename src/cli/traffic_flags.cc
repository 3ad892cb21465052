#include "cli/traffic_flags.h"

#include <algorithm>
#include <filesystem>

#include "base/limits.h"
#include "cli/value_flags.h"

namespace vivace::cli {
namespace {

// Other tools' names for kinds of datasets.
struct DatasetAlias {
  std::string_view alias, name;
};
constexpr DatasetAlias kDatasetAliases[] = {
    {"prefix_repetition", "shared-prefix"},
    {"generated-shared-prefix", "shared-prefix"},
    {"timed_trace", "trace"},
    {"mooncake", "trace"},
    {"burstgpt", "trace"},
};

std::vector<std::string_view> KindNames() {
  std::vector<std::string_view> names;
  for (const load::DatasetKind& kind : load::Datasets()) names.push_back(kind.name);
  return names;
}

Status StoreDatasetName(const std::string& text, load::DatasetOptions* dataset) {
  std::string name = text;
  for (const DatasetAlias& alias : kDatasetAliases) {
    if (alias.alias == text) name = alias.name;
  }
  const std::vector<std::string_view> names = KindNames();
  if (std::ranges::count(names, name) > 0) {
    dataset->name = std::move(name);
    return {};
  }
  return BadValue("dataset-name", text, fmt::format("one of {}", fmt::join(names, ", ")));
}

// Other tools' one flag for both.
Status StoreDataset(const std::string& text, load::DatasetOptions* dataset) {
  std::error_code ignored;
  if (StoreDatasetName(text, dataset)) return {};
  if (!std::filesystem::is_regular_file(text, ignored)) {
    return BadValue("dataset", text,
                    fmt::format("the path of a file, or one of {}", fmt::join(KindNames(), ", ")));
  }
  dataset->path = text;
  VIVACE_ASSIGN(dataset->name, load::KindOfFile(text));
  return {};
}

Status StorePreset(const std::string& text, load::DatasetOptions* dataset) {
  for (const load::LengthPreset& preset : load::kLengthPresets) {
    if (preset.name != text) continue;
    dataset->input_len = preset.input;
    dataset->output_len = preset.output;
    dataset->output_len_given = true;
    return {};
  }
  return BadValue("preset", text, "prefill-heavy (768 in, 128 out) or decode-heavy (128, 768)");
}

Flag LengthFlag(std::string name, std::string help, int32_t* to, int32_t least,
                std::vector<std::string> aliases) {
  Flag flag = CountFlag(std::move(name), std::move(help), to, least, limits::kMaxPromptTokens);
  flag.aliases = std::move(aliases);
  return flag;
}

}  // namespace

std::vector<Flag> DatasetFlags(load::DatasetOptions* options) {
  load::DatasetOptions* d = options;
  Flag input = LengthFlag("random-input-len", "tokens of a prompt", &d->input_len, 1,
                          {"input-len", "prefix-repetition-suffix-len"});
  input.store = [d, store = input.store](const std::string& text) -> Status {
    d->input_len_given = true;
    return store(text);
  };
  Flag output = LengthFlag(
      "random-output-len", "tokens of an answer, at most", &d->output_len, 1,
      {"output-len", "sharegpt-output-len", "custom-output-len", "prefix-repetition-output-len"});
  output.store = [d, store = output.store](const std::string& text) -> Status {
    d->output_len_given = true;  // it goes before a file's
    return store(text);
  };
  Flag range = NumberFlag("random-range-ratio", "R", "lengths differ by up to this share",
                          &d->range_ratio, 0, 1);
  range.aliases = {"range-ratio"};
  Flag prefixes = CountFlag("num-prefixes", "how many such prefixes there are", &d->num_prefixes, 1,
                            static_cast<int32_t>(limits::kMaxDatasetRequests));
  prefixes.aliases = {"prefix-repetition-num-prefixes"};
  // Those behind it go before it: `--dataset FILE --dataset-name trace`.
  return {{"dataset", "NAME|PATH", "",
           "a dataset by its name, or a file, whose kind its first line tells",
           [d](const std::string& text) { return StoreDataset(text, d); }},
          {"dataset-name", "NAME", d->name, fmt::format("{}", fmt::join(KindNames(), ", ")),
           [d](const std::string& text) { return StoreDatasetName(text, d); }},
          {"dataset-path", "PATH", "", "the file of a dataset that is one", StoreText(&d->path)},
          {"preset", "NAME", "", "lengths: prefill-heavy (768/128) or decode-heavy (128/768)",
           [d](const std::string& text) { return StorePreset(text, d); }},
          std::move(input),
          std::move(output),
          std::move(range),
          NumberFlag("input-len-std", "N", "deviation of the prompts' lengths", &d->input_len_std,
                     0, limits::kMaxPromptTokens),
          NumberFlag("output-len-std", "N", "of the answers' lengths", &d->output_len_std, 0,
                     limits::kMaxPromptTokens),
          LengthFlag("random-prefix-len", "tokens in front that prompts share", &d->prefix_len, 0,
                     {"prefix-len", "prefix-repetition-prefix-len"}),
          std::move(prefixes),
          CountFlag("turns", "of a conversation, each after the answer to the last", &d->turns, 1,
                    limits::kMaxLoadTurns)};
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

Flag DisableDetokenizeFlag() {
  return {"disable-detokenize", "", "on",
          "taken for vLLM's sake: no text is made of answers anyway",
          [](const std::string& on) -> Status {
            if (on == "true") return {};
            return BadValue("disable-detokenize", "off", "it on, or leave it out");
          }};
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
