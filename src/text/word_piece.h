// WordPiece: the longest token that begins a word, then the longest that continues it, and so on;
// a word that this cannot finish is the unknown token. As Hugging Face's `WordPiece`.
//
// Time is the word's bytes times the length of the longest token. Immutable; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/prefix_trie.h"
#include "text/string_index.h"

namespace vivace {

class WordPiece {
 public:
  struct Scratch {};
  struct Options {
    std::string prefix = "##";    // of tokens that continue a word
    size_t max_characters = 100;  // longer words are unknown
    std::optional<TokenId> unknown;
  };

  WordPiece(std::span<const std::string> tokens, const std::vector<bool>& encodable,
            Options options);

  void Encode(std::string_view word, Scratch* scratch, std::vector<TokenId>* out) const;

 private:
  PrefixTrie begins_, continues_;
  Options options_;
};

// WordLevel: a word is one token, or the unknown one. `tokens` must outlive it.
class WordLevel {
 public:
  struct Scratch {};

  WordLevel(std::span<const std::string_view> tokens, const std::vector<bool>& encodable,
            std::optional<TokenId> unknown);

  void Encode(std::string_view word, Scratch* scratch, std::vector<TokenId>* out) const;

 private:
  StringIndex words_;
  std::optional<TokenId> unknown_;
};

}  // namespace vivace
