#include "cli/value_flags.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace vivace::cli {

Result<double> ParseNumber(std::string_view text, const std::string& field, double low,
                           double high) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= low) ||
      !(value <= high)) {
    return BadValue(field, std::string(text),
                    std::isinf(high) ? fmt::format("a number of at least {}", low)
                                     : fmt::format("a number from {} to {}", low, high));
  }
  return value;
}

Flag NumberFlag(std::string name, std::string value, std::string help, double* to, double low,
                double high) {
  const std::string default_text = fmt::format("{}", *to);
  auto store = [name, to, low, high](const std::string& text) -> Status {
    VIVACE_ASSIGN(*to, ParseNumber(text, name, low, high));
    return {};
  };
  return {std::move(name), std::move(value), default_text, std::move(help), std::move(store)};
}

Result<double> ParseDuration(std::string_view text, const std::string& field, double most_seconds) {
  double unit = 1;
  std::string_view number = text;
  if (!text.empty() && (text.back() == 's' || text.back() == 'm' || text.back() == 'h')) {
    unit = text.back() == 's' ? 1 : text.back() == 'm' ? 60 : 3600;
    number.remove_suffix(1);
  }
  const auto value = ParseNumber(number, field, 0, std::numeric_limits<double>::max());
  if (!value || *value * unit <= 0 || *value * unit > most_seconds) {
    return BadValue(
        field, std::string(text),
        fmt::format("a time such as 90s, 10m or 1h, at most {}", FormatDuration(most_seconds)));
  }
  return *value * unit;
}

std::string FormatDuration(double seconds) {
  if (seconds >= 3600 && std::fmod(seconds, 3600) == 0)
    return fmt::format("{:.0f}h", seconds / 3600);
  if (seconds >= 60 && std::fmod(seconds, 60) == 0) return fmt::format("{:.0f}m", seconds / 60);
  return fmt::format("{:.4g}s", seconds);
}

}  // namespace vivace::cli
