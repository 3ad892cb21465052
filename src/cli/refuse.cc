#include <fmt/format.h>

#include "cli/commands.h"

namespace vivace::cli {
namespace {

constexpr std::string_view kUsageReasons[] = {"bad_flag",      "unknown_flag", "flag_range",
                                              "flag_conflict", "bad_number",   "bad_value"};

bool IsUsage(const Error& error) {
  for (const std::string_view reason : kUsageReasons) {
    if (error.reason == reason) return true;
  }
  return false;
}

}  // namespace

int Refuse(const Error& error) {
  const bool told = error.message.find(error.reason) != std::string::npos;
  fmt::print(stderr, "vivace: {}{}\n", error.message,
             told || IsUsage(error) ? "" : fmt::format(" [{}]", error.reason));
  return IsUsage(error) ? kExitUsage : kExitRefused;
}

}  // namespace vivace::cli
