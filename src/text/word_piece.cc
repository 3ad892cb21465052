#include "text/word_piece.h"

#include <utility>

#include "base/utf8.h"

namespace vivace {
namespace {

size_t CountCharacters(std::string_view text) {
  size_t count = 0;
  for (size_t pos = 0; pos < text.size(); ++count) pos += utf8::Decode(text, pos).length;
  return count;
}

struct Longest {
  size_t length = 0;
  TokenId id = -1;
};

Longest LongestPrefix(const PrefixTrie& trie, std::string_view text) {
  Longest longest;
  trie.ForEachPrefix(text, [&](size_t length, TokenId id) { longest = {length, id}; });
  return longest;
}

}  // namespace

WordPiece::WordPiece(std::span<const std::string> tokens, const std::vector<bool>& encodable,
                     Options options)
    : options_(std::move(options)) {
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    if (!encodable[id] || token.empty()) continue;
    begins_.Insert(token, static_cast<TokenId>(id));
    if (token.starts_with(options_.prefix) && token.size() > options_.prefix.size()) {
      continues_.Insert(token.substr(options_.prefix.size()), static_cast<TokenId>(id));
    }
  }
}

void WordPiece::Encode(std::string_view word, Scratch*, std::vector<TokenId>* out) const {
  const size_t before = out->size();
  bool known = CountCharacters(word) <= options_.max_characters;
  for (size_t pos = 0; known && pos < word.size();) {
    const Longest longest = LongestPrefix(pos == 0 ? begins_ : continues_, word.substr(pos));
    known = longest.length > 0;
    if (known) out->push_back(longest.id);
    pos += longest.length;
  }
  if (known) return;
  out->resize(before);
  if (options_.unknown) out->push_back(*options_.unknown);
}

WordLevel::WordLevel(std::span<const std::string_view> tokens, const std::vector<bool>& encodable,
                     std::optional<TokenId> unknown)
    : words_(tokens), unknown_(unknown) {
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (encodable[id] && !tokens[id].empty()) words_.Insert(static_cast<int32_t>(id));
  }
}

void WordLevel::Encode(std::string_view word, Scratch*, std::vector<TokenId>* out) const {
  if (const TokenId id = words_.Find(word); id != StringIndex::kNone) {
    out->push_back(id);
  } else if (unknown_) {
    out->push_back(*unknown_);
  }
}

}  // namespace vivace
