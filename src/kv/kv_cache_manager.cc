#include "kv/kv_cache_manager.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace vivace {

int32_t KvSequence::CountSoleBlocks() const {
  int32_t sole = 0;
  for (const BlockTable& table : tables_) sole += table.CountSole();
  return sole;
}

KvCacheManager::KvCacheManager(const KvCacheConfig& config, std::unique_ptr<BlockHasher> hasher)
    : config_(config),
      hasher_(std::move(hasher)),
      pool_(config.num_blocks),
      index_(config.num_blocks, config.block_size, config.windows.size()) {
  VIVACE_CHECK(config.block_size >= 1 && config.windows.size() >= 1);
  matched_.reserve(static_cast<size_t>(config.num_blocks));
}

KvSequence KvCacheManager::Open(std::string_view salt, std::string_view adapter,
                                int64_t max_tokens) {
  KvSequence sequence;
  sequence.tables_.reserve(static_cast<size_t>(num_groups()));
  for (int32_t g = 0; g < num_groups(); ++g) {
    const auto kind = window(g) > 0 ? BlockTable::Kind::kClaiming : BlockTable::Kind::kPlain;
    sequence.tables_.emplace_back(&pool_, kind).Reserve(BlocksFor(max_tokens));
  }
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

// Fills matched_ with the longest indexed prefix that leaves a token to compute.
void KvCacheManager::Match(KvSequence* sequence, std::span<const TokenId> tokens) {
  const int32_t most = static_cast<int32_t>(tokens.size() - 1) / config_.block_size;
  ExtendHashes(sequence, tokens, most);
  PrefixSerial parent = kPrefixRoot;
  for (int32_t i = 0; i < most; ++i) {
    const auto found = index_.Find(KeyOf(*sequence, tokens, i, parent));
    if (!found) break;
    matched_.push_back(*found);
    parent = found->serial;
  }
  matched_.resize(static_cast<size_t>(LongestUsable()));
}

// The most blocks of matched_ that a sequence can continue from: each group must have those that
// the next token sees.
int32_t KvCacheManager::LongestUsable() {
  std::array<int32_t, kMaxKvGroups> since{};  // by group: all blocks from here on are there
  int32_t longest = 0;
  for (int32_t n = 1; n <= static_cast<int32_t>(matched_.size()); ++n) {
    bool usable = true;
    for (int32_t g = 0; g < num_groups(); ++g) {
      if (!index_.block(matched_[n - 1], g).valid()) since[g] = n;
      usable &= since[g] <= FirstVisible(g, int64_t{n} * config_.block_size);
    }
    if (usable) longest = n;
  }
  return longest;
}

// Available blocks that beginning takes in a group, of which matched_ is what was found: in a full
// group those that are missing and those that were free, in a window group what it claims.
int32_t KvCacheManager::BeginCost(int32_t group, int64_t num_tokens) const {
  const int32_t num_matched = static_cast<int32_t>(matched_.size());
  if (window(group) > 0) {
    const int64_t found = int64_t{num_matched} * config_.block_size;
    const int64_t chunk = std::min<int64_t>(config_.max_chunk, num_tokens - found);
    return MostBlocks(window(group), config_.block_size, num_tokens, chunk);
  }
  int32_t cost = BlocksFor(num_tokens) - num_matched;
  for (const PrefixIndex::Entry& entry : matched_) {
    cost += pool_.ref_count(index_.block(entry, group)) == 0;
  }
  return cost;
}

std::optional<int32_t> KvCacheManager::TryBegin(KvSequence* sequence,
                                                std::span<const TokenId> tokens, bool use_index,
                                                int32_t headroom) {
  VIVACE_CHECK(!tokens.empty());
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  matched_.clear();
  if (use_index && config_.enable_prefix_caching) Match(sequence, tokens);
  int64_t cost = 0;
  for (int32_t g = 0; g < num_groups(); ++g) cost += BeginCost(g, num_tokens);
  if (pool_.num_available() - cost < headroom) return std::nullopt;

  // What was found comes off the free list before anything is taken from there.
  for (int32_t g = 0; g < num_groups(); ++g) {
    BeginTable(&sequence->tables_[static_cast<size_t>(g)], g, num_tokens);
  }
  for (BlockTable& table : sequence->tables_) {
    if (!table.claims()) Fill(&table, BlocksFor(num_tokens));
  }
  sequence->num_chained_ = static_cast<int32_t>(matched_.size());
  sequence->last_serial_ = matched_.empty() ? kPrefixRoot : matched_.back().serial;
  return sequence->num_chained_ * config_.block_size;
}

void KvCacheManager::BeginTable(BlockTable* table, int32_t group, int64_t num_tokens) {
  VIVACE_CHECK(table->size() == 0);
  if (table->claims()) table->SetClaim(BeginCost(group, num_tokens));
  const auto num_matched = static_cast<int32_t>(matched_.size());
  const int32_t first = FirstVisible(group, int64_t{num_matched} * config_.block_size);
  table->SkipTo(first);
  for (int32_t i = first; i < num_matched; ++i) {
    table->AppendShared(index_.block(matched_[i], group));
  }
}

// What a reused block held before can no longer be found.
void KvCacheManager::Fill(BlockTable* table, int32_t num_blocks) {
  while (table->size() < num_blocks) {
    const BlockId block = table->AppendFree();
    index_.Remove(block);
    pool_.SetRetained(block, false);
  }
}

void KvCacheManager::Advance(KvSequence* sequence, int64_t end) {
  for (BlockTable& table : sequence->tables_) {
    if (table.claims()) Fill(&table, BlocksFor(end));
  }
}

bool KvCacheManager::TryGrow(KvSequence* sequence, int64_t num_tokens, int32_t chunk) {
  const int32_t num_blocks = BlocksFor(num_tokens);
  const auto claim = [&](int32_t group) {
    return MostBlocks(window(group), config_.block_size, num_tokens, chunk);
  };
  int32_t cost = 0;
  for (int32_t g = 0; g < num_groups(); ++g) {
    const BlockTable& table = sequence->table(g);
    cost += table.claims() ? claim(g) - table.claim() : std::max(num_blocks - table.size(), 0);
  }
  if (cost > pool_.num_available()) return false;
  for (int32_t g = 0; g < num_groups(); ++g) {
    BlockTable& table = sequence->tables_[static_cast<size_t>(g)];
    if (table.claims()) {
      table.SetClaim(claim(g));
    } else {
      Fill(&table, num_blocks);
    }
  }
  return true;
}

int32_t KvCacheManager::NextGrowth(const KvSequence& sequence, int64_t max_tokens) const {
  int32_t blocks = 0;
  for (int32_t g = 0; g < num_groups(); ++g) {
    const BlockTable& table = sequence.table(g);
    const int32_t most = MostBlocks(window(g), config_.block_size, max_tokens, 1);
    blocks += most > (table.claims() ? table.claim() : table.size());
  }
  return blocks;
}

int32_t KvCacheManager::NextGrowth(int64_t num_tokens, int64_t max_tokens) const {
  int32_t blocks = 0;
  for (int32_t g = 0; g < num_groups(); ++g) {
    blocks += MostBlocks(window(g), config_.block_size, max_tokens, 1) >
              MostBlocks(window(g), config_.block_size, num_tokens, 1);
  }
  return blocks;
}

void KvCacheManager::Computed(KvSequence* sequence, std::span<const TokenId> tokens,
                              int64_t computed) {
  if (config_.enable_prefix_caching) Index(sequence, tokens, computed);
  for (int32_t g = 0; g < num_groups(); ++g) {
    if (window(g) == 0) continue;
    sequence->tables_[static_cast<size_t>(g)].DropBefore(FirstVisible(g, computed));
  }
}

// The blocks that have become full since last time still stand in all tables: the step that filled
// them saw them.
void KvCacheManager::Index(KvSequence* sequence, std::span<const TokenId> tokens,
                           int64_t computed) {
  const int32_t full = static_cast<int32_t>(computed / config_.block_size);
  ExtendHashes(sequence, tokens, full);
  std::array<BlockId, kMaxKvGroups> blocks;
  const auto groups = static_cast<size_t>(num_groups());
  for (int32_t& i = sequence->num_chained_; i < full; ++i) {
    for (size_t g = 0; g < groups; ++g) blocks[g] = sequence->tables_[g].blocks()[i];
    const auto entry = index_.Insert(std::span(blocks).first(groups),
                                     KeyOf(*sequence, tokens, i, sequence->last_serial_));
    for (size_t g = 0; g < groups; ++g) {
      if (index_.Contains(blocks[g])) pool_.SetRetained(blocks[g], true);
    }
    sequence->last_serial_ = entry.serial;
  }
}

// Of each group the last block first: a prompt is found again only if all groups have it, so they
// lose their tails together.
void KvCacheManager::End(KvSequence* sequence) {
  int32_t size = 0;
  for (const BlockTable& table : sequence->tables_) size = std::max(size, table.size());
  for (; size > 0; --size) {
    for (BlockTable& table : sequence->tables_) {
      if (table.size() == size) table.DropLast();
    }
  }
  for (BlockTable& table : sequence->tables_) table.Clear();  // claims
}

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
  return pool_.Consistent() && indexed == index_.num_blocks() && index_.size() <= indexed;
}

}  // namespace vivace
