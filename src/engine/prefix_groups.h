// Which sequences of a step begin with the same cache blocks, so that attention reads those once
// for all of them. Looks at block ids only: the prefix cache and forked choices make them equal.
//
// Sequences are put in the order of their block tables, which brings those with a common beginning
// together; neighbours are then joined, longest common beginning first, as long as joining saves
// reads: sixteen that share a long document are not cut down to the short greeting a seventeenth
// shares with them. Places that a window has left hold no block and save nothing, but count among
// the shared positions where both sequences have left them. Cost: a sort of the sequences, each
// comparison up to kMaxComparedBlocks ids. Nothing is allocated after construction. Thread: the
// engine thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/block_ops.h"

namespace vivace {

class PrefixGroups {
 public:
  static constexpr int32_t kMinSharedPositions = 128;  // less is not worth the bother
  static constexpr int32_t kMaxComparedBlocks = 8192;  // of a table; more is taken for different

  explicit PrefixGroups(int32_t max_sequences);

  // Groups of two or more; a sequence is in one at most. Only blocks that are full before the step
  // count. Valid until the next call.
  std::span<const kernels::PrefixGroup> Find(std::span<const kernels::SequenceRows> sequences,
                                             int32_t block_size);

 private:
  struct Candidate {
    int32_t sequence;
    int32_t num_blocks;
    int32_t first;  // that there is: the window has left those before
    const BlockId* blocks;
  };
  // Candidates [first, last] that share `blocks`, of those there are; kept at both ends of the
  // range.
  struct Range {
    int32_t first;
    int32_t last;
    int32_t blocks;
  };

  static int32_t FirstBlock(std::span<const BlockId> blocks);
  static int32_t CommonBlocks(const Candidate& a, const Candidate& b);
  static bool Before(const Candidate& a, const Candidate& b);
  void Join(int32_t boundary);

  std::vector<Candidate> candidates_;
  std::vector<int32_t>
      common_;                  // [i]: blocks that candidates i and i + 1 share, of those there are
  std::vector<int32_t> order_;  // of boundaries, most in common first
  std::vector<Range> ranges_;   // [candidate]
  std::vector<int32_t> members_;
  std::vector<kernels::PrefixGroup> groups_;
};

}  // namespace vivace
