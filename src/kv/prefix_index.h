// From the contents of a full block (what comes before it, its tokens) to the blocks that hold
// their keys and values, one in each group of the cache (kv/kv_groups.h). Owns copies of the
// tokens; never a reference to a block: who frees or reuses an indexed block removes it here first
// (KvCacheManager does).
//
// An entry lives as long as it has a block in some group: what one group has lost can be filled in
// again under the same serial. A find or insert costs one probe and a comparison of block_size
// token ids. No allocation after construction. Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kv/block_hash.h"

namespace vivace {

// Identity of indexed contents. Given out once and never again, so "my parent is serial 7" cannot
// come to mean other contents when blocks are reused, whatever the hash is worth.
using PrefixSerial = uint64_t;
inline constexpr PrefixSerial kPrefixRoot = 0;  // the parent of a prompt's first block

struct PrefixKey {
  const BlockHash& space;           // NamespaceHash
  PrefixSerial parent;              // serial of the block before, or kPrefixRoot
  const BlockHash& hash;            // the chain's hash up to and with this block
  std::span<const TokenId> tokens;  // [block_size]
};

class PrefixIndex final {
 public:
  struct Entry {
    int32_t id;  // while it lives
    PrefixSerial serial;
  };

  PrefixIndex(int32_t num_blocks, int32_t block_size, int32_t num_groups = 1);

  // The entry whose namespace, parent, hash and tokens all equal the key's.
  std::optional<Entry> Find(const PrefixKey& key) const;

  // The block of an entry in a group; invalid if it has none there.
  BlockId block(const Entry& entry, int32_t group) const {
    return blocks_[static_cast<size_t>(Place(entry.id, group))];
  }

  // Enters a block in each group, unless these contents have one there already. The entry's
  // successors take it as their parent. No block may be indexed yet, and each must be valid.
  // Blocks that were not needed are not Contained afterwards.
  Entry Insert(std::span<const BlockId> blocks, const PrefixKey& key);

  void Remove(BlockId block);  // no-op if it is not indexed
  bool Contains(BlockId block) const { return places_[block.value] >= 0; }
  int32_t size() const { return size_; }              // entries
  int32_t num_blocks() const { return num_blocks_; }  // in them

 private:
  struct Node {
    PrefixSerial serial = kPrefixRoot;
    PrefixSerial parent = kPrefixRoot;
    int32_t next = -1;       // of the same bucket, or of the free list
    int32_t num_blocks = 0;  // 0: free
    BlockHash hash{};
    BlockHash space{};
  };

  int64_t Place(int32_t id, int32_t group) const { return int64_t{id} * num_groups_ + group; }
  int32_t& Bucket(const BlockHash& hash);
  const int32_t& Bucket(const BlockHash& hash) const;
  bool Equals(int32_t id, const PrefixKey& key) const;
  int32_t Add(const PrefixKey& key);
  void RemoveEntry(int32_t id);

  int32_t block_size_;
  int32_t num_groups_;
  int32_t size_ = 0;
  int32_t num_blocks_ = 0;
  int32_t first_free_ = 0;
  PrefixSerial last_serial_ = kPrefixRoot;
  std::vector<Node> nodes_;       // [num_blocks]: each entry has a block of its own
  std::vector<TokenId> tokens_;   // [num_blocks, block_size]
  std::vector<BlockId> blocks_;   // [num_blocks, num_groups], by entry
  std::vector<int64_t> places_;   // [num_blocks], by block: its index in blocks_, or -1
  std::vector<int32_t> buckets_;  // [power of two], first entry of the chain or -1
};

}  // namespace vivace
