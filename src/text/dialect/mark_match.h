// Marks in text that comes byte by byte.
#pragma once

#include <cstdint>
#include <string_view>

namespace vivace::dialect {

enum class MarkMatch : uint8_t {
  kNone,    // the text does not begin like the mark
  kPrefix,  // so far it does
  kWhole,   // it is the mark
};

// `held` against a mark; an empty mark never matches.
inline MarkMatch MatchMark(std::string_view held, std::string_view mark) {
  if (mark.empty() || !mark.starts_with(held)) return MarkMatch::kNone;
  return held.size() == mark.size() ? MarkMatch::kWhole : MarkMatch::kPrefix;
}

}  // namespace vivace::dialect
