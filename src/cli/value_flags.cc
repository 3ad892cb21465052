#include "cli/value_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/trim.h"
#include "base/units.h"

namespace vivace::cli {
namespace {

Result<double> ParseNumber(const std::string& name, const std::string& text, double least,
                           double most) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() ||
      !(value >= least && value <= most)) {
    return BadValue(name, text, fmt::format("a number from {:g} to {:g}", least, most));
  }
  return value;
}

}  // namespace

Flag NumberFlag(std::string name, std::string unit, std::string help, double* to, double least,
                double most) {
  std::string shown = fmt::format("{:g}", *to);
  auto store = [name, to, least, most](const std::string& text) -> Status {
    VIVACE_ASSIGN(*to, ParseNumber(name, text, least, most));
    return {};
  };
  return {std::move(name), std::move(unit), std::move(shown), std::move(help), std::move(store)};
}

Flag NumberFlag(std::string name, std::string help, std::optional<double>* to, double least,
                double most) {
  auto store = [name, to, least, most](const std::string& text) -> Status {
    VIVACE_ASSIGN(*to, ParseNumber(name, text, least, most));
    return {};
  };
  return {std::move(name), "X", "the server's", std::move(help), std::move(store)};
}

Flag CountFlag(std::string name, std::string help, int32_t* to, int32_t least, int32_t most) {
  auto store = [name, to, least, most](const std::string& text) -> Status {
    VIVACE_ASSIGN(const int64_t value, ParseCount(text, name));
    if (value < least || value > most) {
      return BadValue(name, text, fmt::format("a number from {} to {}", least, most));
    }
    *to = static_cast<int32_t>(value);
    return {};
  };
  return {std::move(name), "N", fmt::to_string(*to), std::move(help), std::move(store)};
}

Flag TextFlag(std::string name, std::string value, std::string default_text, std::string help,
              std::string* to, std::vector<std::string> aliases) {
  return {std::move(name), std::move(value), std::move(default_text),
          std::move(help), StoreText(to),    std::move(aliases)};
}

std::vector<std::string> RepeatFlags(std::span<const std::string> args,
                                     std::span<const std::string_view> lists) {
  std::vector<std::string> words;
  std::string flag;  // the list that is open; empty: none
  bool has_value = false;
  for (const std::string& arg : args) {
    if (arg.starts_with('-')) {
      const size_t equals = arg.find('=');
      const std::string spelled = arg.substr(0, equals);
      std::string name = spelled.substr(std::min(spelled.find_first_not_of('-'), spelled.size()));
      std::replace(name.begin(), name.end(), '_', '-');
      flag = std::find(lists.begin(), lists.end(), name) != lists.end() ? spelled : "";
      has_value = equals != std::string::npos;
    } else {
      if (has_value && !flag.empty()) words.push_back(flag);
      has_value = true;
    }
    words.push_back(arg);
  }
  return words;
}

std::vector<std::string> CutList(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word = Trimmed(word); !word.empty()) words.emplace_back(word);
  }
  return words;
}

}  // namespace vivace::cli
