// TextPattern: what a step of a tokenizer's pipeline looks for: a string, a regular expression, a
// known pattern with a scanner of its own, or characters of a kind.
//
// FindAll is linear in the text. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/pretokenizer.h"
#include "text/regex.h"

namespace vivace {

enum class CharKind : uint8_t {  // each character of the kind is a match
  kSpace,
  kPunctuation,
  kNumeric,
};
enum class RunKind : uint8_t {  // each run is a match
  kWordsAndOthers,              // \w+|[^\w\s]+ : what `Whitespace` keeps
};

// A stretch of the text, and whether it matched.
struct Stretch {
  size_t begin, end;
  bool match;
};

class TextPattern {
 public:
  explicit TextPattern(std::string text);
  explicit TextPattern(std::shared_ptr<const Regex> regex);
  explicit TextPattern(Pretokenizer scanner);
  explicit TextPattern(CharKind kind);
  explicit TextPattern(RunKind kind);

  // Matches and what lies between them, in order; together they are the text. Empty matches, which
  // only a Regex gives, are there too: they cut what lies between.
  void FindAll(std::string_view text, std::vector<Stretch>* out) const;

  // Appends `text` to `out` with `content` for each match. `scratch` is memory to be reused.
  void Replace(std::string_view text, std::string_view content, std::vector<Stretch>* scratch,
               std::string* out) const;

  // Bytes that Replace makes of one byte at most; one at least.
  double MostGrowth(std::string_view content) const;

  // The scanner, if it is one; its matches tile every text.
  const Pretokenizer* scanner() const { return std::get_if<Pretokenizer>(&kind_); }
  bool Is(CharKind kind) const {
    const CharKind* own = std::get_if<CharKind>(&kind_);
    return own != nullptr && *own == kind;
  }

 private:
  std::variant<std::string, std::shared_ptr<const Regex>, Pretokenizer, CharKind, RunKind> kind_;
};

}  // namespace vivace
