// The KV cache as the scheduler sees it: gives sequences the blocks their tokens need, lets them
// share what an earlier prompt has already computed, and keeps what they leave until the space is
// needed. No tensors: block ids only.
//
// One manager is one cache group, the full-attention one: every position keeps its keys and values.
// A sliding-window or recurrent group is another implementation of the same five verbs (Open,
// TryBegin, TryGrow, Computed, End), with its own pool and table in the sequence.
//
// Nothing allocates after Open. Thread: one. Deterministic.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "kv/block_hash.h"
#include "kv/block_pool.h"
#include "kv/prefix_index.h"

namespace vivace {

// One sequence's hold on the cache. Made by Open; dropping it gives its blocks back.
class KvSequence final {
 public:
  KvSequence() = default;

  std::span<const BlockId> blocks() const { return table_.blocks(); }
  // Blocks that ending this sequence would free.
  int32_t CountSoleBlocks() const { return table_.CountSole(); }

 private:
  friend class KvCacheManager;

  BlockTable table_;
  BlockHash space_{};
  std::vector<BlockHash> hashes_;  // of the full blocks of its tokens, as far as needed yet
  int32_t num_chained_ = 0;        // blocks matched or indexed so far
  PrefixSerial last_serial_ = kPrefixRoot;  // of block num_chained_ - 1
};

struct KvCacheConfig {
  int32_t num_blocks = 0;   // >= 1
  int32_t block_size = 16;  // tokens of a block, >= 1
  bool enable_prefix_caching = true;
};

class KvCacheManager final {
 public:
  explicit KvCacheManager(const KvCacheConfig& config,
                          std::unique_ptr<BlockHasher> hasher = std::make_unique<Sha256Hasher>());

  const KvCacheConfig& config() const { return config_; }
  const BlockPool& pool() const { return pool_; }
  const PrefixIndex& index() const { return index_; }
  int32_t BlocksFor(int64_t num_tokens) const {
    return static_cast<int32_t>((num_tokens + config_.block_size - 1) / config_.block_size);
  }

  // Makes a sequence that will hold at most `max_tokens` tokens; holds nothing yet. Allocates.
  KvSequence Open(std::string_view salt, std::string_view adapter, int64_t max_tokens);

  // Takes blocks for all of `tokens`, the leading ones from the prefix index unless `use_index` is
  // false. At least the last token is left to compute. Returns the number of tokens found there, or
  // nothing, and changes nothing, if fewer than `headroom` free blocks would be left.
  std::optional<int32_t> TryBegin(KvSequence* sequence, std::span<const TokenId> tokens,
                                  bool use_index, int32_t headroom);

  // Makes room for `num_tokens` tokens in all; false, and no change, if the cache is full.
  bool TryGrow(KvSequence* sequence, int64_t num_tokens);

  // Tells that the keys and values of tokens[0, computed) are in place: full blocks among them can
  // be found from now on. `tokens` are all tokens of the sequence so far.
  void Computed(KvSequence* sequence, std::span<const TokenId> tokens, int64_t computed);

  // Gives back all blocks; the sequence can begin again.
  void End(KvSequence* sequence);

  // Forgets the contents of all blocks no sequence holds. Those in use stay findable.
  void ResetPrefixCache();

  // Recounts everything; for tests.
  bool Consistent() const;

 private:
  void ExtendHashes(KvSequence* sequence, std::span<const TokenId> tokens, int32_t num_blocks);
  PrefixKey KeyOf(const KvSequence& sequence, std::span<const TokenId> tokens, int32_t block,
                  PrefixSerial parent) const;
  int32_t Match(KvSequence* sequence, std::span<const TokenId> tokens);
  void AppendFree(KvSequence* sequence);

  KvCacheConfig config_;
  std::unique_ptr<BlockHasher> hasher_;
  BlockPool pool_;
  PrefixIndex index_;
  std::vector<PrefixIndex::Entry> matched_;  // scratch of TryBegin
};

}  // namespace vivace
