#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"
#include "base/limits.h"
#include "base/utf8.h"

namespace vivace {
namespace {

constexpr uint32_t kNowhere = ~0u;

}  // namespace

static_assert(limits::kMaxVocab <= 1 << 20 && limits::kMaxMerges < 1u << 24,
              "a pair and its rank share one word");

Bpe::Bpe(std::span<const std::string_view> tokens, const std::vector<bool>& encodable,
         std::span<const Merge> merges, const Options& options)
    : options_(options),
      whole_tokens_(tokens),
      whole_(new std::atomic<uint8_t>[tokens.size()]()),
      hash_multiplier_(HashSeed()) {
  VIVACE_CHECK(tokens.size() <= limits::kMaxVocab && merges.size() <= limits::kMaxMerges);
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!encodable[id] || tokens[id].empty()) continue;
    whole_tokens_.Insert(static_cast<int32_t>(id));
    longest_token_ = std::max(longest_token_, tokens[id].size());
  }
  const size_t capacity = std::bit_ceil(std::max<size_t>(merges.size() * 5 / 3, 2));
  pairs_.assign(capacity, kEmptySlot);
  mask_ = capacity - 1;
  shift_ = 64 - std::countr_zero(capacity);
  for (const Merge& merge : merges) {
    VIVACE_CHECK(merge.rank < limits::kMaxMerges);
    if (results_.size() <= merge.rank) results_.resize(merge.rank + 1);
    results_[merge.rank] = merge.result;
    InsertPair(PairKey(merge.left, merge.right), merge.rank);
  }
}

void Bpe::InsertPair(uint64_t key, uint32_t rank) {
  size_t i = SlotOf(key);
  while (pairs_[i] != kEmptySlot && pairs_[i] >> kRankBits != key) i = (i + 1) & mask_;
  pairs_[i] = key << kRankBits | rank;
}

uint32_t Bpe::RankOf(TokenId left, TokenId right) const {
  const uint64_t key = PairKey(left, right);
  for (size_t i = SlotOf(key);; i = (i + 1) & mask_) {
    if (pairs_[i] == kEmptySlot) return kNoRank;
    if (pairs_[i] >> kRankBits == key) return pairs_[i] & ((1u << kRankBits) - 1);
  }
}

void Bpe::Encode(std::string_view piece, Scratch* scratch, std::vector<TokenId>* out) const {
  for (; piece.size() > kMaxPiece; piece.remove_prefix(kMaxPiece)) {
    EncodeCut(piece.substr(0, kMaxPiece), scratch, out);
  }
  EncodeCut(piece, scratch, out);
}

void Bpe::EncodeCut(std::string_view piece, Scratch* scratch, std::vector<TokenId>* out) const {
  if (piece.size() > longest_token_) return MergePiece(piece, scratch, out);
  const TokenId whole = whole_tokens_.Find(piece);
  if (whole == StringIndex::kNone) return MergePiece(piece, scratch, out);
  std::atomic<uint8_t>& note = whole_[whole];
  const uint8_t known =
      options_.ignore_merges ? uint8_t{kYes} : note.load(std::memory_order_relaxed);
  if (known == kYes) return out->push_back(whole);
  const size_t before = out->size();
  MergePiece(piece, scratch, out);
  if (known == kUntried) {
    const bool yes = out->size() == before + 1 && out->back() == whole;
    note.store(yes ? kYes : kNo, std::memory_order_relaxed);
  }
}

void Bpe::MergePiece(std::string_view piece, Scratch* scratch, std::vector<TokenId>* out) const {
  if (piece.size() <= kShortPiece) return MergeShort(piece, out);
  MergeLong(piece, scratch, out);
}

template <typename Add>
void Bpe::ForEachSymbol(std::string_view piece, Add add) const {
  if (options_.characters) return ForEachCharacterToken(piece, add);
  ForEachByteToken(piece, add);
}

template <typename Add>
void Bpe::ForEachByteToken(std::string_view piece, Add add) const {
  bool in_unknown = false;
  for (const char byte : piece) {
    const TokenId id = options_.byte_tokens.ids[static_cast<unsigned char>(byte)];
    if (id >= 0) {
      add(id);
    } else if (options_.unknown >= 0 && !(in_unknown && options_.fuse_unknown)) {
      add(options_.unknown);
    }
    in_unknown = id < 0;
  }
}

TokenId Bpe::CharacterToken(std::string_view character, bool first, bool last) const {
  const std::string_view prefix = first ? "" : std::string_view(options_.continuing_prefix);
  const std::string_view suffix = last ? std::string_view(options_.word_suffix) : "";
  if (prefix.empty() && suffix.empty()) return whole_tokens_.Find(character);
  std::string name(prefix);
  return whole_tokens_.Find(name.append(character).append(suffix));
}

// As Hugging Face does it to the letter: an unknown token waits for the next known character, and
// bytes that stand in for a character do not end the wait.
template <typename Add>
void Bpe::ForEachCharacterToken(std::string_view piece, Add add) const {
  bool waiting = false;  // an unknown token
  const auto end_wait = [&] {
    if (waiting) add(options_.unknown);
    waiting = false;
  };
  for (size_t pos = 0; pos < piece.size();) {
    const size_t length = utf8::Decode(piece, pos).length;
    const std::string_view character = piece.substr(pos, length);
    const TokenId id = CharacterToken(character, pos == 0, pos + length == piece.size());
    pos += length;
    if (id >= 0) {
      end_wait();
      add(id);
    } else if (!options_.byte_tokens.ForEach(character, add) && options_.unknown >= 0) {
      if (!options_.fuse_unknown) end_wait();
      waiting = true;
    }
  }
  end_wait();
}

void Bpe::MergeShort(std::string_view piece, std::vector<TokenId>* out) const {
  TokenId ids[kShortPiece];
  uint32_t ranks[kShortPiece];  // ranks[i]: of the pair (i, i + 1)
  size_t count = 0;
  ForEachSymbol(piece, [&](TokenId id) { ids[count++] = id; });
  for (size_t i = 0; i + 1 < count; ++i) ranks[i] = RankOf(ids[i], ids[i + 1]);
  while (count > 1) {
    const size_t best = std::min_element(ranks, ranks + count - 1) - ranks;
    if (ranks[best] == kNoRank) break;
    ids[best] = results_[ranks[best]];
    std::copy(ids + best + 2, ids + count, ids + best + 1);
    std::copy(ranks + best + 1, ranks + count - 1, ranks + best);
    --count;
    if (best + 1 < count) ranks[best] = RankOf(ids[best], ids[best + 1]);
    if (best > 0) ranks[best - 1] = RankOf(ids[best - 1], ids[best]);
  }
  out->insert(out->end(), ids, ids + count);
}

// Puts the pair that begins at `position` into the heap, if it merges.
void Bpe::PushPair(uint32_t position, Scratch* scratch) const {
  const Scratch::Symbol& left = scratch->symbols[position];
  if (left.next == kNowhere) return;
  const uint32_t rank = RankOf(left.id, scratch->symbols[left.next].id);
  if (rank != kNoRank) scratch->heap.push_back(uint64_t{rank} << 32 | position);
}

// A linked list of symbols and a heap of the pairs that merge. Entries of the heap are not taken
// out when a neighbour's merge makes them stale: a rank names one result, and a pair that changes
// has a longer one, so an entry holds exactly if the pair at its position still has its rank.
void Bpe::MergeLong(std::string_view piece, Scratch* scratch, std::vector<TokenId>* out) const {
  auto& symbols = scratch->symbols;
  auto& heap = scratch->heap;
  symbols.clear();
  heap.clear();
  ForEachSymbol(piece, [&](TokenId id) {
    const auto at = static_cast<uint32_t>(symbols.size());
    symbols.push_back({id, at == 0 ? kNowhere : at - 1, at + 1});
  });
  if (symbols.empty()) return;
  symbols.back().next = kNowhere;
  for (uint32_t i = 0; i + 1 < symbols.size(); ++i) PushPair(i, scratch);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto push = [&](uint32_t position) {
    const size_t before = heap.size();
    PushPair(position, scratch);
    if (heap.size() != before) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    const auto position = static_cast<uint32_t>(heap.front());
    const auto rank = static_cast<uint32_t>(heap.front() >> 32);
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    Scratch::Symbol& left = symbols[position];
    if (left.id < 0 || left.next == kNowhere) continue;
    Scratch::Symbol& right = symbols[left.next];
    if (RankOf(left.id, right.id) != rank) continue;
    left.id = results_[rank];
    left.next = right.next;
    right.id = -1;  // gone
    if (left.next != kNowhere) symbols[left.next].previous = position;
    if (left.previous != kNowhere) push(left.previous);
    push(position);
  }
  for (uint32_t i = 0; i != kNowhere; i = symbols[i].next) out->push_back(symbols[i].id);
}

}  // namespace vivace
