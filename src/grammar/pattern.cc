#include "grammar/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/utf8.h"
#include "grammar/ebnf.h"

namespace vivace::grammar {
namespace {

constexpr int64_t kMostNormalised = 20'000;      // parts that normalising may write
constexpr int64_t kMostAmbiguousStates = 2'000;  // of a repeat that overlaps itself

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
  static const CodePoints escaped = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  return escaped;
}

std::vector<std::string> JsonEscapes(const CodePoints& set) {
  std::vector<std::string> escapes;
  const CodePoints escaped = set.Intersect(Escaped());
  for (const CodePoints::Range& range : escaped.ranges()) {
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

namespace {

bool Nullable(const Pattern& pattern) { return LengthsOf(pattern).min == 0; }

// What `pattern` matches but the empty text; nothing: it matches no other. `again`: it may follow
// itself without bound, so that one part of a row at a time will do. `budget` falls with what is
// written anew.
std::optional<Pattern> NotEmpty(const Pattern& pattern, bool again, int64_t* budget) {
  if (--*budget < 0 || !Nullable(pattern)) return pattern;
  if (pattern.kind == Pattern::Kind::kRepeat) {  // of something that isn't empty
    Pattern some = pattern;
    some.min = 1;
    return some;
  }
  // One of the options or, of parts in a row, the first that isn't empty and what follows it.
  Pattern either;
  either.kind = Pattern::Kind::kEither;
  for (size_t i = 0; i < pattern.parts.size(); ++i) {
    auto first = NotEmpty(pattern.parts[i], again, budget);
    if (!first) continue;
    if (again || pattern.kind == Pattern::Kind::kEither) {
      either.parts.push_back(std::move(*first));
      continue;
    }
    Pattern row;
    row.parts.push_back(std::move(*first));
    row.parts.insert(row.parts.end(), pattern.parts.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                     pattern.parts.end());
    *budget -= static_cast<int64_t>(row.parts.size());
    if (*budget < 0) return pattern;
    either.parts.push_back(std::move(row));
  }
  if (either.parts.empty()) return std::nullopt;
  if (either.parts.size() == 1) return std::move(either.parts[0]);
  return either;
}

bool Normalise(Pattern* pattern, int64_t* budget) {
  for (Pattern& part : pattern->parts) {
    if (!Normalise(&part, budget)) return false;
  }
  if (pattern->kind != Pattern::Kind::kRepeat || !Nullable(pattern->parts[0])) return true;
  auto part = NotEmpty(pattern->parts[0], pattern->max == kUnbounded, budget);
  if (*budget < 0) return false;
  if (!part) {
    *pattern = {};
    return true;
  }
  // (q+)* is q*.
  while (part->kind == Pattern::Kind::kRepeat && part->min == 1 &&
         (part->max == 1 || (part->max == kUnbounded && pattern->max == kUnbounded))) {
    Pattern inner = std::move(part->parts[0]);
    *part = std::move(inner);
  }
  *pattern = Pattern::Repeated(std::move(*part), 0, pattern->max);
  return true;
}

}  // namespace

bool NormaliseRepeats(Pattern* pattern) {
  int64_t budget = kMostNormalised;
  return Normalise(pattern, &budget);
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

// One class for each length of UTF-8: of a range over several, xgrammar takes all lead and
// continuation bytes, and so overlong forms.
std::string ToRegex(const CodePoints& set) {
  constexpr CodePoints::Range kLengths[] = {
      {0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xFFFF}, {0x10000, 0x10FFFF}};
  std::string out;
  const auto append = [&](char32_t code) {
    if (code < 0x80 && std::isalnum(static_cast<unsigned char>(code)) == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<uint32_t>(code));
    } else {
      utf8::Append(code, &out);
    }
  };
  for (const CodePoints::Range& length : kLengths) {
    const CodePoints part = set.Intersect({length});
    if (part.empty()) continue;
    out += out.empty() ? "[" : "|[";
    for (const CodePoints::Range& range : part.ranges()) {
      append(range.low);
      if (range.high == range.low) continue;
      out += '-';
      append(range.high);
    }
    out += ']';
  }
  return out;
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

namespace {

constexpr int64_t kMostCopies = 128;  // xgrammar counts a longer repeat instead of writing it out

// The characters that a match may begin with, those by which it may go on where it could end, and
// all it may have.
struct Reach {
  CodePoints first, more, all;
  bool nullable = false;
};

using Repeats = std::unordered_set<const Pattern*>;

// Also notes the repeats of which a text may be cut into parts in several ways, as in
// ([a-z]+ ?){1,50}. Too much of `more`, where one alternative may begin as another does: (a|aa).
Reach Survey(const Pattern& pattern, Repeats* overlapping) {
  Reach reach;
  switch (pattern.kind) {
    case Pattern::Kind::kSet:
      reach.first = reach.all = pattern.set;
      break;
    case Pattern::Kind::kConcat: {
      reach.nullable = true;
      for (const Pattern& part : pattern.parts) {
        const Reach one = Survey(part, overlapping);
        reach.all.Add(one.all);
        if (reach.nullable) reach.first.Add(one.first);
        if (!one.nullable) reach.more = {};
        reach.more.Add(one.more);
        if (one.nullable) reach.more.Add(one.first);
        reach.nullable = reach.nullable && one.nullable;
      }
      break;
    }
    case Pattern::Kind::kEither: {
      bool alike = false;
      for (const Pattern& part : pattern.parts) {
        const Reach one = Survey(part, overlapping);
        alike = alike || !reach.first.Intersect(one.first).empty();
        reach.all.Add(one.all);
        reach.first.Add(one.first);
        reach.more.Add(one.more);
        reach.nullable = reach.nullable || one.nullable;
      }
      if (alike && LengthsOf(pattern).max != 1) reach.more.Add(reach.all);
      break;
    }
    case Pattern::Kind::kRepeat:
      reach = Survey(pattern.parts[0], overlapping);
      if (pattern.max != 1) {
        if (!reach.more.Intersect(reach.first).empty()) overlapping->insert(&pattern);
        reach.more.Add(reach.first);
      }
      reach.nullable = reach.nullable || pattern.min == 0;
      break;
  }
  return reach;
}

// About how many states it has, written out.
int64_t StatesOf(const Pattern& pattern) {
  if (pattern.kind == Pattern::Kind::kSet) {
    int64_t states = 0;
    for (const CodePoints::Range& range : pattern.set.ranges()) states += range.high < 0x80 ? 1 : 4;
    return states;
  }
  int64_t states = 0;
  for (const Pattern& part : pattern.parts) states = Plus(states, StatesOf(part));
  if (pattern.kind != Pattern::Kind::kRepeat) return states;
  return Times(states, std::max<int64_t>(pattern.max == kUnbounded ? pattern.min : pattern.max, 1));
}

// In pieces that are written out.
std::string RepeatAsRegex(const std::string& part, int64_t min, int64_t max) {
  std::string out;
  for (; min > kMostCopies; min -= kMostCopies) {
    out += fmt::format("{}{{{}}}", part, kMostCopies);
    if (max != kUnbounded) max -= kMostCopies;
  }
  if (max == kUnbounded) {
    return out + (min == 0   ? part + "*"
                  : min == 1 ? part + "+"
                             : fmt::format("{}{{{},}}", part, min));
  }
  for (; max > kMostCopies; max -= kMostCopies, min = 0) {
    out += fmt::format("{}{{{},{}}}", part, min, kMostCopies);
  }
  return max == 0 ? out : out + fmt::format("{}{{{},{}}}", part, min, max);
}

// As a regular expression of xgrammar's.
std::string AsRegex(const Pattern& pattern, Spelling spelling) {
  std::string out;
  switch (pattern.kind) {
    case Pattern::Kind::kSet:
      out = spelling == Spelling::kRaw ? ToRegex(pattern.set) : ToJsonRegex(pattern.set);
      break;
    case Pattern::Kind::kConcat:
      for (const Pattern& part : pattern.parts) out += AsRegex(part, spelling);
      break;
    case Pattern::Kind::kEither:
      for (const Pattern& part : pattern.parts) {
        if (LengthsOf(part).max == 0) continue;  // nothing: see below
        if (!out.empty()) out += '|';
        out += AsRegex(part, spelling);
      }
      if (Nullable(pattern)) out = fmt::format("(?:{})?", out);
      break;
    case Pattern::Kind::kRepeat:
      out = RepeatAsRegex(AsRegex(pattern.parts[0], spelling), pattern.min, pattern.max);
      break;
  }
  return fmt::format("(?:{})", out);
}

std::string Write(const Pattern& pattern, Spelling spelling, const Repeats& overlapping) {
  // As rules, each way to cut a text would be followed on its own; one automaton has them in
  // common.
  if (overlapping.contains(&pattern)) {
    return fmt::format("Regex({})", Literal(AsRegex(pattern, spelling)));
  }
  if (pattern.kind == Pattern::Kind::kSet) return ToExpression(pattern.set, spelling);
  std::vector<std::string> parts;
  for (const Pattern& part : pattern.parts) parts.push_back(Write(part, spelling, overlapping));
  if (pattern.kind == Pattern::Kind::kConcat) return Seq(parts);
  if (pattern.kind == Pattern::Kind::kEither) return Either(parts);
  return Repeat(parts[0], pattern.min, pattern.max);
}

}  // namespace

bool IsTooAmbiguous(const Pattern& pattern) {
  Repeats overlapping;
  Survey(pattern, &overlapping);
  return std::ranges::any_of(
      overlapping, [](const Pattern* repeat) { return StatesOf(*repeat) > kMostAmbiguousStates; });
}

std::string ToExpression(const Pattern& pattern, Spelling spelling) {
  Repeats overlapping;
  Survey(pattern, &overlapping);
  return Write(pattern, spelling, overlapping);
}

}  // namespace vivace::grammar
