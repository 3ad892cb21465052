#include "kv/prefix_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace vivace {

// Twice as many buckets as blocks keeps chains short at 100 % occupancy.
PrefixIndex::PrefixIndex(int32_t num_blocks, int32_t block_size, int32_t num_groups)
    : block_size_(block_size),
      num_groups_(num_groups),
      nodes_(static_cast<size_t>(num_blocks)),
      tokens_(static_cast<size_t>(num_blocks) * static_cast<size_t>(block_size)),
      blocks_(static_cast<size_t>(num_blocks) * static_cast<size_t>(num_groups)),
      places_(static_cast<size_t>(num_blocks), -1),
      buckets_(std::bit_ceil(2 * static_cast<size_t>(num_blocks)), -1) {
  for (int32_t i = 0; i + 1 < num_blocks; ++i) nodes_[i].next = i + 1;
}

const int32_t& PrefixIndex::Bucket(const BlockHash& hash) const {
  uint64_t word;
  std::memcpy(&word, hash.data(), sizeof word);
  return buckets_[word & (buckets_.size() - 1)];
}

int32_t& PrefixIndex::Bucket(const BlockHash& hash) {
  return const_cast<int32_t&>(std::as_const(*this).Bucket(hash));
}

// The hash is compared first only because it is cheap and nearly always decides.
bool PrefixIndex::Equals(int32_t id, const PrefixKey& key) const {
  const Node& node = nodes_[id];
  const TokenId* tokens = tokens_.data() + static_cast<ptrdiff_t>(id) * block_size_;
  return node.hash == key.hash && node.parent == key.parent && node.space == key.space &&
         std::equal(key.tokens.begin(), key.tokens.end(), tokens);
}

std::optional<PrefixIndex::Entry> PrefixIndex::Find(const PrefixKey& key) const {
  VIVACE_DCHECK(static_cast<int32_t>(key.tokens.size()) == block_size_);
  for (int32_t i = Bucket(key.hash); i >= 0; i = nodes_[i].next) {
    if (Equals(i, key)) return Entry{i, nodes_[i].serial};
  }
  return std::nullopt;
}

PrefixIndex::Entry PrefixIndex::Insert(std::span<const BlockId> blocks, const PrefixKey& key) {
  VIVACE_DCHECK(static_cast<int32_t>(blocks.size()) == num_groups_);
  const auto found = Find(key);
  const int32_t id = found ? found->id : Add(key);
  for (int32_t group = 0; group < num_groups_; ++group) {
    const BlockId block = blocks[group];
    VIVACE_CHECK(block.valid() && !Contains(block));
    const int64_t place = Place(id, group);
    if (blocks_[place].valid()) continue;
    blocks_[place] = block;
    places_[block.value] = place;
    ++nodes_[id].num_blocks;
    ++num_blocks_;
  }
  return {id, nodes_[id].serial};
}

// There is a free one: entries have a block each, and the caller's is in none.
int32_t PrefixIndex::Add(const PrefixKey& key) {
  const int32_t id = first_free_;
  VIVACE_CHECK(id >= 0);
  Node& node = nodes_[id];
  first_free_ = node.next;
  int32_t& bucket = Bucket(key.hash);
  node = {.serial = ++last_serial_,
          .parent = key.parent,
          .next = bucket,
          .num_blocks = 0,
          .hash = key.hash,
          .space = key.space};
  bucket = id;
  std::copy(key.tokens.begin(), key.tokens.end(),
            tokens_.begin() + static_cast<ptrdiff_t>(id) * block_size_);
  ++size_;
  return id;
}

void PrefixIndex::Remove(BlockId block) {
  if (!Contains(block)) return;
  const int64_t place = std::exchange(places_[block.value], -1);
  blocks_[place] = BlockId();
  --num_blocks_;
  const auto id = static_cast<int32_t>(place / num_groups_);
  if (--nodes_[id].num_blocks == 0) RemoveEntry(id);
}

void PrefixIndex::RemoveEntry(int32_t id) {
  Node& node = nodes_[id];
  int32_t* link = &Bucket(node.hash);
  while (*link != id) link = &nodes_[*link].next;
  *link = node.next;
  node.next = first_free_;
  first_free_ = id;
  --size_;
}

}  // namespace vivace
