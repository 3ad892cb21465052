// Which tokens a sequence holds, for the penalties: an open-addressing table, sized once for the
// sequence's greatest length. Owned by a slot; one thread.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace vivace {

class TokenCounts {
 public:
  struct Entry {
    TokenId token = -1;   // -1: free
    int32_t outputs = 0;  // times generated
  };

  // Room for `tokens` distinct tokens; empty again. Allocates.
  void Reset(size_t tokens) { table_.assign(std::bit_ceil(2 * tokens + 2), Entry{}); }

  void AddPrompt(TokenId token) { Find(token).token = token; }
  void AddOutput(TokenId token) {
    Entry& entry = Find(token);
    entry.token = token;
    ++entry.outputs;
  }

  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (const Entry& entry : table_) {
      if (entry.token >= 0) visit(entry);
    }
  }

 private:
  Entry& Find(TokenId token) {
    const size_t mask = table_.size() - 1;
    // Fibonacci hashing spreads neighbouring ids.
    size_t i = static_cast<size_t>(static_cast<uint32_t>(token) * 2654435769u) & mask;
    while (table_[i].token >= 0 && table_[i].token != token) i = (i + 1) & mask;
    return table_[i];
  }

  std::vector<Entry> table_;
};

}  // namespace vivace
