// The fewest tokens that spell a text, counted from its end: whatever is put in front of a text
// leaves the count of what stands behind it as it is, so that texts which end alike share the work.
// A token that a grammar names by its id stands in the text as named_token::Append writes it.
// One thread at a time. Setting a text takes about a microsecond for each byte that is new.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "grammar/vocabulary.h"

namespace vivace::grammar {

// A byte that UTF-8 does not have, and the id in digits of seven bits.
namespace named_token {
inline constexpr char kMark = '\xFF';
inline constexpr size_t kBytes = 5;
void Append(TokenId token, std::string* text);
// -1: none stands there.
TokenId At(std::string_view text, size_t start);
}  // namespace named_token

class TokenSpelling {
 public:
  static constexpr int32_t kNone = INT32_MAX;

  explicit TokenSpelling(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}

  // What `text` and the last one have in common at their ends is known already.
  void Set(std::string_view text);

  // Of the whole text; kNone: no tokens spell it.
  int32_t tokens() const { return best_.back().tokens; }
  // Those tokens; of equal ways the one whose first are longest. Appends nothing where none do.
  void Append(std::vector<TokenId>* tokens) const;

 private:
  struct Best {
    int32_t tokens = 0;
    TokenId first = -1;
  };
  const Vocabulary* vocabulary_;
  std::string text_;
  std::vector<Best> best_{Best{}};  // by bytes to the end
};

}  // namespace vivace::grammar
