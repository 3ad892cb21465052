#include "grammar/token_spelling.h"

#include <algorithm>

namespace vivace::grammar {

void named_token::Append(TokenId token, std::string* text) {
  text->push_back(kMark);
  for (size_t i = 1; i < kBytes; ++i, token >>= 7) text->push_back(static_cast<char>(token & 0x7F));
}

TokenId named_token::At(std::string_view text, size_t start) {
  if (text[start] != kMark || text.size() - start < kBytes) return -1;
  TokenId token = 0;
  for (size_t i = kBytes; i-- > 1;) token = token << 7 | static_cast<uint8_t>(text[start + i]);
  return token;
}

void TokenSpelling::Set(std::string_view text) {
  const auto common = static_cast<size_t>(
      std::mismatch(text.rbegin(), text.rend(), text_.rbegin(), text_.rend()).first -
      text.rbegin());
  text_ = text;
  best_.resize(common + 1);
  for (size_t left = common + 1; left <= text_.size(); ++left) {
    Best here{kNone, -1};
    const size_t start = text_.size() - left;
    if (const TokenId named = named_token::At(text_, start); named >= 0) {
      const int32_t rest = best_[left - named_token::kBytes].tokens;
      best_.push_back(rest == kNone ? here : Best{rest + 1, named});
      continue;
    }
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
    left -= named_token::At(text_, text_.size() - left) >= 0
                ? named_token::kBytes
                : vocabulary_->BytesOf(best_[left].first).size();
  }
}

}  // namespace vivace::grammar
