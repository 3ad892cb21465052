// From the contents of a full block (what comes before it, its tokens) to the block that holds
// their keys and values. Owns copies of the tokens; never a reference to a block: who frees or
// reuses an indexed block removes it here first (KvCacheManager does).
//
// A find or insert costs one probe and a comparison of block_size token ids. No allocation after
// construction. Thread: one.
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
    BlockId block;
    PrefixSerial serial;
  };

  PrefixIndex(int32_t num_blocks, int32_t block_size);

  // The block whose namespace, parent, hash and tokens all equal the key's.
  std::optional<Entry> Find(const PrefixKey& key) const;

  // Enters `block`, unless these contents are there already: then returns the entry that is, which
  // `block`'s successors take as their parent. `block` must not be indexed yet.
  Entry Insert(BlockId block, const PrefixKey& key);

  void Remove(BlockId block);  // no-op if it is not indexed
  bool Contains(BlockId block) const { return nodes_[block.value].serial != kPrefixRoot; }
  int32_t size() const { return size_; }

 private:
  struct Node {
    PrefixSerial serial = kPrefixRoot;  // kPrefixRoot: not indexed
    PrefixSerial parent = kPrefixRoot;
    int32_t next = -1;  // next block of the same bucket
    BlockHash hash{};
    BlockHash space{};
  };

  int32_t& Bucket(const BlockHash& hash);
  const int32_t& Bucket(const BlockHash& hash) const;
  bool Equals(int32_t index, const PrefixKey& key) const;

  int32_t block_size_;
  int32_t size_ = 0;
  PrefixSerial last_serial_ = kPrefixRoot;
  std::vector<Node> nodes_;       // [num_blocks]
  std::vector<TokenId> tokens_;   // [num_blocks, block_size]
  std::vector<int32_t> buckets_;  // [power of two], first block of the chain or -1
};

}  // namespace vivace
