// Small things about JSON text.
#pragma once

#include <string>
#include <string_view>

namespace vivace::dialect {

// Appends `text` as it stands inside a JSON string. Other bytes stay as they are (base/json_text.h
// would mend them): a piece of a stream may end inside a character.
void AppendEscaped(std::string_view text, std::string* out);
inline void AppendQuoted(std::string_view text, std::string* out) {
  out->push_back('"');
  AppendEscaped(text, out);
  out->push_back('"');
}

// The text of a JSON string literal, quotes included; empty where it is none.
std::string Unquoted(std::string_view literal);

std::string_view TrimSpace(std::string_view text);

}  // namespace vivace::dialect
