// Which KV blocks are free, and who holds the others. Knows nothing of tokens or of memory.
//
// BlockPool owns the counts; BlockTable is the only way to hold a block: it takes references and
// gives them back when it is cleared or destroyed, so a block cannot leak or be freed twice.
//
// A table may claim blocks: the pool then has as many for it, whatever others take, and the table
// holds no more than that at once. What it gives back it may take again. Claims count as if nothing
// were shared, because a shared block that one holder gives back is not free.
// Every operation is O(1) per block and allocates nothing once a table is reserved.
// Thread: one (the engine's).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace vivace {

// The free list is kept in the order in which blocks are handed out again: blocks with nothing
// worth keeping first, then retained ones (their contents can still be found), least recently used
// first.
class BlockPool final {
 public:
  explicit BlockPool(int32_t num_blocks);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  int32_t num_total() const { return static_cast<int32_t>(nodes_.size()) - 1; }
  int32_t num_free() const { return num_free_; }  // retained ones included
  // Free blocks that nobody has claimed.
  int32_t num_available() const { return num_free_ - (num_claimed_ - num_claimed_used_); }
  int32_t num_claimed() const { return num_claimed_; }            // of all tables
  int32_t num_claimed_used() const { return num_claimed_used_; }  // blocks held by claiming tables
  int32_t num_used() const { return num_total() - num_free_; }
  int32_t num_retained_free() const { return num_retained_free_; }
  int32_t ref_count(BlockId block) const { return node(block).refs; }
  bool retained(BlockId block) const { return node(block).retained; }

  // Whether the block's contents are worth keeping while it is free.
  void SetRetained(BlockId block, bool retained);

  // Walks the free list and recounts; for tests. False if the list and the counts disagree.
  bool Consistent() const;

 private:
  friend class BlockTable;

  struct Node {
    int32_t refs = 0;
    int32_t prev = 0;  // in the free list, only while refs is 0
    int32_t next = 0;
    bool retained = false;
  };

  BlockId Take();             // first of the free list, one reference; num_free() must be > 0
  void Share(BlockId block);  // one more reference; takes a free block off the list
  void Drop(BlockId block);   // one less; the last one frees it

  const Node& node(BlockId block) const;
  Node& node(BlockId block);
  int32_t sentinel() const { return num_total(); }
  void Link(int32_t index, int32_t before);
  void Unlink(int32_t index);

  std::vector<Node> nodes_;  // [num_blocks + 1]; the last one closes the free list to a ring
  int32_t num_free_ = 0;
  int32_t num_retained_free_ = 0;
  int32_t num_claimed_ = 0;
  int32_t num_claimed_used_ = 0;
};

// The blocks of one sequence in the order of its positions, of which the first may be gone again.
// Movable, not copyable. The pool must outlive it.
class BlockTable final {
 public:
  enum class Kind : uint8_t { kPlain, kClaiming };  // a block is never in tables of both

  BlockTable() = default;
  explicit BlockTable(BlockPool* pool, Kind kind = Kind::kPlain)
      : pool_(pool), claims_(kind == Kind::kClaiming) {}
  ~BlockTable() { Clear(); }
  BlockTable(BlockTable&& other) noexcept;
  BlockTable& operator=(BlockTable&& other) noexcept;
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  // Invalid ids in the places before first().
  std::span<const BlockId> blocks() const { return blocks_; }
  int32_t size() const { return static_cast<int32_t>(blocks_.size()); }
  int32_t first() const { return first_; }
  int32_t num_held() const { return size() - first_; }
  bool claims() const { return claims_; }
  int32_t claim() const { return claim_; }

  // Changes what a claiming table may hold at once, not below what it does hold. Who raises it
  // has looked at num_available().
  void SetClaim(int32_t num_blocks);

  void Reserve(int32_t num_blocks) { blocks_.reserve(static_cast<size_t>(num_blocks)); }

  // Appends the next free block, or `block` shared with whoever else holds it (it may be free).
  // The block AppendFree returns may be retained: its contents are gone from now on.
  BlockId AppendFree();
  void AppendShared(BlockId block);

  // Starts an empty table at block `index`: the places before it hold none.
  void SkipTo(int32_t index);
  // Gives back the blocks before `index`, first block first; their places stay.
  void DropBefore(int32_t index);
  void DropLast();

  // Gives everything back, the claim too, last block first: of a retained chain the tail is handed
  // out again before the head, so what is left stays a findable prefix.
  void Clear();

  // What Clear() would make available: a claim, or the blocks that no other table holds.
  int32_t CountSole() const;

 private:
  void Drop(BlockId block);

  BlockPool* pool_ = nullptr;
  bool claims_ = false;
  int32_t claim_ = 0;
  int32_t first_ = 0;
  std::vector<BlockId> blocks_;
};

}  // namespace vivace
