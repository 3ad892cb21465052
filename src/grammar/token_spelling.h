// The fewest tokens that spell a text, counted from its end: whatever is put in front of a text
// leaves the count of what stands behind it as it is, so that texts which end alike share the work.
// One thread at a time. Setting a text takes about a microsecond for each byte that is new.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "grammar/vocabulary.h"

namespace vivace::grammar {

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
