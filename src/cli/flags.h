// Command-line flags as a table: one row per flag parses, documents and stores. CLI11 splits the
// words; everything a person sees (help, errors, the nearest name for a typo) is made from the
// table.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace vivace::cli {

struct Flag {
  std::string name;          // "max-model-len"; dashes or underscores on the command line
  std::string value;         // what it takes, for help: "N", "BYTES"; empty: a switch --x / --no-x
  std::string default_text;  // for help
  std::string help;
  std::function<Status(const std::string&)> store;  // a switch gets "true" or "false"
  std::vector<std::string> aliases = {};
};

// The usual `store`s: the text as it is; whether a switch is on. `to` outlives the flag.
std::function<Status(const std::string&)> StoreText(std::string* to);
std::function<Status(const std::string&)> StoreSwitch(bool* to);

// The refusal of a flag's value: "--FLAG is 'VALUE'; give WANTED".
tl::unexpected<Error> BadValue(const std::string& flag, const std::string& value,
                               std::string_view wanted);

struct Command {
  std::string name;        // "serve"
  std::string positional;  // "MODEL.gguf"; empty: none
  std::string summary;     // one line
  std::string details;     // paragraphs and examples under the flags
  std::vector<Flag> flags;
  // --config FILE gives values of the flags (config_file.h); those on the command line win.
  bool takes_config = false;
};

// What the words said besides flags. help: --help was among them and has been printed.
struct Parsed {
  std::vector<std::string> positionals;  // none on the command line: the configuration's model
  bool help = false;
};

Result<Parsed> ParseFlags(const Command& command, std::span<const std::string> args);

// How many words besides flags a command takes, and what to say where they are not there.
struct WordsWanted {
  size_t least, most;
  std::string_view what;  // "give one model"
};
inline constexpr size_t kAnyWords = ~size_t{0};

// How commands begin: these words, or the exit code where nothing is left to do, because --help or
// a refusal was printed.
tl::expected<std::vector<std::string>, int> ParseWords(const Command& command,
                                                       std::span<const std::string> args,
                                                       const WordsWanted& wanted);

// The closest of `names` by edit distance, if it is close at all; empty otherwise.
std::string Nearest(std::string_view word, std::span<const std::string> names);

}  // namespace vivace::cli
