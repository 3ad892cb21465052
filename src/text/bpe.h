// Byte-pair encoding of one piece: the pair of lowest rank merges first, the leftmost of equals.
//
// Exact with Hugging Face's BPE. A piece of n bytes costs O(n log n) time and O(n) scratch memory;
// short pieces, nearly all there are, merge in a small array, and a piece that is a whole token
// costs one lookup once a first call has found that merging gives that token. Immutable but for
// those one-byte notes, which are atomic and the same whoever writes them: any thread may encode.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/byte_tokens.h"
#include "text/string_index.h"

namespace vivace {

class Bpe {
 public:
  // Lower ranks merge first. Merges may share a rank only if they have one result.
  struct Merge {
    TokenId left, right, result;
    uint32_t rank;
  };
  struct Options {
    bool characters = false;        // a piece begins as characters, not as bytes
    ByteTokens byte_tokens;         // what a byte begins as; with characters: the fallback
    TokenId unknown = -1;           // for what has no token; -1: it is dropped
    bool fuse_unknown = false;      // a run of that gives one unknown token
    bool ignore_merges = false;     // a piece that is a token is that token, unmerged
    std::string continuing_prefix;  // of every character's token but the first
    std::string word_suffix;        // of the last character's token
  };
  // Memory reused from piece to piece; one per thread of execution.
  class Scratch {
    friend class Bpe;
    struct Symbol {
      TokenId id;
      uint32_t previous, next;
    };
    std::vector<Symbol> symbols;
    std::vector<uint64_t> heap;  // rank << 32 | position
  };

  // `tokens` are the bytes of every token (with Options::characters: as the file writes it), which
  // the caller keeps alive; `encodable` says which of them ordinary text may become. Ids must be in
  // range and below limits::kMaxVocab, merges and ranks at most limits::kMaxMerges; of equal pairs
  // the last counts.
  Bpe(std::span<const std::string_view> tokens, const std::vector<bool>& encodable,
      std::span<const Merge> merges, const Options& options);

  // Appends the tokens of `piece` to `out`.
  void Encode(std::string_view piece, Scratch* scratch, std::vector<TokenId>* out) const;

 private:
  static constexpr uint32_t kNoRank = ~0u;
  static constexpr uint64_t kEmptySlot = ~0ull;
  static constexpr size_t kShortPiece = 32;      // symbols
  static constexpr size_t kMaxPiece = 1u << 30;  // longer ones are cut: positions are 32 bits
  static constexpr int kIdBits = 20;
  static constexpr int kRankBits = 24;
  enum WholeToken : uint8_t { kUntried, kYes, kNo };

  static uint64_t PairKey(TokenId left, TokenId right) {
    return uint64_t{static_cast<uint32_t>(left)} << kIdBits | static_cast<uint32_t>(right);
  }
  size_t SlotOf(uint64_t key) const { return key * hash_multiplier_ >> shift_; }
  uint32_t RankOf(TokenId left, TokenId right) const;
  void InsertPair(uint64_t key, uint32_t rank);
  void EncodeCut(std::string_view piece, Scratch* scratch, std::vector<TokenId>* out) const;
  void MergePiece(std::string_view piece, Scratch* scratch, std::vector<TokenId>* out) const;
  template <typename Add>
  void ForEachSymbol(std::string_view piece, Add add) const;
  template <typename Add>
  void ForEachByteToken(std::string_view piece, Add add) const;
  template <typename Add>
  void ForEachCharacterToken(std::string_view piece, Add add) const;
  TokenId CharacterToken(std::string_view character, bool first, bool last) const;
  void MergeShort(std::string_view piece, std::vector<TokenId>* out) const;
  void MergeLong(std::string_view piece, Scratch* scratch, std::vector<TokenId>* out) const;
  void PushPair(uint32_t position, Scratch* scratch) const;

  Options options_;
  StringIndex whole_tokens_;
  size_t longest_token_ = 0;
  std::unique_ptr<std::atomic<uint8_t>[]> whole_;  // per token: is its own text merged to it?
  std::vector<uint64_t> pairs_;                    // pair key << 24 | rank, open addressing
  std::vector<TokenId> results_;                   // by rank
  uint64_t hash_multiplier_ = 1;
  size_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace vivace
