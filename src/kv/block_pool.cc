#include "kv/block_pool.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace vivace {

BlockPool::BlockPool(int32_t num_blocks) {
  VIVACE_CHECK(num_blocks >= 1);
  nodes_.resize(static_cast<size_t>(num_blocks) + 1);
  nodes_[num_blocks].prev = nodes_[num_blocks].next = num_blocks;
  for (int32_t i = 0; i < num_blocks; ++i) Link(i, sentinel());
}

const BlockPool::Node& BlockPool::node(BlockId block) const {
  VIVACE_DCHECK(block.value >= 0 && block.value < num_total());
  return nodes_[block.value];
}

BlockPool::Node& BlockPool::node(BlockId block) {
  return const_cast<Node&>(std::as_const(*this).node(block));
}

void BlockPool::Link(int32_t index, int32_t before) {
  Node& node = nodes_[index];
  node.next = before;
  node.prev = nodes_[before].prev;
  nodes_[node.prev].next = index;
  nodes_[before].prev = index;
  ++num_free_;
  num_retained_free_ += node.retained;
}

void BlockPool::Unlink(int32_t index) {
  const Node& node = nodes_[index];
  nodes_[node.prev].next = node.next;
  nodes_[node.next].prev = node.prev;
  --num_free_;
  num_retained_free_ -= node.retained;
}

BlockId BlockPool::Take() {
  VIVACE_CHECK(num_free_ > 0);
  const int32_t index = nodes_[sentinel()].next;
  Unlink(index);
  VIVACE_DCHECK(nodes_[index].refs == 0);
  nodes_[index].refs = 1;
  return BlockId(index);
}

void BlockPool::Share(BlockId block) {
  Node& shared = node(block);
  if (shared.refs == 0) Unlink(block.value);
  ++shared.refs;
}

void BlockPool::Drop(BlockId block) {
  Node& dropped = node(block);
  VIVACE_CHECK(dropped.refs > 0);
  if (--dropped.refs > 0) return;
  // Before the sentinel is the end of the list, before its successor the front.
  Link(block.value, dropped.retained ? sentinel() : nodes_[sentinel()].next);
}

void BlockPool::SetRetained(BlockId block, bool retained) {
  Node& changed = node(block);
  if (changed.retained == retained) return;
  changed.retained = retained;
  if (changed.refs == 0) num_retained_free_ += retained ? 1 : -1;
}

bool BlockPool::Consistent() const {
  int32_t listed = 0;
  int32_t retained = 0;
  for (int32_t i = nodes_[sentinel()].next; i != sentinel(); i = nodes_[i].next) {
    if (nodes_[i].refs != 0 || nodes_[nodes_[i].next].prev != i) return false;
    if (++listed > num_total()) return false;  // a cycle that misses the sentinel
    retained += nodes_[i].retained;
  }
  int32_t unreferenced = 0;
  for (int32_t i = 0; i < num_total(); ++i) unreferenced += nodes_[i].refs == 0;
  return listed == num_free_ && listed == unreferenced && retained == num_retained_free_;
}

BlockTable::BlockTable(BlockTable&& other) noexcept
    : pool_(other.pool_),
      claims_(other.claims_),
      claim_(std::exchange(other.claim_, 0)),
      first_(std::exchange(other.first_, 0)),
      blocks_(std::exchange(other.blocks_, {})) {}

BlockTable& BlockTable::operator=(BlockTable&& other) noexcept {
  if (this != &other) {
    Clear();
    pool_ = other.pool_;
    claims_ = other.claims_;
    claim_ = std::exchange(other.claim_, 0);
    first_ = std::exchange(other.first_, 0);
    blocks_ = std::exchange(other.blocks_, {});
  }
  return *this;
}

void BlockTable::SetClaim(int32_t num_blocks) {
  VIVACE_CHECK(claims_ && num_blocks >= num_held());
  pool_->num_claimed_ += num_blocks - claim_;
  claim_ = num_blocks;
}

BlockId BlockTable::AppendFree() {
  VIVACE_CHECK(!claims_ || num_held() < claim_);
  blocks_.push_back(pool_->Take());
  if (claims_) ++pool_->num_claimed_used_;
  return blocks_.back();
}

void BlockTable::AppendShared(BlockId block) {
  VIVACE_CHECK(!claims_ || num_held() < claim_);
  if (claims_ && pool_->ref_count(block) == 0) ++pool_->num_claimed_used_;
  pool_->Share(block);
  blocks_.push_back(block);
}

void BlockTable::SkipTo(int32_t index) {
  VIVACE_CHECK(blocks_.empty());
  blocks_.resize(static_cast<size_t>(index));
  first_ = index;
}

void BlockTable::Drop(BlockId block) {
  pool_->Drop(block);
  if (claims_ && pool_->ref_count(block) == 0) --pool_->num_claimed_used_;
}

void BlockTable::DropBefore(int32_t index) {
  VIVACE_CHECK(index <= size());
  for (; first_ < index; ++first_) {
    Drop(std::exchange(blocks_[static_cast<size_t>(first_)], BlockId()));
  }
}

void BlockTable::DropLast() {
  const BlockId last = blocks_.back();
  blocks_.pop_back();
  if (last.valid()) Drop(last);
  first_ = std::min(first_, size());
}

void BlockTable::Clear() {
  while (!blocks_.empty()) DropLast();
  if (claim_ > 0) SetClaim(0);
}

int32_t BlockTable::CountSole() const {
  if (claims_) return claim_;
  int32_t sole = 0;
  for (const BlockId block : blocks_) sole += pool_->ref_count(block) == 1;
  return sole;
}

}  // namespace vivace
