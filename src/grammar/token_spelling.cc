#include "grammar/token_spelling.h"

#include <algorithm>

namespace vivace::grammar {

void TokenSpelling::Set(std::string_view text) {
  const auto common = static_cast<size_t>(
      std::mismatch(text.rbegin(), text.rend(), text_.rbegin(), text_.rend()).first -
      text.rbegin());
  text_ = text;
  best_.resize(common + 1);
  for (size_t left = common + 1; left <= text_.size(); ++left) {
    Best here{kNone, -1};
    const size_t start = text_.size() - left;
    vocabulary_->ForEachAt(text_, start, [&](TokenId token, size_t end) {
      const int32_t rest = best_[text_.size() - end].tokens;
      if (rest != kNone && rest + 1 <= here.tokens) here = {rest + 1, token};  // longest of equals
    });
    best_.push_back(here);
  }
}

void TokenSpelling::Append(std::vector<TokenId>* tokens) const {
  if (this->tokens() == kNone) return;
  for (size_t left = text_.size(); left > 0;) {
    tokens->push_back(best_[left].first);
    left -= vocabulary_->BytesOf(best_[left].first).size();
  }
}

}  // namespace vivace::grammar
