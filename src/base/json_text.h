// Writing JSON strings from text that may be anything.
#pragma once

#include <string>
#include <string_view>

namespace vivace {

// Appends `text` as a JSON string with its quotes. The result is valid JSON and valid UTF-8
// whatever the input: control characters are escaped, each error of utf8.h becomes one U+FFFD.
// Linear in the input.
void AppendJsonString(std::string& out, std::string_view text);
std::string JsonQuoted(std::string_view text);

// Appends the escape of a character that a JSON string cannot hold as it is: a quote, a backslash,
// a control character.
void AppendJsonEscape(std::string& out, char c);

}  // namespace vivace
