// The KV cache as the scheduler sees it: gives sequences the blocks their tokens need, lets them
// share what an earlier prompt has already computed, and keeps what they leave until the space is
// needed. No tensors: block ids only.
//
// A sequence has a block table in each group of the cache (kv/kv_groups.h), all indexed by the
// number of the token block. In a full group it takes the blocks of all its tokens when it begins.
// In a window group it holds those that its next tokens see or are written to, and gives the others
// back after each step; when it begins it claims as many blocks as it can ever need at once, so
// what was begun never runs out.
//
// Nothing allocates after Open. Thread: one. Deterministic.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "kv/block_hash.h"
#include "kv/block_pool.h"
#include "kv/kv_groups.h"
#include "kv/prefix_index.h"

namespace vivace {

// One sequence's hold on the cache. Made by Open; dropping it gives its blocks back.
class KvSequence final {
 public:
  KvSequence() = default;

  int32_t num_groups() const { return static_cast<int32_t>(tables_.size()); }
  const BlockTable& table(int32_t group) const { return tables_[static_cast<size_t>(group)]; }
  // Invalid ids in places that the group's window has left behind.
  std::span<const BlockId> blocks(int32_t group = 0) const { return table(group).blocks(); }
  // Blocks that ending this sequence would make available.
  int32_t CountSoleBlocks() const;

 private:
  friend class KvCacheManager;

  std::vector<BlockTable> tables_;  // by group
  BlockHash space_{};
  std::vector<BlockHash> hashes_;  // of the full blocks of its tokens, as far as needed yet
  int32_t num_chained_ = 0;        // blocks matched or indexed so far
  PrefixSerial last_serial_ = kPrefixRoot;  // of block num_chained_ - 1
};

struct KvCacheConfig {
  int32_t num_blocks = 0;   // >= 1, of all groups together
  int32_t block_size = 16;  // tokens of a block, >= 1
  bool enable_prefix_caching = true;
  KvWindows windows = {};  // of the groups
  // Tokens of a sequence computed in one step, at most. Windows only.
  int32_t max_chunk = std::numeric_limits<int32_t>::max();
};

class KvCacheManager final {
 public:
  explicit KvCacheManager(const KvCacheConfig& config,
                          std::unique_ptr<BlockHasher> hasher = std::make_unique<Sha256Hasher>());

  const KvCacheConfig& config() const { return config_; }
  const BlockPool& pool() const { return pool_; }
  const PrefixIndex& index() const { return index_; }
  int32_t BlocksFor(int64_t num_tokens) const {
    return KvBlocksFor(num_tokens, config_.block_size);
  }

  // Makes a sequence that will hold at most `max_tokens` tokens; holds nothing yet. Allocates.
  KvSequence Open(std::string_view salt, std::string_view adapter, int64_t max_tokens);

  // Takes or claims blocks for all of `tokens`, the leading ones from the prefix index unless
  // `use_index` is false. At least the last token is left to compute. Returns the number of tokens
  // found there, or nothing, and changes nothing, if fewer than `headroom` blocks would be left for
  // others.
  std::optional<int32_t> TryBegin(KvSequence* sequence, std::span<const TokenId> tokens,
                                  bool use_index, int32_t headroom);

  // Makes room to compute up to token `end` of those it began with. Cannot fail.
  void Advance(KvSequence* sequence, int64_t end);

  // Makes room for `num_tokens` tokens in all, of which the next steps compute `chunk` each at
  // most; false, and no change, if the cache is full. Advance takes the blocks of window groups.
  bool TryGrow(KvSequence* sequence, int64_t num_tokens, int32_t chunk = 1);

  // Blocks that TryGrow takes, at most, where a sequence crosses into its next block on the way to
  // `max_tokens`: a running one, and one that will begin with `num_tokens`.
  int32_t NextGrowth(const KvSequence& sequence, int64_t max_tokens) const;
  int32_t NextGrowth(int64_t num_tokens, int64_t max_tokens) const;

  // Tells that the keys and values of tokens[0, computed) are in place: full blocks among them can
  // be found from now on, and what no later token sees is given back. `tokens` are all tokens of
  // the sequence so far.
  void Computed(KvSequence* sequence, std::span<const TokenId> tokens, int64_t computed);

  // Gives back all blocks; the sequence can begin again.
  void End(KvSequence* sequence);

  // Forgets the contents of all blocks no sequence holds. Those in use stay findable.
  void ResetPrefixCache();

  // Recounts everything; for tests.
  bool Consistent() const;

 private:
  int32_t num_groups() const { return config_.windows.size(); }
  int32_t window(int32_t group) const { return config_.windows[group]; }
  int32_t FirstVisible(int32_t group, int64_t position) const {
    return FirstVisibleBlock(window(group), config_.block_size, static_cast<int32_t>(position));
  }
  void ExtendHashes(KvSequence* sequence, std::span<const TokenId> tokens, int32_t num_blocks);
  PrefixKey KeyOf(const KvSequence& sequence, std::span<const TokenId> tokens, int32_t block,
                  PrefixSerial parent) const;
  void Match(KvSequence* sequence, std::span<const TokenId> tokens);
  int32_t LongestUsable();
  int32_t BeginCost(int32_t group, int64_t num_tokens) const;
  void BeginTable(BlockTable* table, int32_t group, int64_t num_tokens);
  void Index(KvSequence* sequence, std::span<const TokenId> tokens, int64_t computed);
  void Fill(BlockTable* table, int32_t num_blocks);

  KvCacheConfig config_;
  std::unique_ptr<BlockHasher> hasher_;
  BlockPool pool_;
  PrefixIndex index_;
  std::vector<PrefixIndex::Entry> matched_;  // scratch of TryBegin
};

}  // namespace vivace
