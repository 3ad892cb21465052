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
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/string_index.h"

namespace vivace {

class Bpe {
 public:
  struct Merge {
    TokenId left, right, result;
  };
  struct Options {
    std::array<TokenId, 256> byte_tokens;  // -1: the byte has no token
    TokenId unknown = -1;                  // for such bytes; -1: they are dropped
    bool fuse_unknown = false;             // a run of them gives one unknown token
    bool ignore_merges = false;            // a piece that is a token is that token, unmerged
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

  // `tokens` are the bytes of every token, which the caller keeps alive; `encodable` says which of
  // them ordinary text may become. Ids must be in range and below limits::kMaxVocab, merges at most
  // limits::kMaxMerges, and rank is the index in `merges`; of equal pairs the last counts.
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
  void ForEachByteToken(std::string_view piece, Add add) const;
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
