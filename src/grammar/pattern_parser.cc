#include <algorithm>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/utf8.h"
#include "grammar/ebnf.h"
#include "grammar/pattern.h"
#include "text/unicode_class.h"

namespace vivace::grammar {
namespace {

// What an escape may stand for: the characters that every dialect counts in, and all that any does.
// A negated class leaves out the latter.
struct Class {
  CodePoints surely, maybe;
  void Add(const Class& other) {
    surely.Add(other.surely);
    maybe.Add(other.maybe);
  }
};

Class Same(CodePoints set) { return {set, set}; }

const CodePoints kAsciiWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CodePoints kDigits = {{'0', '9'}};
// Not a word, digit or space character in any dialect: ASCII, and general punctuation.
const CodePoints kNeverWord = {{1, '/'},   {':', '@'},  {'[', '^'},
                               {'`', '`'}, {'{', 0x7F}, {0x2010, 0x2027}};
const CodePoints kNeverDigit = {{1, '/'}, {':', 0x65F}, {0x2010, 0x2027}, {0x3041, 0xA4CF}};
const CodePoints kSpaces = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},
                            {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
                            {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
const CodePoints kMaybeSpaces = [] {
  CodePoints set = kSpaces;
  set.Add(0x1C, 0x1F);
  set.Add(0x85, 0x85);
  set.Add(0xFEFF, 0xFEFF);
  return set;
}();
const CodePoints kLineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}, {0x85, 0x85}};

std::optional<Class> ClassEscape(char32_t letter) {
  switch (letter) {
    case 'd':
      return Class{kDigits, kNeverDigit.Complement()};
    case 'D':
      return Class{kNeverDigit, kDigits.Complement()};
    case 'w':
      return Class{kAsciiWord, kNeverWord.Complement()};
    case 'W':
      return Class{kNeverWord, kAsciiWord.Complement()};
    case 's':
      return Class{kSpaces, kMaybeSpaces};
    case 'S':
      return Class{kMaybeSpaces.Complement(), kSpaces.Complement()};
    default:
      return std::nullopt;
  }
}

constexpr std::string_view kNoReferences =
    "refers back to a group, and a grammar cannot compare; write the texts that may stand there as "
    "alternatives";

// Of a general category or a script; empty: no such name.
CodePoints CodePointsOf(std::string_view name) {
  CodePoints set;
  for (const auto& range : unicode::ScriptRanges(name)) set.Add(range.first, range.last);
  const uint32_t mask = unicode::CategoryMask(name);
  for (char32_t code = 0, low = 0; mask != 0 && code <= 0x110000; ++code) {
    if (code <= 0x10FFFF && ((mask >> unicode::CategoryOf(code)) & 1) != 0) continue;
    if (low < code) set.Add(low, code - 1);
    low = code + 1;
  }
  return set;
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view field) : text_(text), field_(field) {}

  Result<Pattern> Parse() {
    if (text_.size() > limits::kMaxRegexBytes) {
      return Fail(ErrorCode::kInvalidArgument, "pattern_too_long", std::string(field_),
                  "the pattern has {} bytes; at most {} are taken", text_.size(),
                  limits::kMaxRegexBytes);
    }
    if (!utf8::IsValid(text_)) return Refuse("it is not UTF-8");
    VIVACE_ASSIGN(Pattern pattern, ParseEither(0));
    if (!AtEnd()) return Refuse("')' closes no group");
    if (!NormaliseRepeats(&pattern)) return Refuse("its repeats of what may be empty are too many");
    if (Repeats(pattern) > limits::kMaxGrammarRepeat) {
      return Refuse("its repeats of repeats multiply to more than {}", limits::kMaxGrammarRepeat);
    }
    if (IsTooAmbiguous(pattern)) {
      return Refuse(
          "a text can be cut into the parts of its repeats in too many ways; let each part end in "
          "what cannot begin or continue one, as in ([a-z]+ ){{0,49}}[a-z]+, or lower the counts");
    }
    return pattern;
  }

 private:
  // How often the most repeated part is written, where counts say so.
  static int64_t Repeats(const Pattern& pattern) {
    int64_t most = 1;
    for (const Pattern& part : pattern.parts) most = std::max(most, Repeats(part));
    if (pattern.kind != Pattern::Kind::kRepeat) return most;
    const int64_t times = std::max<int64_t>({pattern.min, pattern.max, 1});
    return most > limits::kMaxGrammarRepeat ? most : most * times;
  }

  template <typename... Args>
  tl::unexpected<Error> Refuse(fmt::format_string<Args...> format, Args&&... args) const {
    return Fail(ErrorCode::kInvalidArgument, "bad_pattern", std::string(field_),
                "the pattern cannot be used: {} (at byte {})",
                fmt::format(format, std::forward<Args>(args)...), pos_);
  }

  // A construct that begins at `start` and that a grammar cannot hold to.
  tl::unexpected<Error> Beyond(size_t start, std::string_view instead) const {
    return Fail(ErrorCode::kInvalidArgument, "bad_pattern", std::string(field_),
                "the pattern cannot be used: '{}' (at byte {}) {}",
                text_.substr(start, std::min<size_t>(pos_ - start, 20)), start, instead);
  }

  bool AtEnd() const { return pos_ >= text_.size(); }
  char Peek(size_t ahead = 0) const {
    return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0';
  }
  bool Take(char c) {
    if (Peek() != c || AtEnd()) return false;
    ++pos_;
    return true;
  }
  char32_t NextCodePoint() {
    const utf8::Decoded decoded = utf8::Decode(text_, pos_);
    pos_ += decoded.length;
    return decoded.code_point;
  }

  Result<Pattern> ParseEither(size_t depth) {
    if (depth > limits::kMaxRegexDepth) return Refuse("its groups nest too deeply");
    Pattern either;
    either.kind = Pattern::Kind::kEither;
    do {
      VIVACE_ASSIGN(Pattern option, ParseConcat(depth));
      either.parts.push_back(std::move(option));
    } while (Take('|'));
    if (either.parts.size() == 1) return std::move(either.parts[0]);
    return either;
  }

  // Anchors say nothing where the whole text is matched, and nothing else could match elsewhere.
  Result<Pattern> ParseConcat(size_t depth) {
    Pattern concat;
    if (Peek() == '^' && !AtEnd()) {
      if (depth > 0) return Refuse("'^' inside a group");
      ++pos_;
    }
    while (!AtEnd() && Peek() != '|' && Peek() != ')') {
      if (Peek() == '$') {
        if (depth > 0 || (pos_ + 1 < text_.size() && Peek(1) != '|')) {
          return Refuse("'$' is not at the end");
        }
        ++pos_;
        break;
      }
      VIVACE_ASSIGN(Pattern atom, ParseAtom(depth));
      VIVACE_ASSIGN(Pattern repeated, ParseRepeat(std::move(atom)));
      concat.parts.push_back(std::move(repeated));
    }
    if (concat.parts.size() == 1) return std::move(concat.parts[0]);
    return concat;
  }

  Result<Pattern> ParseRepeat(Pattern atom) {
    int64_t min = 0, max = 0;
    if (Take('*')) {
      max = kUnbounded;
    } else if (Take('+')) {
      min = 1, max = kUnbounded;
    } else if (Take('?')) {
      max = 1;
    } else if (Peek() == '{') {
      VIVACE_RETURN_IF_ERROR(ParseCounts(&min, &max));
    } else {
      return atom;
    }
    Take('?');  // lazy: the same texts match
    const char next = Peek();
    if (next == '*' || next == '+' || next == '?' || next == '{') {
      return Refuse("two repeats of one thing");
    }
    if (max == 0) return Pattern{};
    return Pattern::Repeated(std::move(atom), min, max);
  }

  Status ParseCounts(int64_t* min, int64_t* max) {
    ++pos_;
    VIVACE_ASSIGN(*min, ParseCount());
    *max = *min;
    if (Take(',')) {
      *max = kUnbounded;
      if (Peek() != '}') {
        VIVACE_ASSIGN(*max, ParseCount());
        if (*max < *min) return Refuse("a repeat whose most is under its least");
      }
    }
    if (!Take('}')) return Refuse("'{{' begins no repeat; write '\\{{' for the character");
    return {};
  }

  Result<int64_t> ParseCount() {
    int64_t count = 0;
    const size_t start = pos_;
    while (Peek() >= '0' && Peek() <= '9') {
      count = count * 10 + (Peek() - '0');
      ++pos_;
      if (count > limits::kMaxGrammarRepeat) {
        return Refuse("it repeats something more than {} times", limits::kMaxGrammarRepeat);
      }
    }
    if (pos_ == start) return Refuse("'{{' begins no repeat; write '\\{{' for the character");
    return count;
  }

  Result<Pattern> ParseAtom(size_t depth) {
    const char c = Peek();
    if (c == '(') return ParseGroup(depth);
    if (c == '[') return ParseSet();
    if (c == '*' || c == '+' || c == '?' || c == '{') return Refuse("a repeat of nothing");
    if (c == '^') return Refuse("'^' is not at the start");
    if (c == '.') {
      ++pos_;
      return Pattern::Of(kLineEnds.Complement());
    }
    if (c == '\\') {
      VIVACE_ASSIGN(Class escape, ParseEscape(/*in_set=*/false));
      return Pattern::Of(std::move(escape.surely));
    }
    const char32_t code = NextCodePoint();
    if (code == 0) return Refuse("it has a NUL character");
    return Pattern::Of({{code, code}});
  }

  tl::unexpected<Error> RefuseGroup(size_t start, bool python) {
    const bool behind = Take('<');
    const char kind = Peek();
    if (!AtEnd()) ++pos_;
    if (kind == '=' && python) return Beyond(start, kNoReferences);
    if (kind == '=' || kind == '!') {
      return Beyond(start, behind
                               ? "looks behind, which a grammar cannot; say in the pattern itself "
                                 "what may come in that place"
                               : "looks ahead, which a grammar cannot; write what may follow in "
                                 "its place (alternatives, classes such as [^x])");
    }
    return Beyond(start,
                  "begins a group with flags or of a kind that is not offered; groups are (...), "
                  "(?:...) and (?<name>...), and letters of both cases are written [aA]");
  }

  Result<Pattern> ParseGroup(size_t depth) {
    const size_t start = pos_++;
    if (Take('?')) {
      if (!Take(':')) {
        const bool python = Take('P');
        const bool named = Peek() == '<' && Peek(1) != '=' && Peek(1) != '!';
        if (!named) return RefuseGroup(start, python);
        const size_t end = text_.find('>', pos_);
        if (end == std::string_view::npos) return Refuse("a group's name has no end");
        pos_ = end + 1;
      }
    }
    VIVACE_ASSIGN(Pattern inner, ParseEither(depth + 1));
    if (!Take(')')) return Refuse("a group is not closed");
    return inner;
  }

  Result<Pattern> ParseSet() {
    ++pos_;
    const bool negated = Take('^');
    Class all;
    if (Peek() == ']') return Refuse("an empty class");
    while (!Take(']')) {
      if (AtEnd()) return Refuse("a class is not closed");
      VIVACE_ASSIGN(Class low, ParseSetItem());
      if (Peek() == '-' && Peek(1) != ']' && pos_ + 1 < text_.size()) {
        ++pos_;
        VIVACE_ASSIGN(Class high, ParseSetItem());
        const auto single = [](const Class& c) {
          const auto& r = c.surely.ranges();
          return r.size() == 1 && r[0].low == r[0].high;
        };
        if (!single(low) || !single(high)) return Refuse("a class as the end of a range");
        const char32_t from = low.surely.ranges()[0].low, to = high.surely.ranges()[0].low;
        if (to < from) return Refuse("a range whose end is before its start");
        low = Same({{from, to}});
      }
      all.Add(low);
    }
    CodePoints set = negated ? all.maybe.Complement() : all.surely;
    if (set.empty()) return Refuse("a class with no character");
    return Pattern::Of(std::move(set));
  }

  Result<Class> ParseSetItem() {
    if (Peek() == '\\') return ParseEscape(/*in_set=*/true);
    if (Peek() == '[' && (Peek(1) == ':' || Peek(1) == '.' || Peek(1) == '=')) {
      return Refuse("POSIX classes are not offered");
    }
    const char32_t code = NextCodePoint();
    if (code == 0) return Refuse("it has a NUL character");
    return Same({{code, code}});
  }

  Result<Class> ParseEscape(bool in_set) {
    const size_t start = pos_++;
    if (AtEnd()) return Refuse("it ends with a backslash");
    const char32_t c = NextCodePoint();
    if (auto cls = ClassEscape(c)) return *cls;
    const auto one = [](char32_t code) { return Same({{code, code}}); };
    switch (c) {
      case 't':
        return one('\t');
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case 'x':
        return ParseHex(2);
      case 'u':
        return ParseUnicode();
      case 'b':
        if (in_set) return one('\b');
        break;
      case 'c':
        return ParseControl(start);
      case 'p':
      case 'P':
        return ParseProperty(start, c == 'P');
      case '0':
        if (Peek() < '0' || Peek() > '9') return one(0);
        break;
      default:
        break;
    }
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter) return RefuseEscape(start, static_cast<char>(c));
    return one(c);
  }

  tl::unexpected<Error> RefuseEscape(size_t start, char letter) const {
    switch (letter) {
      case 'b':
      case 'B':
        return Beyond(start,
                      "asks whether a word ends here, which a grammar cannot; write what may stand "
                      "in this place, such as a space");
      case 'A':
      case 'Z':
      case 'z':
      case 'G':
        return Beyond(start, "is not offered; the whole text is matched, so leave it out");
      case 'k':
        return Beyond(start, kNoReferences);
      default:
        if (letter >= '0' && letter <= '9') return Beyond(start, kNoReferences);
        return Beyond(start,
                      "is no escape that is offered; for the letter itself leave the "
                      "backslash out");
    }
  }

  // \cJ, a control character.
  Result<Class> ParseControl(size_t start) {
    const char letter = Peek();
    const bool known = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    if (!known) return Beyond(start, "needs a letter behind it");
    ++pos_;
    const auto code = static_cast<char32_t>(letter & 0x1F);
    return Same({{code, code}});
  }

  // \p{Lu}, \p{Script=Greek}, \P{L}.
  Result<Class> ParseProperty(size_t start, bool negated) {
    std::string_view name = text_.substr(pos_, AtEnd() ? 0 : 1);
    if (Take('{')) {
      const size_t end = text_.find('}', pos_);
      if (end == std::string_view::npos) return Beyond(start, "is not closed");
      name = text_.substr(pos_, end - pos_);
      pos_ = end + 1;
    } else {
      pos_ += name.size();
    }
    if (const size_t equals = name.find('='); equals != std::string_view::npos) {
      name.remove_prefix(equals + 1);  // General_Category=, gc=, Script=, sc=
    }
    if (properties_++ == kMostProperties) return Refuse("it has too many of '\\p'");
    CodePoints set = CodePointsOf(name);
    if (set.empty()) {
      return Beyond(start,
                    "names no category or script that is known; categories are such as L, Lu, Nd, "
                    "P, scripts such as Greek");
    }
    if (negated) set = set.Complement();
    return Same(set.Intersect(CodePoints::All()));
  }

  Result<Class> ParseUnicode() {
    if (Take('{')) {
      VIVACE_ASSIGN(Class one, ParseHex(0));
      if (!Take('}')) return Refuse("'\\u{{' is not closed");
      return one;
    }
    return ParseHex(4);
  }

  // `digits` of them, or up to 6 for 0.
  Result<Class> ParseHex(size_t digits) {
    char32_t code = 0;
    size_t count = 0;
    for (; count < (digits == 0 ? 6 : digits); ++count) {
      const char c = Peek();
      const int value = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (value < 0) break;
      code = code * 16 + static_cast<char32_t>(value);
      ++pos_;
    }
    const bool scalar = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    if (count == 0 || (digits > 0 && count < digits)) return Refuse("hexadecimal digits missing");
    if (!scalar) return Refuse("U+{:04X} is not a character", static_cast<uint32_t>(code));
    return Same({{code, code}});
  }

  static constexpr int kMostProperties = 16;  // each looks at all of Unicode

  std::string_view text_;
  std::string_view field_;
  size_t pos_ = 0;
  int properties_ = 0;
};

}  // namespace

Result<Pattern> ParsePattern(std::string_view text, std::string_view field) {
  return Parser(text, field).Parse();
}

}  // namespace vivace::grammar
