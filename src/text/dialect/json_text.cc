#include "text/dialect/json_text.h"

#include <boost/json/parse.hpp>

#include "base/json_text.h"

namespace vivace::dialect {

void AppendEscaped(std::string_view text, std::string* out) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\') {
      AppendJsonEscape(*out, c);
    } else {
      out->push_back(c);
    }
  }
}

std::string Unquoted(std::string_view literal) {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(literal, error);
  if (error || !value.is_string()) return {};
  return std::string(value.get_string());
}

std::string_view TrimSpace(std::string_view text) {
  constexpr std::string_view kSpace = " \n\t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace vivace::dialect
