#include "text/regex_syntax.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/limits.h"

namespace vivace {
namespace {

// One pass over the pattern with an explicit stack of open groups. `expansion` counts atoms with
// repeats written out, saturating far above the limit.
class Checker {
 public:
  explicit Checker(std::string_view pattern) : pattern_(pattern) {}

  Status Run() {
    if (pattern_.size() > limits::kMaxRegexBytes) return Limit("is too long");
    while (pos_ < pattern_.size()) VIVACE_RETURN_IF_ERROR(Step());
    if (groups_.size() > 1) return Bad("has an unclosed group");
    return {};
  }

 private:
  struct Group {
    uint64_t expansion = 0;        // of what is complete
    std::optional<uint64_t> atom;  // what a repeat would repeat; not yet in `expansion`
  };
  static constexpr uint64_t kSaturated = uint64_t{1} << 40;

  static tl::unexpected<Error> Limit(std::string_view what) {
    return Fail(ErrorCode::kUnsupported, "regex_limit", "pattern", "the pattern {}", what);
  }
  tl::unexpected<Error> Bad(std::string_view what) const {
    return Fail(ErrorCode::kCorruptData, "bad_regex", "pattern", "the pattern {} at byte {}", what,
                std::min(pos_, pattern_.size()));
  }
  char At(size_t pos) const { return pos < pattern_.size() ? pattern_[pos] : '\0'; }

  Status CloseAtom() {
    Group& group = groups_.back();
    group.expansion = std::min(group.expansion + group.atom.value_or(0), kSaturated);
    group.atom.reset();
    if (group.expansion > limits::kMaxRegexExpansion) return Limit("repeats too much");
    return {};
  }
  Status NewAtom(uint64_t expansion) {
    VIVACE_RETURN_IF_ERROR(CloseAtom());
    groups_.back().atom = expansion;
    return {};
  }

  Status Step() {
    const char c = pattern_[pos_];
    switch (c) {
      case '(':
        return OpenGroup();
      case ')':
        return CloseGroup();
      case '[':
        return SkipClass();
      case '\\':
        return SkipEscape();
      case '*':
      case '+':
      case '?':
        ++pos_;
        return Repeat(1);
      case '{':
        return Braces();
      case '|':
      case '^':
      case '$':
        ++pos_;
        return CloseAtom();
      default:
        ++pos_;
        return NewAtom(1);
    }
  }

  Status OpenGroup() {
    VIVACE_RETURN_IF_ERROR(CloseAtom());
    ++pos_;
    if (At(pos_) == '?') {
      ++pos_;
      const size_t end = pattern_.find_first_of(":=!>)", pos_);
      const std::string_view kind =
          pattern_.substr(pos_, end == std::string_view::npos ? 0 : end - pos_ + 1);
      if (kind.empty() ||
          kind.find_first_not_of("imsx-<abcdefghijklmnopqrstuvwxyz_0123456789:=!>)") !=
              std::string_view::npos) {
        return Bad("has a group of unknown kind");
      }
      pos_ = end + (kind.back() == ')' ? 0 : 1);
    }
    if (groups_.size() > limits::kMaxRegexDepth) return Limit("is nested too deeply");
    groups_.emplace_back();
    return {};
  }

  Status CloseGroup() {
    if (groups_.size() == 1) return Bad("closes a group that is not open");
    VIVACE_RETURN_IF_ERROR(CloseAtom());
    ++pos_;
    const uint64_t expansion = groups_.back().expansion;
    groups_.pop_back();
    return NewAtom(std::max<uint64_t>(expansion, 1));
  }

  Status SkipEscape() {
    const char kind = At(pos_ + 1);
    if (pos_ + 1 >= pattern_.size()) return Bad("ends with a backslash");
    pos_ += 2;
    if (kind == 'p' || kind == 'P') {
      const size_t end = pattern_.find('}', pos_);
      if (At(pos_) != '{' || end == std::string_view::npos || end == pos_ + 1) {
        return Bad("has a property without a name");
      }
      pos_ = end + 1;
    }
    return NewAtom(1);
  }

  // [...], with nested classes: [a-z&&[^b]].
  Status SkipClass() {
    size_t depth = 0;
    do {
      if (pos_ >= pattern_.size()) return Bad("has an unclosed character class");
      const char c = pattern_[pos_++];
      if (c == '\\') ++pos_;
      if (c == ']') --depth;
      if (c != '[') continue;
      ++depth;
      if (At(pos_) == '^') ++pos_;
      if (At(pos_) == ']') ++pos_;  // a ] in the first place stands for itself
    } while (depth > 0);
    return NewAtom(1);
  }

  // {n}, {n,}, {,m}, {n,m}; anything else in braces is plain text.
  Status Braces() {
    size_t at = pos_ + 1;
    const auto number = [&]() -> std::optional<uint64_t> {
      std::optional<uint64_t> value;
      for (; At(at) >= '0' && At(at) <= '9'; ++at) {
        value = std::min(value.value_or(0) * 10 + static_cast<uint64_t>(At(at) - '0'), kSaturated);
      }
      return value;
    };
    const auto low = number();
    const bool comma = At(at) == ',';
    if (comma) ++at;
    const auto high = comma ? number() : low;
    if (At(at) != '}' || (!low && !high)) {
      ++pos_;
      return NewAtom(1);
    }
    pos_ = at + 1;
    if (low && high && *low > *high)
      return Bad("has a repeat whose bounds are the wrong way round");
    return Repeat(std::max({low.value_or(0), high.value_or(0), uint64_t{1}}));
  }

  Status Repeat(uint64_t times) {
    std::optional<uint64_t>& atom = groups_.back().atom;
    if (!atom) return Bad("repeats nothing");
    if (times > limits::kMaxRegexExpansion) return Limit("repeats too much");
    *atom = std::min(*atom * times, kSaturated);
    if (*atom > limits::kMaxRegexExpansion) return Limit("repeats too much");
    return {};  // a further ? or + only makes it lazy or possessive
  }

  std::string_view pattern_;
  size_t pos_ = 0;
  std::vector<Group> groups_ = std::vector<Group>(1);
};

}  // namespace

Status CheckRegex(std::string_view pattern) { return Checker(pattern).Run(); }

}  // namespace vivace
