#include "kv/prefix_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace vivace {

// Twice as many buckets as blocks keeps chains short at 100 % occupancy.
PrefixIndex::PrefixIndex(int32_t num_blocks, int32_t block_size)
    : block_size_(block_size),
      nodes_(static_cast<size_t>(num_blocks)),
      tokens_(static_cast<size_t>(num_blocks) * static_cast<size_t>(block_size)),
      buckets_(std::bit_ceil(2 * static_cast<size_t>(num_blocks)), -1) {}

const int32_t& PrefixIndex::Bucket(const BlockHash& hash) const {
  uint64_t word;
  std::memcpy(&word, hash.data(), sizeof word);
  return buckets_[word & (buckets_.size() - 1)];
}

int32_t& PrefixIndex::Bucket(const BlockHash& hash) {
  return const_cast<int32_t&>(std::as_const(*this).Bucket(hash));
}

// The hash is compared first only because it is cheap and nearly always decides.
bool PrefixIndex::Equals(int32_t index, const PrefixKey& key) const {
  const Node& node = nodes_[index];
  const TokenId* tokens = tokens_.data() + static_cast<ptrdiff_t>(index) * block_size_;
  return node.hash == key.hash && node.parent == key.parent && node.space == key.space &&
         std::equal(key.tokens.begin(), key.tokens.end(), tokens);
}

std::optional<PrefixIndex::Entry> PrefixIndex::Find(const PrefixKey& key) const {
  VIVACE_DCHECK(static_cast<int32_t>(key.tokens.size()) == block_size_);
  for (int32_t i = Bucket(key.hash); i >= 0; i = nodes_[i].next) {
    if (Equals(i, key)) return Entry{BlockId(i), nodes_[i].serial};
  }
  return std::nullopt;
}

PrefixIndex::Entry PrefixIndex::Insert(BlockId block, const PrefixKey& key) {
  VIVACE_CHECK(!Contains(block));
  if (const auto found = Find(key)) return *found;
  Node& node = nodes_[block.value];
  int32_t& bucket = Bucket(key.hash);
  node = {.serial = ++last_serial_,
          .parent = key.parent,
          .next = bucket,
          .hash = key.hash,
          .space = key.space};
  bucket = block.value;
  std::copy(key.tokens.begin(), key.tokens.end(),
            tokens_.begin() + static_cast<ptrdiff_t>(block.value) * block_size_);
  ++size_;
  return {block, node.serial};
}

void PrefixIndex::Remove(BlockId block) {
  if (!Contains(block)) return;
  Node& node = nodes_[block.value];
  int32_t* link = &Bucket(node.hash);
  while (*link != block.value) link = &nodes_[*link].next;
  *link = node.next;
  node.serial = kPrefixRoot;
  --size_;
}

}  // namespace vivace
