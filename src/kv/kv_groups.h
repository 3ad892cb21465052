// How a model's layers share the blocks of one cache.
//
// All physical blocks have one size: that of `layers_per_block` layers, so that one pool serves
// them all. Layers are dealt into groups of at most that many, each of layers that keep the same
// positions: all of them (full attention) or a window. A sequence has a block table per group; the
// k-th layer of a group uses the k-th part of the group's blocks. A model whose layers are all
// alike has one group.
//
// Everything here is a function of its arguments. Thread: any.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/check.h"

namespace vivace {

inline constexpr int32_t kMaxKvGroups = 16;  // more would cost each step more than they save

struct KvGroup {
  int32_t window = 0;           // 0: full; w: position p sees (p - w, p]
  std::vector<int32_t> layers;  // ascending
};

struct KvGroups {
  std::vector<KvGroup> groups;  // full attention first, then from the widest window down
  int32_t layers_per_block = 0;
};

// `windows` of the model's layers, one or more. Groups are as large as the rarest kind, which then
// wastes nothing; the last group of another kind may leave parts of its blocks unused. Where that
// would be more than kMaxKvGroups, groups are larger; kinds beyond that number are kept as the next
// wider one.
KvGroups DealLayers(std::span<const int32_t> windows);

// The windows of a cache's groups: all that who hands out blocks needs to know of a model.
class KvWindows {
 public:
  constexpr KvWindows() = default;  // one group of full attention
  constexpr KvWindows(std::initializer_list<int32_t> windows) : size_(0) {
    for (const int32_t window : windows) Add(window);
  }
  explicit KvWindows(const KvGroups& groups) : size_(0) {
    for (const KvGroup& group : groups.groups) Add(group.window);
  }

  constexpr int32_t size() const { return size_; }
  constexpr int32_t operator[](int32_t group) const { return windows_[static_cast<size_t>(group)]; }
  constexpr int32_t num_full() const {
    return static_cast<int32_t>(std::count(windows_.begin(), windows_.begin() + size_, 0));
  }

 private:
  constexpr void Add(int32_t window) {
    VIVACE_CHECK(size_ < kMaxKvGroups && window >= 0);
    windows_[static_cast<size_t>(size_++)] = window;
  }

  std::array<int32_t, kMaxKvGroups> windows_{};
  int32_t size_ = 1;
};

inline int32_t KvBlocksFor(int64_t num_tokens, int32_t block_size) {
  return static_cast<int32_t>((num_tokens + block_size - 1) / block_size);
}

// The first block that a query at `position`, or any later one, sees. Kernels load positions in
// groups that lie within a block (kernels/attention.h), so they touch none before it.
inline int32_t FirstVisibleBlock(int32_t window, int32_t block_size, int32_t position) {
  return window == 0 ? 0 : std::max(position - window + 1, 0) / block_size;
}

// Blocks of a group that a sequence of `num_tokens` tokens needs at once at most, if steps compute
// up to `chunk` of them: in a window group those of the chunk and of what its first token sees.
int32_t MostBlocks(int32_t window, int32_t block_size, int64_t num_tokens, int64_t chunk);

// The same over all groups; does not decrease as num_tokens grows.
int64_t MostBlocks(const KvWindows& windows, int32_t block_size, int64_t num_tokens, int64_t chunk);

// The longest sequence, up to `most` tokens, that `num_blocks` are enough for.
int64_t LongestSequence(const KvWindows& windows, int32_t block_size, int64_t num_blocks,
                        int64_t chunk, int64_t most);

}  // namespace vivace
