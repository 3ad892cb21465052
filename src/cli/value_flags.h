// Flags of the usual kinds, for tables: counts, numbers, durations, lists. Each checks its range
// and refuses in the words of flags.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "cli/flags.h"

namespace vivace::cli {

// A whole number from `low` to `high`; suffixes as everywhere. `to` holds the default.
template <typename T>
Flag CountFlag(std::string name, std::string help, T* to, int64_t low, int64_t high) {
  const std::string default_text = fmt::to_string(*to);
  auto store = [name, to, low, high](const std::string& text) -> Status {
    VIVACE_ASSIGN(const int64_t value, ParseCount(text, name));
    if (value < low || value > high)
      return BadValue(name, text, fmt::format("a number from {} to {}", low, high));
    *to = static_cast<T>(value);
    return {};
  };
  return {std::move(name), "N", default_text, std::move(help), std::move(store)};
}

// A number with or without a fraction; never NaN. "inf" where `high` is infinite.
Result<double> ParseNumber(std::string_view text, const std::string& field, double low,
                           double high);
Flag NumberFlag(std::string name, std::string value, std::string help, double* to, double low,
                double high);

// "90s", "10m", "1.5h", or seconds without a unit.
Result<double> ParseDuration(std::string_view text, const std::string& field, double most_seconds);
std::string FormatDuration(double seconds);  // "10m", "90s"

}  // namespace vivace::cli
