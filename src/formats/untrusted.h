// Tools for bytes nobody vouches for: checked arithmetic, text safe to show, errors that name a
// file. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vivace::formats {

inline std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<uint64_t> CheckedMul(uint64_t a, uint64_t b) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// `value` rounded up to a multiple of `alignment`, a power of two.
inline std::optional<uint64_t> CheckedAlignUp(uint64_t value, uint64_t alignment) {
  const auto bumped = CheckedAdd(value, alignment - 1);
  if (!bumped) return std::nullopt;
  return *bumped & ~(alignment - 1);
}

// One line of valid UTF-8 for messages: control characters, marks of writing direction that would
// show text in another order, and bad bytes become \xNN, and what is longer than `max_bytes` is cut
// and ends with "...".
std::string Printable(std::string_view text, size_t max_bytes = 80);

// Text of many lines for a terminal: the same characters but tabs and line feeds are left out, bad
// bytes become U+FFFD.
std::string ForTerminal(std::string_view text);

// "<file>: <field>: <reason>", the one-line shape of all errors about a model's files; without a
// field "<file>: <reason>". `text` is shown as it is.
tl::unexpected<Error> FileFault(ErrorCode code, std::string slug, std::string_view file,
                                std::string_view field, std::string_view text);

}  // namespace vivace::formats
