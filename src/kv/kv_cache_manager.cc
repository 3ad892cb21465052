#include "kv/kv_cache_manager.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vivace {

KvCacheManager::KvCacheManager(const KvCacheConfig& config, std::unique_ptr<BlockHasher> hasher)
    : config_(config),
      hasher_(std::move(hasher)),
      pool_(config.num_blocks),
      index_(config.num_blocks, config.block_size) {
  VIVACE_CHECK(config.block_size >= 1);
  matched_.reserve(static_cast<size_t>(config.num_blocks));
}

KvSequence KvCacheManager::Open(std::string_view salt, std::string_view adapter,
                                int64_t max_tokens) {
  KvSequence sequence;
  sequence.table_ = BlockTable(&pool_);
  sequence.table_.Reserve(BlocksFor(max_tokens));
  if (config_.enable_prefix_caching) {
    sequence.space_ = NamespaceHash(salt, adapter);
    sequence.hashes_.reserve(static_cast<size_t>(BlocksFor(max_tokens)));
  }
  return sequence;
}

// Hashes are kept: a sequence that waits, or comes back from a preemption, is not hashed again.
void KvCacheManager::ExtendHashes(KvSequence* sequence, std::span<const TokenId> tokens,
                                  int32_t num_blocks) {
  const size_t size = static_cast<size_t>(config_.block_size);
  std::vector<BlockHash>& hashes = sequence->hashes_;
  while (static_cast<int32_t>(hashes.size()) < num_blocks) {
    const BlockHash& parent = hashes.empty() ? sequence->space_ : hashes.back();
    hashes.push_back(hasher_->Hash(parent, tokens.subspan(hashes.size() * size, size)));
  }
}

PrefixKey KvCacheManager::KeyOf(const KvSequence& sequence, std::span<const TokenId> tokens,
                                int32_t block, PrefixSerial parent) const {
  const size_t size = static_cast<size_t>(config_.block_size);
  return {.space = sequence.space_,
          .parent = parent,
          .hash = sequence.hashes_[block],
          .tokens = tokens.subspan(static_cast<size_t>(block) * size, size)};
}

// Fills matched_ with the longest indexed prefix that leaves a token to compute; returns how many
// of its blocks are free now, and will be taken off the free list.
int32_t KvCacheManager::Match(KvSequence* sequence, std::span<const TokenId> tokens) {
  const int32_t most = static_cast<int32_t>(tokens.size() - 1) / config_.block_size;
  ExtendHashes(sequence, tokens, most);
  PrefixSerial parent = kPrefixRoot;
  int32_t num_free = 0;
  for (int32_t i = 0; i < most; ++i) {
    const auto found = index_.Find(KeyOf(*sequence, tokens, i, parent));
    if (!found) break;
    matched_.push_back(*found);
    num_free += pool_.ref_count(found->block) == 0;
    parent = found->serial;
  }
  return num_free;
}

std::optional<int32_t> KvCacheManager::TryBegin(KvSequence* sequence,
                                                std::span<const TokenId> tokens, bool use_index,
                                                int32_t headroom) {
  VIVACE_CHECK(sequence->table_.size() == 0 && !tokens.empty());
  matched_.clear();
  const int32_t matched_free =
      use_index && config_.enable_prefix_caching ? Match(sequence, tokens) : 0;
  const int32_t num_matched = static_cast<int32_t>(matched_.size());
  const int32_t num_fresh = BlocksFor(static_cast<int64_t>(tokens.size())) - num_matched;
  if (pool_.num_free() - matched_free - num_fresh < headroom) return std::nullopt;

  for (const PrefixIndex::Entry& entry : matched_) sequence->table_.AppendShared(entry.block);
  for (int32_t i = 0; i < num_fresh; ++i) AppendFree(sequence);
  sequence->num_chained_ = num_matched;
  sequence->last_serial_ = matched_.empty() ? kPrefixRoot : matched_.back().serial;
  return num_matched * config_.block_size;
}

// What a reused block held before can no longer be found.
void KvCacheManager::AppendFree(KvSequence* sequence) {
  const BlockId block = sequence->table_.AppendFree();
  index_.Remove(block);
  pool_.SetRetained(block, false);
}

bool KvCacheManager::TryGrow(KvSequence* sequence, int64_t num_tokens) {
  const int32_t missing = BlocksFor(num_tokens) - sequence->table_.size();
  if (missing > pool_.num_free()) return false;
  for (int32_t i = 0; i < missing; ++i) AppendFree(sequence);
  return true;
}

void KvCacheManager::Computed(KvSequence* sequence, std::span<const TokenId> tokens,
                              int64_t computed) {
  if (!config_.enable_prefix_caching) return;
  const int32_t full = static_cast<int32_t>(computed / config_.block_size);
  ExtendHashes(sequence, tokens, full);
  for (int32_t& i = sequence->num_chained_; i < full; ++i) {
    const BlockId block = sequence->table_.blocks()[i];
    const auto entry = index_.Insert(block, KeyOf(*sequence, tokens, i, sequence->last_serial_));
    if (entry.block == block) pool_.SetRetained(block, true);
    sequence->last_serial_ = entry.serial;
  }
}

void KvCacheManager::End(KvSequence* sequence) { sequence->table_.Clear(); }

void KvCacheManager::ResetPrefixCache() {
  for (int32_t i = 0; i < pool_.num_total(); ++i) {
    const BlockId block(i);
    if (pool_.ref_count(block) > 0) continue;
    index_.Remove(block);
    pool_.SetRetained(block, false);
  }
}

bool KvCacheManager::Consistent() const {
  int32_t indexed = 0;
  for (int32_t i = 0; i < pool_.num_total(); ++i) {
    if (index_.Contains(BlockId(i)) != pool_.retained(BlockId(i))) return false;
    indexed += index_.Contains(BlockId(i));
  }
  return pool_.Consistent() && indexed == index_.size();
}

}  // namespace vivace
