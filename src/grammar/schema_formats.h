// The values of `format` that are enforced, as patterns (grammar/pattern.h).
#pragma once

#include <string>
#include <string_view>

namespace vivace::grammar {

// Empty: not enforced.
std::string_view FormatPattern(std::string_view format);

// Says how a value is shown or stored, not which are valid.
bool FormatIsAnnotation(std::string_view format);

// "date, date-time, ..."
std::string EnforcedFormats();

}  // namespace vivace::grammar
