// Text without the blanks around it.
#pragma once

#include <string_view>

namespace vivace {

// Spaces, tabs, carriage returns and line feeds, at both ends. A view of the same bytes.
inline std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace vivace
