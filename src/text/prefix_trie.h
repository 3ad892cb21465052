// PrefixTrie: the strings of a set that begin a text, shortest first.
//
// One probe of a hash table per byte walked; at most as many as the longest string has bytes. The
// hash is seeded per process. Immutable once built; holds no reference to what it was built from.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace vivace {

class PrefixTrie {
 public:
  PrefixTrie();

  // Of equal strings the first counts. Not for empty ones.
  void Insert(std::string_view text, TokenId id);

  // Calls visit(length, id) for each string that `text` begins with.
  template <typename Visit>
  void ForEachPrefix(std::string_view text, Visit visit) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = Child(node, static_cast<unsigned char>(text[i]));
      if (node == 0) return;
      if (ids_[node] >= 0) visit(i + 1, ids_[node]);
    }
  }

 private:
  struct Edge {
    uint64_t key = 0;    // (node << 8 | byte) + 1; 0: free
    uint32_t child = 0;  // never 0, the root
  };

  size_t SlotOf(uint64_t key) const { return key * multiplier_ >> shift_; }
  uint32_t Child(uint32_t node, unsigned char byte) const {
    const uint64_t key = (uint64_t{node} << 8 | byte) + 1;
    for (size_t i = SlotOf(key);; i = (i + 1) & (edges_.size() - 1)) {
      if (edges_[i].key == key) return edges_[i].child;
      if (edges_[i].key == 0) return 0;
    }
  }
  void AddEdge(Edge edge);
  void Grow();

  std::vector<TokenId> ids_;  // by node; -1: no string ends here
  std::vector<Edge> edges_;
  uint64_t multiplier_;
  int shift_;
};

}  // namespace vivace
