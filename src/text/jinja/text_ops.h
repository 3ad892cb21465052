// String operations shared by filters and methods. All take and give flat strings, keep the origin
// of every byte, count in code points and charge the step budget by bytes.
#pragma once

#include <string_view>

#include "text/jinja/runtime.h"

namespace vivace::jinja {

enum class Case { kUpper, kLower, kTitle, kCapitalize, kSwap };

// markupsafe's Markup: strings that `safe` and `escape` give. Operators and methods of one give one
// again and escape what they are given; `~`, `replace`, `join` and str() do not.
const Str* AsMarkup(Runtime& runtime, const Str* text);
const Str* AsPlain(Runtime& runtime, const Str* text);
// `result`, markup if `model` is.
const Str* Like(Runtime& runtime, const Str* model, const Str* result);
// Markup as it is; other text with & < > ' " escaped, as markup.
const Str* EscapeHtml(Runtime& runtime, const Str* text);

const Str* MapCase(Runtime& runtime, const Str* text, Case mode);
// jinja2's title filter: words begin after blanks and -({[<, nothing else.
const Str* TitleWords(Runtime& runtime, const Str* text);
// Strips the characters of `chars` (white space when null).
const Str* Strip(Runtime& runtime, const Str* text, const Str* chars, bool left, bool right);
const Str* Replace(Runtime& runtime, const Str* text, const Str* old_text, const Str* new_text,
                   int64_t count);
// Lists of strings. A null separator splits at white space, as Python's split() does.
Seq* Split(Runtime& runtime, const Str* text, const Str* separator, int64_t max_splits,
           bool from_right);
Seq* SplitLines(Runtime& runtime, const Str* text, bool keep_ends);
// Offset in bytes of the first (last) occurrence within [begin, end), or kNotFound.
inline constexpr size_t kNotFound = std::string_view::npos;
size_t FindText(std::string_view text, std::string_view word, size_t begin, size_t end);
size_t FindTextLast(std::string_view text, std::string_view word, size_t begin, size_t end);
// FindTextLast is quadratic on hostile text: its callers pay for that first.
void ChargeBackwardSearch(Runtime& runtime, size_t text, size_t word);
const Str* Pad(Runtime& runtime, const Str* text, int64_t width, const Str* fill, char align);

}  // namespace vivace::jinja
