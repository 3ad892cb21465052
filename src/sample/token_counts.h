// Which tokens a sequence holds, for the penalties: the distinct tokens in the order they came, and
// an open-addressing table to find them by. Sized once; visiting costs the distinct tokens, not the
// table. Owned by a slot; one thread.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace vivace {

class TokenCounts {
 public:
  struct Entry {
    TokenId token = -1;
    int32_t outputs = 0;  // times generated
  };

  // Room for `tokens` distinct tokens; empty again. Allocates.
  void Reset(size_t tokens) {
    entries_.clear();
    entries_.reserve(tokens);
    table_.assign(std::bit_ceil(2 * tokens + 2), kFree);
  }

  void AddPrompt(TokenId token) { Find(token); }
  void AddOutput(TokenId token) { ++Find(token).outputs; }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  static constexpr int32_t kFree = -1;

  Entry& Find(TokenId token) {
    const size_t mask = table_.size() - 1;
    // Fibonacci hashing spreads neighbouring ids.
    size_t i = (static_cast<uint32_t>(token) * uint64_t{0x9E3779B97F4A7C15} >> 32) & mask;
    for (; table_[i] != kFree; i = (i + 1) & mask) {
      Entry& entry = entries_[static_cast<size_t>(table_[i])];
      if (entry.token == token) return entry;
    }
    table_[i] = static_cast<int32_t>(entries_.size());
    return entries_.emplace_back(Entry{token, 0});
  }

  std::vector<Entry> entries_;
  std::vector<int32_t> table_;  // index into entries_, or kFree
};

}  // namespace vivace
