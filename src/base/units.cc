#include "base/units.h"

#include <charconv>
#include <cmath>
#include <span>
#include <string>

namespace vivace {
namespace {

struct Suffix {
  std::string_view text;
  double factor;
};

constexpr double kKi = 1024.0;
constexpr Suffix kCountSuffixes[] = {
    {"", 1},        {"k", 1e3},      {"m", 1e6},     {"g", 1e9},    {"t", 1e12},
    {"K", kKi},     {"M", kKi* kKi}, {"G", 0x1p30},  {"T", 0x1p40}, {"Ki", kKi},
    {"Mi", 0x1p20}, {"Gi", 0x1p30},  {"Ti", 0x1p40},
};
constexpr Suffix kByteSuffixes[] = {
    {"B", 1},     {"kB", 1e3},  {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
    {"TB", 1e12}, {"KiB", kKi}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
};
constexpr double kLargest = 0x1p62;

const double* FindFactor(std::span<const Suffix> table, std::string_view suffix) {
  for (const Suffix& entry : table) {
    if (entry.text == suffix) return &entry.factor;
  }
  return nullptr;
}

Result<int64_t> Parse(std::string_view text, std::string_view field, bool bytes) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string_view suffix(end, static_cast<size_t>(text.data() + text.size() - end));
  const double* factor = FindFactor(kCountSuffixes, suffix);
  if (factor == nullptr && bytes) factor = FindFactor(kByteSuffixes, suffix);
  if (error != std::errc() || factor == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "bad_number", std::string(field),
                "--{} is '{}'; give a number such as {}", field, text,
                bytes ? "4GiB or 512MiB" : "4096 or 32k");
  }
  const double value = number * *factor;
  if (!(value >= 0 && value < kLargest) || value != std::floor(value)) {
    return Fail(ErrorCode::kInvalidArgument, "bad_number", std::string(field),
                "--{} is '{}'; give a whole number that is not negative", field, text);
  }
  return static_cast<int64_t>(value);
}

}  // namespace

Result<int64_t> ParseCount(std::string_view text, std::string_view field) {
  return Parse(text, field, false);
}

Result<int64_t> ParseBytes(std::string_view text, std::string_view field) {
  return Parse(text, field, true);
}

std::string FormatBytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= kKi && unit + 1 < std::size(kUnits)) {
    value /= kKi;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace vivace
