// Writing JSON strings from text that may be anything.
#pragma once

#include <string>
#include <string_view>

namespace vivace {

// Appends `text` as a JSON string with its quotes. The result is valid JSON and valid UTF-8
// whatever the input: control characters are escaped, each byte that is no part of well-formed
// UTF-8 becomes U+FFFD. Linear in the input.
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace vivace
