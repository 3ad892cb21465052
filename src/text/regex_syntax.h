// Is a pattern well-formed, and of a size anyone should run? Regex::Compile asks this first, so
// that what is wrong with a pattern of a tokenizer file has a name and the parser's depth a bound;
// nothing here matches text.
#pragma once

#include <string_view>

#include "base/result.h"

namespace vivace {

// bad_regex: the syntax (Oniguruma's, what Hugging Face uses) is broken. regex_limit: longer,
// deeper or, with its repeats written out, larger than limits.h allows. Linear, no recursion.
Status CheckRegex(std::string_view pattern);

}  // namespace vivace
