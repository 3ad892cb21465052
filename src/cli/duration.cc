#include "cli/duration.h"

#include <charconv>
#include <cmath>

#include "cli/flags.h"

namespace vivace::cli {
namespace {

constexpr double kMinute = 60, kHour = 3600;

double UnitOf(char suffix) {
  return suffix == 's' ? 1 : suffix == 'm' ? kMinute : suffix == 'h' ? kHour : 0;
}

}  // namespace

Result<double> ParseDuration(std::string_view text, const std::string& flag, double most_seconds) {
  std::string_view number = text;
  double unit = text.empty() ? 0 : UnitOf(text.back());
  if (unit > 0) {
    number.remove_suffix(1);
  } else {
    unit = 1;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || !(value > 0) ||
      !(value * unit <= most_seconds)) {
    return BadValue(
        flag, std::string(text),
        fmt::format("a time such as 90s, 10m or 1h, at most {}", FormatDuration(most_seconds)));
  }
  return value * unit;
}

std::string FormatDuration(double seconds) {
  if (std::fmod(seconds, kHour) == 0) return fmt::format("{:.0f}h", seconds / kHour);
  if (std::fmod(seconds, kMinute) == 0) return fmt::format("{:.0f}m", seconds / kMinute);
  return fmt::format("{:g}s", seconds);
}

}  // namespace vivace::cli
