#include "grammar/pattern.h"

#include <algorithm>
#include <utility>

#include "grammar/ebnf.h"

namespace vivace::grammar {
namespace {

// Sums and products that stop at "no bound".
int64_t Plus(int64_t a, int64_t b) {
  return a == kUnbounded || b == kUnbounded ? kUnbounded : a + b;
}

int64_t Times(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  constexpr int64_t kMost = int64_t{1} << 40;
  if (a == kUnbounded || b == kUnbounded || a > kMost / b) return kUnbounded;
  return a * b;
}

// A character that a JSON string must escape, as the shortest escape.
std::string JsonEscape(char32_t code) {
  switch (code) {
    case '"':
      return Literal("\\\"");
    case '\\':
      return Literal("\\\\");
    case '\b':
      return Literal("\\b");
    case '\f':
      return Literal("\\f");
    case '\n':
      return Literal("\\n");
    case '\r':
      return Literal("\\r");
    case '\t':
      return Literal("\\t");
    default:
      break;
  }
  static constexpr char kHex[] = "0123456789abcdef";
  std::string escape = "\\u00";
  escape += kHex[code >> 4];
  escape += kHex[code & 15];
  return Literal(escape);
}

}  // namespace

Pattern Pattern::Of(CodePoints set) {
  Pattern pattern;
  pattern.kind = Kind::kSet;
  pattern.set = std::move(set);
  return pattern;
}

Pattern Pattern::Repeated(Pattern part, int64_t min, int64_t max) {
  Pattern pattern;
  pattern.kind = Kind::kRepeat;
  pattern.parts.push_back(std::move(part));
  pattern.min = min;
  pattern.max = max;
  return pattern;
}

Lengths LengthsOf(const Pattern& pattern) {
  switch (pattern.kind) {
    case Pattern::Kind::kSet:
      return {1, 1};
    case Pattern::Kind::kConcat: {
      Lengths sum;
      for (const Pattern& part : pattern.parts) {
        const Lengths one = LengthsOf(part);
        sum = {sum.min + one.min, Plus(sum.max, one.max)};
      }
      return sum;
    }
    case Pattern::Kind::kEither: {
      Lengths all = LengthsOf(pattern.parts[0]);
      for (const Pattern& part : pattern.parts) {
        const Lengths one = LengthsOf(part);
        all.min = std::min(all.min, one.min);
        all.max = all.max == kUnbounded || one.max == kUnbounded ? kUnbounded
                                                                 : std::max(all.max, one.max);
      }
      return all;
    }
    case Pattern::Kind::kRepeat: {
      const Lengths one = LengthsOf(pattern.parts[0]);
      const int64_t least = Times(one.min, pattern.min);
      return {least == kUnbounded ? int64_t{1} << 40 : least, Times(one.max, pattern.max)};
    }
  }
  return {};
}

std::string ToExpression(const CodePoints& set, Spelling spelling) {
  if (spelling == Spelling::kRaw) return set.ToClass();
  static const CodePoints kEscaped = {{1, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  std::vector<std::string> options;
  if (const CodePoints plain = set.Minus(kEscaped); !plain.empty()) {
    options.push_back(plain.ToClass());
  }
  const CodePoints escaped = set.Intersect(kEscaped);
  for (const CodePoints::Range& range : escaped.ranges()) {
    for (char32_t code = range.low; code <= range.high; ++code) options.push_back(JsonEscape(code));
  }
  return Either(options);
}

std::string ToExpression(const Pattern& pattern, Spelling spelling) {
  std::vector<std::string> parts;
  switch (pattern.kind) {
    case Pattern::Kind::kSet:
      return ToExpression(pattern.set, spelling);
    case Pattern::Kind::kConcat:
      for (const Pattern& part : pattern.parts) parts.push_back(ToExpression(part, spelling));
      return Seq(parts);
    case Pattern::Kind::kEither:
      for (const Pattern& part : pattern.parts) parts.push_back(ToExpression(part, spelling));
      return Either(parts);
    case Pattern::Kind::kRepeat:
      return Repeat(ToExpression(pattern.parts[0], spelling), pattern.min, pattern.max);
  }
  return {};
}

}  // namespace vivace::grammar
