#include "grammar/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "base/utf8.h"
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
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  static constexpr char kHex[] = "0123456789abcdef";
  std::string escape = "\\u00";
  escape += kHex[code >> 4];
  escape += kHex[code & 15];
  return escape;
}

const CodePoints& Escaped() {
  static const CodePoints escaped = {{1, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  return escaped;
}

std::vector<std::string> JsonEscapes(const CodePoints& set) {
  std::vector<std::string> escapes;
  for (const CodePoints::Range& range : set.Intersect(Escaped()).ranges()) {
    for (char32_t code = range.low; code <= range.high; ++code) escapes.push_back(JsonEscape(code));
  }
  return escapes;
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
  std::vector<std::string> options;
  if (const CodePoints plain = set.Minus(Escaped()); !plain.empty()) {
    options.push_back(plain.ToClass());
  }
  for (const std::string& escape : JsonEscapes(set)) options.push_back(Literal(escape));
  return Either(options);
}

std::string ToRegex(const CodePoints& set) {
  std::string out = "[";
  const auto append = [&](char32_t code) {
    if (code < 0x80 && std::isalnum(static_cast<unsigned char>(code)) == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<uint32_t>(code));
    } else {
      utf8::Append(code, &out);
    }
  };
  for (const CodePoints::Range& range : set.ranges()) {
    append(range.low);
    if (range.high == range.low) continue;
    out += '-';
    append(range.high);
  }
  return out + "]";
}

std::string ToJsonRegex(const CodePoints& set) {
  const CodePoints plain = set.Minus(Escaped());
  std::string out = plain.empty() ? "" : ToRegex(plain);
  for (const std::string& escape : JsonEscapes(set)) {
    if (!out.empty()) out += '|';
    for (const char c : escape)
      out += ToRegex({{static_cast<char32_t>(c), static_cast<char32_t>(c)}});
  }
  return out;
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
