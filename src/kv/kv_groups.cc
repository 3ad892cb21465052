#include "kv/kv_groups.h"

#include <limits>
#include <map>

namespace vivace {
namespace {

constexpr int32_t kNoWindow = std::numeric_limits<int32_t>::max();  // the widest: all positions

int64_t CountGroups(const std::map<int32_t, std::vector<int32_t>>& kinds, int64_t layers) {
  int64_t groups = 0;
  for (const auto& [window, members] : kinds) {
    groups += (static_cast<int64_t>(members.size()) + layers - 1) / layers;
  }
  return groups;
}

}  // namespace

KvGroups DealLayers(std::span<const int32_t> windows) {
  VIVACE_CHECK(!windows.empty());
  std::map<int32_t, std::vector<int32_t>> kinds;  // layers by window, narrow to wide
  for (size_t i = 0; i < windows.size(); ++i) {
    VIVACE_CHECK(windows[i] >= 0);
    kinds[windows[i] == 0 ? kNoWindow : windows[i]].push_back(static_cast<int32_t>(i));
  }
  while (kinds.size() > kMaxKvGroups) {
    const std::vector<int32_t> narrowest = std::move(kinds.extract(kinds.begin()).mapped());
    std::vector<int32_t>& wider = kinds.begin()->second;
    wider.insert(wider.end(), narrowest.begin(), narrowest.end());
    std::sort(wider.begin(), wider.end());
  }
  size_t layers = windows.size();
  for (const auto& [window, members] : kinds) layers = std::min(layers, members.size());
  while (CountGroups(kinds, static_cast<int64_t>(layers)) > kMaxKvGroups) ++layers;

  KvGroups dealt{.groups = {}, .layers_per_block = static_cast<int32_t>(layers)};
  for (auto kind = kinds.rbegin(); kind != kinds.rend(); ++kind) {
    const std::vector<int32_t>& members = kind->second;
    for (size_t first = 0; first < members.size(); first += layers) {
      const auto begin = members.begin() + static_cast<ptrdiff_t>(first);
      const auto count = static_cast<ptrdiff_t>(std::min(layers, members.size() - first));
      dealt.groups.push_back({.window = kind->first == kNoWindow ? 0 : kind->first,
                              .layers = std::vector<int32_t>(begin, begin + count)});
    }
  }
  return dealt;
}

int32_t MostBlocks(int32_t window, int32_t block_size, int64_t num_tokens, int64_t chunk) {
  const int32_t all = KvBlocksFor(num_tokens, block_size);
  if (window == 0) return all;
  // That many positions in a row, wherever in a block they begin.
  const int64_t positions = window - 1 + std::min(chunk, num_tokens);
  return static_cast<int32_t>(
      std::min<int64_t>(all, (positions + block_size - 2) / block_size + 1));
}

int64_t MostBlocks(const KvWindows& windows, int32_t block_size, int64_t num_tokens,
                   int64_t chunk) {
  int64_t blocks = 0;
  for (int32_t g = 0; g < windows.size(); ++g) {
    blocks += MostBlocks(windows[g], block_size, num_tokens, chunk);
  }
  return blocks;
}

int64_t LongestSequence(const KvWindows& windows, int32_t block_size, int64_t num_blocks,
                        int64_t chunk, int64_t most) {
  int64_t fits = 0;
  int64_t too_long = most + 1;
  while (too_long - fits > 1) {
    const int64_t middle = fits + (too_long - fits) / 2;
    (MostBlocks(windows, block_size, middle, chunk) <= num_blocks ? fits : too_long) = middle;
  }
  return fits;
}

}  // namespace vivace
