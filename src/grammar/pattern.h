// Regular expressions as grammars: what `pattern` of a schema and the `regex` of a request mean.
//
// The syntax is what ECMAScript and Python share: literals, classes, groups (named or not),
// alternatives, greedy or lazy repeats, ^ and $ at the ends of the whole pattern, \p{..} with a
// general category or a script. The whole text is matched, with or without anchors. Where the
// dialects differ (\s, \W, .), only what both allow is produced. What a grammar cannot say
// (look-around, back references, \b, flags) is refused, with what to write instead.
//
// Cost: linear but for depth, recursion bounded by limits::kMaxRegexDepth. Pure functions, any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/code_points.h"

namespace vivace::grammar {

struct Pattern {
  enum class Kind : uint8_t { kSet, kConcat, kEither, kRepeat };
  Kind kind = Kind::kConcat;   // an empty concatenation matches the empty text
  CodePoints set;              // kSet
  std::vector<Pattern> parts;  // kConcat, kEither; one for kRepeat
  int64_t min = 0, max = 0;    // kRepeat; max may be kUnbounded

  static Pattern Of(CodePoints set);
  static Pattern Repeated(Pattern part, int64_t min, int64_t max);
};

// The error is kInvalidArgument with `field`; it says where in the pattern.
Result<Pattern> ParsePattern(std::string_view text, std::string_view field);

// Rewrites repeats of what may be empty as repeats of what isn't, which match the same: a rule that
// may begin with itself is no rule. ParsePattern has done it. False: it would grow too large.
bool NormaliseRepeats(Pattern* pattern);

// Whether a repeat overlaps itself (a text can be cut into its parts in several ways) and is too
// large to be followed in all of them at once. ParsePattern refuses those.
bool IsTooAmbiguous(const Pattern& pattern);

// The fewest and most characters that it matches; kUnbounded for no most.
struct Lengths {
  int64_t min = 0, max = 0;
};
Lengths LengthsOf(const Pattern& pattern);

// How characters are written: as they are, or inside a JSON string.
enum class Spelling : uint8_t { kRaw, kJsonString };

// The pattern as an expression of a grammar.
std::string ToExpression(const Pattern& pattern, Spelling spelling);

// One character of a set.
std::string ToExpression(const CodePoints& set, Spelling spelling);

// One character of a set as a regular expression of xgrammar's: as it is, and inside a JSON string.
std::string ToRegex(const CodePoints& set);
std::string ToJsonRegex(const CodePoints& set);

}  // namespace vivace::grammar
