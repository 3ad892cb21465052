#include "engine/prefix_groups.h"

#include <algorithm>

namespace vivace {

PrefixGroups::PrefixGroups(int32_t max_sequences) {
  const auto count = static_cast<size_t>(max_sequences);
  candidates_.reserve(count);
  common_.reserve(count);
  order_.reserve(count);
  ranges_.reserve(count);
  members_.reserve(count);
  groups_.reserve(count / 2);
}

int32_t PrefixGroups::FirstBlock(std::span<const BlockId> blocks) {
  return static_cast<int32_t>(std::ranges::find_if(blocks, &BlockId::valid) - blocks.begin());
}

int32_t PrefixGroups::CommonBlocks(const Candidate& a, const Candidate& b) {
  const int32_t most = std::min(a.num_blocks, b.num_blocks);
  return static_cast<int32_t>(std::mismatch(a.blocks, a.blocks + most, b.blocks).first - a.blocks);
}

// By block table; equal ones by index, so that the order says everything.
bool PrefixGroups::Before(const Candidate& a, const Candidate& b) {
  const int32_t same = CommonBlocks(a, b);
  if (same < std::min(a.num_blocks, b.num_blocks)) {
    return a.blocks[same].value < b.blocks[same].value;
  }
  if (a.num_blocks != b.num_blocks) return a.num_blocks < b.num_blocks;
  return a.sequence < b.sequence;
}

// Joins the ranges left and right of a boundary unless apart they save more. A range of n that
// share b blocks saves (n - 1) * b reads.
void PrefixGroups::Join(int32_t boundary) {
  const Range left = ranges_[static_cast<size_t>(boundary)];
  const Range right = ranges_[static_cast<size_t>(boundary) + 1];
  const int64_t blocks = common_[static_cast<size_t>(boundary)];
  const int64_t apart = int64_t{left.last - left.first} * left.blocks +
                        int64_t{right.last - right.first} * right.blocks;
  if ((right.last - left.first) * blocks < apart) return;
  const Range joined = {left.first, right.last, static_cast<int32_t>(blocks)};
  ranges_[static_cast<size_t>(joined.first)] = joined;
  ranges_[static_cast<size_t>(joined.last)] = joined;
}

std::span<const kernels::PrefixGroup> PrefixGroups::Find(
    std::span<const kernels::SequenceRows> sequences, int32_t block_size) {
  candidates_.clear();
  common_.clear();
  order_.clear();
  ranges_.clear();
  members_.clear();
  groups_.clear();
  const int32_t least = (kMinSharedPositions + block_size - 1) / block_size;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const int32_t full = sequences[i].first_position / block_size;
    if (full < least) continue;
    const int32_t compared = std::min(full, kMaxComparedBlocks);
    const BlockId* blocks = sequences[i].blocks;
    const int32_t first = FirstBlock({blocks, static_cast<size_t>(compared)});
    if (compared - first < least) continue;
    candidates_.push_back({static_cast<int32_t>(i), compared, first, blocks});
  }
  if (candidates_.size() < 2) return {};
  std::sort(candidates_.begin(), candidates_.end(), Before);

  const auto count = static_cast<int32_t>(candidates_.size());
  for (int32_t i = 0; i < count; ++i) ranges_.push_back({i, i, 0});
  for (int32_t i = 0; i + 1 < count; ++i) {
    const auto at = static_cast<size_t>(i);
    // If they share any, both begin at the same.
    common_.push_back(
        std::max(CommonBlocks(candidates_[at], candidates_[at + 1]) - candidates_[at].first, 0));
    if (common_.back() >= least) order_.push_back(i);
  }
  std::sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
    const int32_t in_a = common_[static_cast<size_t>(a)], in_b = common_[static_cast<size_t>(b)];
    return in_a != in_b ? in_a > in_b : a < b;
  });
  for (const int32_t boundary : order_) Join(boundary);

  for (int32_t first = 0; first < count;) {
    const Range range = ranges_[static_cast<size_t>(first)];
    const auto begin = static_cast<int64_t>(members_.size());
    for (int32_t i = range.first; i <= range.last; ++i) {
      members_.push_back(candidates_[static_cast<size_t>(i)].sequence);
    }
    std::sort(members_.begin() + begin, members_.end());
    if (range.last > range.first) {
      const int32_t shared = candidates_[static_cast<size_t>(first)].first + range.blocks;
      groups_.push_back(
          {std::span(members_).subspan(static_cast<size_t>(begin)), shared * block_size});
    }
    first = range.last + 1;
  }
  return groups_;
}

}  // namespace vivace
