#include "text/regex_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"
#include "formats/untrusted.h"
#include "text/unicode_class.h"

namespace vivace::regex {
namespace {

using unicode::CategoryMask;

struct LongName {
  std::string_view name, category;
};
constexpr LongName kLongNames[] = {{"Letter", "L"}, {"Mark", "M"},      {"Number", "N"},
                                   {"Symbol", "S"}, {"Separator", "Z"}, {"Punctuation", "P"}};

bool IsAsciiLetter(char32_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

CharClass OfRange(char32_t first, char32_t last) {
  CharClass set;
  set.AddRange(first, last);
  return set;
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}

  Result<Node> Run() {
    VIVACE_ASSIGN(Node node, Choice());
    if (pos_ < pattern_.size()) return Refuse("a ')' too many");
    return node;
  }

 private:
  tl::unexpected<Error> Refuse(std::string_view what) const {
    return Fail(ErrorCode::kUnsupported, "unsupported_regex", "pattern",
                "the pattern '{}' has {}, which is not supported", formats::Printable(pattern_, 80),
                what);
  }

  bool AtEnd() const { return pos_ >= pattern_.size(); }
  char Peek(size_t ahead = 0) const {
    return pos_ + ahead < pattern_.size() ? pattern_[pos_ + ahead] : '\0';
  }
  bool Take(std::string_view text) {
    if (!pattern_.substr(std::min(pos_, pattern_.size())).starts_with(text)) return false;
    pos_ += text.size();
    return true;
  }
  char32_t TakeCharacter() {
    const utf8::Decoded c = utf8::Decode(pattern_, pos_);
    pos_ += c.length;
    return c.code_point;
  }

  Result<Node> Choice() {
    Node choice{.kind = NodeKind::kChoice};
    do {
      VIVACE_ASSIGN(Node branch, Sequence());
      choice.children.push_back(std::move(branch));
    } while (Take("|"));
    if (choice.children.size() > 1) return choice;
    return std::move(choice.children[0]);
  }

  Result<Node> Sequence() {
    Node sequence{.kind = NodeKind::kSequence};
    while (!AtEnd() && Peek() != '|' && Peek() != ')') {
      VIVACE_ASSIGN(Node atom, Atom());
      VIVACE_ASSIGN(atom, Repeats(std::move(atom)));
      sequence.children.push_back(std::move(atom));
    }
    return sequence;
  }

  // {n}, {n,}, {,m}, {n,m}; nothing, and nothing taken, if the braces are plain text.
  std::optional<std::pair<uint32_t, uint32_t>> Braces() {
    size_t at = pos_ + 1;
    const auto number = [&]() -> std::optional<uint32_t> {
      std::optional<uint32_t> value;
      for (; at < pattern_.size() && IsDigit(pattern_[at]); ++at) {
        value = std::min<uint32_t>(value.value_or(0) * 10 + (pattern_[at] - '0'), 1u << 20);
      }
      return value;
    };
    const auto low = number();
    const bool comma = at < pattern_.size() && pattern_[at] == ',';
    if (comma) ++at;
    const auto high = comma ? number() : low;
    if (at >= pattern_.size() || pattern_[at] != '}' || (!low && !high)) return std::nullopt;
    pos_ = at + 1;
    return std::pair(low.value_or(0), high.value_or(kUnbounded));
  }

  Result<Node> Repeats(Node atom) {
    for (;;) {
      Node repeat{.kind = NodeKind::kRepeat};
      bool braces = false;
      if (Take("*")) {
        repeat.max = kUnbounded;
      } else if (Take("+")) {
        repeat.min = 1;
        repeat.max = kUnbounded;
      } else if (Take("?")) {
        repeat.max = 1;
      } else if (const auto bounds = Peek() == '{' ? Braces() : std::nullopt) {
        std::tie(repeat.min, repeat.max) = *bounds;
        braces = true;
      } else {
        return atom;
      }
      // As in Ruby: {n}? and {n,m}+ repeat the repeat; only {n,m}? is lazy.
      const bool exact = braces && repeat.min == repeat.max;
      if (!exact && Take("?")) repeat.greed = Greed::kLazy;
      if (!braces && repeat.greed == Greed::kGreedy && Take("+")) repeat.greed = Greed::kPossessive;
      repeat.children.push_back(std::move(atom));
      atom = std::move(repeat);
    }
  }

  Result<Node> Atom() {
    switch (Peek()) {
      case '(':
        return Group();
      case '[': {
        Node node{.kind = NodeKind::kClass};
        VIVACE_ASSIGN(node.set, Class());
        return Folded(std::move(node));
      }
      case '.': {
        ++pos_;
        Node node{.kind = NodeKind::kClass, .set = OfRange('\n', '\n')};
        node.set.Negate();
        return node;
      }
      case '^':
        ++pos_;
        return Node{.kind = NodeKind::kLineBegin};
      case '$':
        ++pos_;
        return Node{.kind = NodeKind::kLineEnd};
      case '\\':
        return Escape();
      default: {
        const char32_t c = TakeCharacter();
        return Folded({.kind = NodeKind::kClass, .set = OfRange(c, c)});
      }
    }
  }

  // Under (?i), letters match in both cases; only ASCII ones fold simply enough to be exact.
  Result<Node> Folded(Node node) {
    if (!fold_case_) return node;
    if (!node.set.HasOnlyRanges() || node.set.HasRangeBeyondAscii()) {
      return Refuse("a case-blind character class beyond ASCII letters");
    }
    node.set.FoldAsciiCase();
    return node;
  }

  Result<Node> Group() {
    ++pos_;
    Node wrapper;
    bool fold_case = fold_case_;
    bool wraps = true;
    if (Take("?=") || Take("?!")) {
      wrapper = {.kind = NodeKind::kLookAhead, .negative = pattern_[pos_ - 1] == '!'};
    } else if (Take("?<=") || Take("?<!")) {
      wrapper = {.kind = NodeKind::kBehind, .negative = pattern_[pos_ - 1] == '!'};
    } else {
      wraps = false;
      if (Take("?i:")) {
        fold_case = true;
      } else if (Take("?i)")) {
        if (pos_ != 4) return Refuse("(?i) that is not at its begin");
        fold_case_ = true;
        return Node{};
      } else if (Take("?-i:")) {
        fold_case = false;
      } else if (Peek() == '?' && !Take("?:")) {
        return Refuse("a group of a kind");
      }
    }
    const bool outer = std::exchange(fold_case_, fold_case);
    auto inner = Choice();
    fold_case_ = outer;
    if (!inner) return inner;
    if (!Take(")")) return Refuse("an unclosed group");
    if (!wraps) return inner;
    if (wrapper.kind == NodeKind::kBehind) {
      const Node* only = &*inner;
      if (only->kind == NodeKind::kSequence && only->children.size() == 1)
        only = &only->children[0];
      if (only->kind != NodeKind::kClass) return Refuse("a look-behind of more than a character");
      wrapper.set = only->set;
    } else {
      wrapper.children.push_back(std::move(*inner));
    }
    return wrapper;
  }

  Result<Node> Escape() {
    const char kind = Peek(1);
    const auto assertion = [&](NodeKind node, bool negative = false) {
      pos_ += 2;
      return Node{.kind = node, .negative = negative};
    };
    switch (kind) {
      case 'A':
        return assertion(NodeKind::kTextBegin);
      case 'z':
        return assertion(NodeKind::kTextEnd);
      case 'Z':
        return assertion(NodeKind::kTextEndOrNewline);
      case 'b':
      case 'B':
        return assertion(NodeKind::kWordEdge, kind == 'B');
      default: {
        Node node{.kind = NodeKind::kClass};
        std::optional<char32_t> single;
        VIVACE_ASSIGN(node.set, EscapedClass(&single));
        return single ? Folded(std::move(node)) : Result<Node>(std::move(node));
      }
    }
  }

  // \d, \p{L}, \n, \. and so on; `single` is the character if it stands for one.
  Result<CharClass> EscapedClass(std::optional<char32_t>* single) {
    ++pos_;
    const char kind = Peek();
    CharClass set;
    switch (kind) {
      case 's':
      case 'S':
        set.AddSpace();
        break;
      case 'w':
      case 'W':
        set.AddWord();
        break;
      case 'd':
      case 'D':
        set.AddCategories(CategoryMask("Nd"));
        break;
      case 'h':
      case 'H':
        set.AddRange('0', '9');
        set.AddRange('a', 'f');
        set.AddRange('A', 'F');
        break;
      case 'p':
      case 'P':
        return Property();
      default: {
        VIVACE_ASSIGN(const char32_t c, EscapedCharacter());
        *single = c;
        return OfRange(c, c);
      }
    }
    ++pos_;
    if (kind < 'a') set.Negate();
    return set;
  }

  Result<CharClass> Property() {
    bool negated = Peek() == 'P';
    const size_t end = pattern_.find('}', pos_);
    if (Peek(1) != '{' || end == std::string_view::npos) return Refuse("a property without a name");
    std::string_view name = pattern_.substr(pos_ + 2, end - pos_ - 2);
    pos_ = end + 1;
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    for (const LongName& entry : kLongNames) {
      if (entry.name == name) name = entry.category;
    }
    CharClass set;
    const auto scripts = unicode::ScriptRanges(name);
    set.AddCategories(CategoryMask(name));
    for (const auto& range : scripts) set.AddRange(range.first, range.last);
    if (CategoryMask(name) == 0 && scripts.empty()) {
      return Refuse(fmt::format("the property '{}'", formats::Printable(name, 32)));
    }
    if (negated) set.Negate();
    return set;
  }

  Result<char32_t> EscapedCharacter() {
    constexpr std::string_view kLetters = "nrtfvae", kMeanings = "\n\r\t\f\v\a\x1B";
    const char kind = Peek();
    if (const size_t at = kLetters.find(kind); kind != '\0' && at != std::string_view::npos) {
      ++pos_;
      return static_cast<char32_t>(kMeanings[at]);
    }
    if (kind == 'x' || kind == 'u') return HexCharacter();
    if (IsDigit(kind) || IsAsciiLetter(static_cast<unsigned char>(kind))) {
      return Refuse(fmt::format("\\{}", kind));
    }
    return TakeCharacter();
  }

  // \xHH, \x{H...}, \uHHHH.
  Result<char32_t> HexCharacter() {
    const size_t width = Peek() == 'x' ? 2 : 4;
    const bool braces = Peek() == 'x' && Peek(1) == '{';
    pos_ += braces ? 2 : 1;
    char32_t value = 0;
    size_t digits = 0;
    for (; digits < (braces ? 6 : width) && HexDigit(Peek()) >= 0; ++pos_, ++digits) {
      value = value * 16 + static_cast<char32_t>(HexDigit(Peek()));
    }
    if (digits == 0 || (!braces && digits != width) || (braces && !Take("}")) || value > 0x10FFFF) {
      return Refuse("a hexadecimal character that is not one");
    }
    // \x80 to \xFF are bytes to Oniguruma, parts of a character.
    if (width == 2 && !braces && value >= 0x80) return Refuse("a byte that is not ASCII");
    return value;
  }

  // [...], with nested classes and intersections: [a-z&&[^b]].
  Result<CharClass> Class() {
    ++pos_;
    CharClass set;
    const bool negated = Take("^");
    for (bool first = true; first || Peek() != ']'; first = false) {
      if (AtEnd()) return Refuse("an unclosed character class");
      if (Take("&&")) {
        // What follows, up to the end, is the other side.
        pos_ -= 1;
        const size_t open = pos_;
        VIVACE_ASSIGN(CharClass other, ClassAfter(open));
        set.IntersectWith(std::move(other));
        if (negated) set.Negate();
        return set;
      }
      if (Peek() == '[') {
        if (Peek(1) == ':') return Refuse("a POSIX bracket");
        VIVACE_ASSIGN(CharClass inner, Class());
        set.AddSet(std::move(inner));
        continue;
      }
      VIVACE_RETURN_IF_ERROR(ClassItem(&set));
    }
    ++pos_;
    if (negated) set.Negate();
    return set;
  }

  // The rest of a class as if it began at `open`, where no '^' is special any more.
  Result<CharClass> ClassAfter(size_t open) {
    pos_ = open;
    if (Peek(1) == '^') return Refuse("an intersection with '^'");
    return Class();
  }

  Status ClassItem(CharClass* set) {
    std::optional<char32_t> first;
    if (Peek() == '\\') {
      if (Peek(1) == 'b') return Refuse("\\b in a character class");
      VIVACE_ASSIGN(CharClass escaped, EscapedClass(&first));
      if (!first) {
        set->AddSet(std::move(escaped));
        return {};
      }
    } else {
      first = TakeCharacter();
    }
    char32_t last = *first;
    if (Peek() == '-' && Peek(1) != ']' && Peek(1) != '\0') {
      ++pos_;
      if (Peek() == '[') return Refuse("a range that ends in a class");
      if (Peek() == '\\') {
        std::optional<char32_t> end;
        VIVACE_ASSIGN(const CharClass ignored, EscapedClass(&end));
        if (!end) return Refuse("a range that ends in a class");
        last = *end;
      } else {
        last = TakeCharacter();
      }
      if (last < *first) return Refuse("a range whose ends are the wrong way round");
    }
    set->AddRange(*first, last);
    return {};
  }

  std::string_view pattern_;
  size_t pos_ = 0;
  bool fold_case_ = false;
};

}  // namespace

Result<Node> ParseRegex(std::string_view pattern) { return Parser(pattern).Run(); }

}  // namespace vivace::regex
