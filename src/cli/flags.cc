#include "cli/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>

#include "cli/commands.h"
#include "cli/config_file.h"

namespace vivace::cli {
namespace {

// "--max_num_seqs=8" -> "--max-num-seqs=8"; values stay as they are.
std::string WithDashes(std::string word) {
  if (!word.starts_with("--")) return word;
  const auto end = word.begin() + static_cast<ptrdiff_t>(std::min(word.find('='), word.size()));
  std::replace(word.begin(), end, '_', '-');
  return word;
}

std::string Names(const Flag& flag) {
  std::string names = "--" + flag.name;
  for (const std::string& alias : flag.aliases) names += ",--" + alias;
  return names;
}

std::vector<std::string> AllNames(const Command& command) {
  std::vector<std::string> names = {"--help"};
  if (command.takes_config) names.emplace_back("--config");
  for (const Flag& flag : command.flags) {
    names.push_back("--" + flag.name);
    if (flag.value.empty()) names.push_back("--no-" + flag.name);
    for (const std::string& alias : flag.aliases) names.push_back("--" + alias);
  }
  return names;
}

tl::unexpected<Error> Usage(const Command& command, std::string reason, std::string field,
                            std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(reason), std::move(field),
              "{} (`vivace {} --help` lists the flags)", message, command.name);
}

void PrintCommandHelp(const Command& command) {
  fmt::print("usage: vivace {}{}{} [FLAGS]\n\n{}\n\n", command.name,
             command.positional.empty() ? "" : " ", command.positional, command.summary);
  if (command.takes_config) {
    fmt::print("  {:<34} {}\n", "--config FILE",
               "a JSON object of these flags and \"model\"; the command line wins");
  }
  for (const Flag& flag : command.flags) {
    const std::string left = flag.value.empty() ? fmt::format("--[no-]{}", flag.name)
                                                : fmt::format("--{} {}", flag.name, flag.value);
    const std::string tail =
        flag.default_text.empty() ? "" : fmt::format(" (default: {})", flag.default_text);
    fmt::print("  {:<34} {}{}\n", left, flag.help, tail);
  }
  if (!command.details.empty()) fmt::print("\n{}\n", command.details);
}

// What CLI11 read of one flag.
struct Slot {
  std::vector<std::string> values;
  bool on = false;
  bool off_on = false;
  CLI::Option* option = nullptr;
  CLI::Option* off = nullptr;
  bool given() const { return option->count() > 0 || (off != nullptr && off->count() > 0); }
};

Status StoreFlag(const Command& command, const Flag& flag, const Slot& slot) {
  if (flag.value.empty()) {
    if (slot.option->count() > 0 && slot.off->count() > 0) {
      return Usage(command, "flag_conflict", flag.name,
                   fmt::format("--{0} and --no-{0} contradict each other", flag.name));
    }
    if (slot.option->count() > 0) return flag.store("true");
    if (slot.off->count() > 0) return flag.store("false");
    return {};
  }
  for (const std::string& value : slot.values) VIVACE_RETURN_IF_ERROR(flag.store(value));
  return {};
}

bool IsNamed(const Flag& flag, const std::string& name) {
  return flag.name == name || std::ranges::count(flag.aliases, name) > 0;
}

// The words a configuration has for a flag, in the way the command line would have them.
Result<std::vector<std::string>> WordsOf(const ConfigFile& config, const ConfigEntry& entry,
                                         const Flag& flag) {
  const auto refuse = [&](std::string_view wanted) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", flag.name, "{}: \"{}\" is {}; give {}",
                config.path, entry.key, entry.shown, wanted);
  };
  if (flag.value.empty() != entry.is_switch) {
    return refuse(flag.value.empty() ? "true or false" : "a number or a string");
  }
  if (entry.words.size() != 1 && flag.value.empty()) return refuse("true or false");
  return entry.words;
}

// Values of flags that the command line did not give.
Status StoreConfig(const Command& command, const ConfigFile& config, std::span<const Slot> slots) {
  for (const ConfigEntry& entry : config.entries) {
    const auto flag =
        std::ranges::find_if(command.flags, [&](const Flag& f) { return IsNamed(f, entry.name); });
    if (flag == command.flags.end()) {
      std::vector<std::string> names = {"model"};
      for (const Flag& f : command.flags) names.push_back(f.name);
      const std::string nearest = Nearest(entry.name, names);
      return Fail(ErrorCode::kInvalidArgument, "unknown_flag", entry.key,
                  "{}: \"{}\" is no flag of `vivace {}`{}", config.path, entry.key, command.name,
                  nearest.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearest));
    }
    if (slots[static_cast<size_t>(flag - command.flags.begin())].given()) continue;
    VIVACE_ASSIGN(const auto words, WordsOf(config, entry, *flag));
    for (const std::string& word : words) {
      auto stored = flag->store(word);
      if (stored) continue;
      stored.error().message = fmt::format("{}: {}", config.path, stored.error().message);
      return stored;
    }
  }
  return {};
}

}  // namespace

tl::unexpected<Error> BadValue(const std::string& flag, const std::string& value,
                               std::string_view wanted) {
  return Fail(ErrorCode::kInvalidArgument, "bad_value", flag, "--{} is '{}'; give {}", flag, value,
              wanted);
}

std::function<Status(const std::string&)> StoreText(std::string* to) {
  return [to](const std::string& text) -> Status {
    *to = text;
    return {};
  };
}

std::function<Status(const std::string&)> StoreSwitch(bool* to) {
  return [to](const std::string& on) -> Status {
    *to = on == "true";
    return {};
  };
}

tl::expected<std::vector<std::string>, int> ParseWords(const Command& command,
                                                       std::span<const std::string> args,
                                                       const WordsWanted& wanted) {
  auto parsed = ParseFlags(command, args);
  if (!parsed) return tl::unexpected(Refuse(parsed.error()));
  if (parsed->help) return tl::unexpected(0);
  std::vector<std::string>& words = parsed->positionals;
  if (words.size() >= wanted.least && words.size() <= wanted.most) return std::move(words);
  const std::string no_flag =
      wanted.most == 0 ? fmt::format("'{}' is no flag; ", words[0]) : std::string();
  fmt::print(stderr, "vivace: {}{} (`vivace {} --help`)\n", no_flag, wanted.what, command.name);
  return tl::unexpected(kExitUsage);
}

std::string Nearest(std::string_view word, std::span<const std::string> names) {
  std::string best;
  size_t best_distance = word.size() / 3 + 2;
  for (const std::string& name : names) {
    std::vector<size_t> row(name.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i + 1;
      for (size_t j = 0; j < name.size(); ++j) {
        const size_t substituted = diagonal + (word[i] != name[j]);
        diagonal = row[j + 1];
        row[j + 1] = std::min({substituted, row[j] + 1, diagonal + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = name;
    }
  }
  return best;
}

Result<Parsed> ParseFlags(const Command& command, std::span<const std::string> args) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  Parsed parsed;
  bool help = false;
  app.add_flag("--help,-h", help);
  app.add_option("positionals", parsed.positionals);
  std::vector<std::string> config_paths;
  if (command.takes_config) app.add_option("--config", config_paths)->allow_extra_args(false);
  std::vector<Slot> slots(command.flags.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    const Flag& flag = command.flags[i];
    if (flag.value.empty()) {
      // CLI11 would take "--x=anything" as on; the table says what a value means.
      slots[i].option = app.add_flag(Names(flag), slots[i].on)->disable_flag_override();
      slots[i].off = app.add_flag("--no-" + flag.name, slots[i].off_on)->disable_flag_override();
    } else {
      slots[i].option = app.add_option(Names(flag), slots[i].values)->allow_extra_args(false);
    }
  }
  std::vector<std::string> words(args.rbegin(), args.rend());  // CLI11 takes them reversed
  std::transform(words.begin(), words.end(), words.begin(), WithDashes);
  try {
    app.parse(words);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string what = error.what();
    const std::string flag = what.substr(0, what.find_first_of(": "));
    return Usage(command, "bad_flag", flag,
                 what.find("override") != std::string::npos
                     ? fmt::format("--{} takes no value; a switch is --x or --no-x", flag)
                     : fmt::format("{}: a value is missing, or there is one too many", flag));
  } catch (const CLI::ParseError& error) {
    return Usage(command, "bad_flag", "", error.what());
  }
  if (help) {
    PrintCommandHelp(command);
    parsed.help = true;
    return parsed;
  }
  for (const std::string& extra : app.remaining()) {
    const std::string word = extra.substr(0, extra.find('='));
    const std::string nearest = Nearest(word, AllNames(command));
    return Usage(command, "unknown_flag", word,
                 nearest.empty() ? fmt::format("unknown flag {}", word)
                                 : fmt::format("unknown flag {}; did you mean {}?", word, nearest));
  }
  if (config_paths.size() > 1) {
    return Usage(command, "flag_conflict", "config", "--config is given more than once");
  }
  if (!config_paths.empty()) {
    VIVACE_ASSIGN(const ConfigFile config, ReadConfigFile(config_paths[0]));
    VIVACE_RETURN_IF_ERROR(StoreConfig(command, config, slots));
    if (parsed.positionals.empty() && !config.model.empty())
      parsed.positionals.push_back(config.model);
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    VIVACE_RETURN_IF_ERROR(StoreFlag(command, command.flags[i], slots[i]));
  }
  return parsed;
}

}  // namespace vivace::cli
