// The tokens a grammar speaks in: the bytes of each, as a trie in preorder.
//
// Immutable and shared. Control tokens and ids behind the tokenizer's are no text and stand for
// nothing, so that no grammar lets them through. Building takes milliseconds per 10,000 tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/tokenizer.h"

namespace vivace::grammar {

// What this process keeps of a vocabulary of `tokens` for all grammars, in bytes: this, and what
// xgrammar keeps beside it. Made at the start (GrammarCompiler::Prepare).
size_t SharedGrammarBytes(size_t tokens);

class Vocabulary {
 public:
  // `size`: how many logits the model has; `stop`: what ends an output.
  Vocabulary(std::vector<std::string> bytes, std::vector<TokenId> stop, int32_t size);
  static std::shared_ptr<const Vocabulary> From(const Tokenizer& tokenizer, int32_t size,
                                                std::vector<TokenId> stop);

  int32_t size() const { return size_; }
  const std::vector<TokenId>& stop() const { return stop_; }
  bool IsStop(TokenId token) const;
  // Empty for what is no text. tokens().size() <= size().
  const std::vector<std::string>& tokens() const { return bytes_; }
  std::string_view BytesOf(TokenId token) const {
    return token >= 0 && static_cast<size_t>(token) < bytes_.size()
               ? std::string_view(bytes_[static_cast<size_t>(token)])
               : std::string_view();
  }

  // Whether a token is this byte alone: what only such bytes spell can always be written.
  bool Spells(uint8_t byte) const { return spelled_[byte]; }

  // Calls `visit(token, end)` with each token that `text` has at `start`, shortest first, and where
  // it ends. Whether a token may begin with all that is there, and go on. start < text.size().
  template <typename Visit>
  bool ForEachAt(std::string_view text, size_t start, const Visit& visit) const;

  // Whether some token begins with all of `text` from `start` on, and is longer.
  bool MayExtend(std::string_view text, size_t start) const;

 private:
  // A node of the trie: a byte behind its parent's. Nodes stand in preorder: the children of `i`
  // begin at i + 1, the next sibling is `end`.
  struct Node {
    int32_t end;
    TokenId token;  // the least one of these bytes, or -1
    uint8_t byte;
  };

  void BuildTrie();
  std::vector<std::string> bytes_;
  std::vector<TokenId> stop_;
  int32_t size_;
  std::vector<Node> nodes_;
  int32_t first_[256];  // the root's child of a byte, or -1
  bool spelled_[256] = {};
};

template <typename Visit>
bool Vocabulary::ForEachAt(std::string_view text, size_t start, const Visit& visit) const {
  size_t pos = start;
  int32_t node = first_[static_cast<uint8_t>(text[pos])];
  while (node >= 0) {
    const Node& at = nodes_[static_cast<size_t>(node)];
    ++pos;
    if (at.token >= 0) visit(at.token, pos);
    int32_t child = node + 1;
    if (pos == text.size()) return child < at.end;
    while (child < at.end &&
           nodes_[static_cast<size_t>(child)].byte != static_cast<uint8_t>(text[pos])) {
      child = nodes_[static_cast<size_t>(child)].end;
    }
    node = child < at.end ? child : -1;
  }
  return false;
}

}  // namespace vivace::grammar
