// One field of a format string, of % or of braces: a value as text, padded to a width. Literal text
// keeps its origin; a converted value keeps the value's. Private to the two readers of formats.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "text/jinja/runtime.h"

namespace vivace::jinja {

inline constexpr auto kMaxFieldWidth = static_cast<int64_t>(limits::kTemplateOutputBytes);
inline constexpr int64_t kMaxFieldPrecision = 1'000;

struct Field {
  std::string fill = " ";
  char align = 0;  // '<', '>', '^', '=', or 0 for the type's own
  char sign = 0;   // '+', '-', ' ', or 0 for none given
  bool alternate = false, zero = false;
  char group = 0;  // ',' or '_' between groups of digits
  int64_t width = 0;
  std::optional<int64_t> precision;
  char type = 0;
};

// Reads digits at `at`; refuses what no field needs.
int64_t ReadNumber(std::string_view text, size_t& at, int64_t limit);
// Is it one of the characters of `set`?
bool IsOneOf(char c, std::string_view set);

// A number's digits with its sign and prefix, not padded.
std::string IntegerText(const Field& field, int64_t number);
std::string FloatText(const Field& field, double number);

// str(), repr() or ascii() of a value, by 's', 'r' or 'a'.
const Str* Converted(Runtime& runtime, Value value, char conversion);
// What the type c shows: a string of one character, or the character of a number.
const Str* Character(Runtime& runtime, Value value);
// At most the field's precision of characters.
const Str* Truncated(Runtime& runtime, const Str* text, const Field& field);
void AppendPadded(Runtime& runtime, StrBuilder& out, const Field& field, const Str* body,
                  char default_align);

}  // namespace vivace::jinja
