#include "text/prefix_trie.h"

#include <bit>
#include <utility>

#include "text/string_index.h"

namespace vivace {

PrefixTrie::PrefixTrie() : ids_(1, -1), edges_(64), multiplier_(HashSeed()), shift_(64 - 6) {}

void PrefixTrie::AddEdge(Edge edge) {
  size_t i = SlotOf(edge.key);
  while (edges_[i].key != 0) i = (i + 1) & (edges_.size() - 1);
  edges_[i] = edge;
}

void PrefixTrie::Grow() {
  const std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(edges_.size() * 2));
  shift_ = 64 - std::countr_zero(edges_.size());
  for (const Edge& edge : old) {
    if (edge.key != 0) AddEdge(edge);
  }
}

void PrefixTrie::Insert(std::string_view text, TokenId id) {
  uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    uint32_t child = Child(node, byte);
    if (child == 0) {
      child = static_cast<uint32_t>(ids_.size());
      ids_.push_back(-1);
      if (ids_.size() * 2 > edges_.size()) Grow();
      AddEdge({(uint64_t{node} << 8 | byte) + 1, child});
    }
    node = child;
  }
  if (ids_[node] < 0) ids_[node] = id;
}

}  // namespace vivace
