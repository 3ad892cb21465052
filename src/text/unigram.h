// Unigram: the segmentation of a piece whose tokens' scores have the greatest sum (SentencePiece's
// unigram model, as Hugging Face's `Unigram` computes it).
//
// One pass of Viterbi: time is bytes times the length of the longest token, memory 16 bytes a byte.
// A run of characters without tokens is one unknown token, or its bytes' tokens with fallback.
// Immutable; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/byte_tokens.h"
#include "text/prefix_trie.h"

namespace vivace {

class Unigram {
 public:
  class Scratch {
    friend class Unigram;
    struct Node {
      double score = 0;
      TokenId id = kNoToken;
      uint32_t length = 0;  // of the token that ends here
    };
    std::vector<Node> nodes;
    std::vector<std::pair<size_t, size_t>> path;  // the ends of what was chosen, backwards
  };
  struct Options {
    std::optional<TokenId> unknown;
    bool byte_fallback = false;
  };

  // `encodable` says which tokens ordinary text may become.
  Unigram(std::span<const std::string> tokens, std::span<const double> scores,
          const std::vector<bool>& encodable, const Options& options);

  void Encode(std::string_view piece, Scratch* scratch, std::vector<TokenId>* out) const;

 private:
  static constexpr TokenId kNoToken = -1, kUnknown = -2;
  static constexpr size_t kMaxPiece = 1u << 28;  // longer ones are cut

  void EncodeCut(std::string_view piece, Scratch* scratch, std::vector<TokenId>* out) const;
  void AddUnknown(std::string_view text, std::vector<TokenId>* out) const;

  PrefixTrie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  ByteTokens bytes_;
  Options options_;
};

}  // namespace vivace
