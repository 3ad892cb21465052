// Content hashes of KV blocks: a SHA-256 chain from a namespace over the blocks of a prompt.
//
// A hash only finds candidates. The prefix index compares what was hashed as well, so a collision
// costs a miss and can never hand out another prompt's KV.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/ids.h"

namespace vivace {

using BlockHash = std::array<uint8_t, 32>;

// The root of a chain: prompts share blocks only within one namespace. Fields are tagged and
// length-prefixed, so that salt "x" is not adapter "x".
BlockHash NamespaceHash(std::string_view salt, std::string_view adapter);

// How a block's hash follows from its parent's and its tokens. Virtual only so that tests can make
// collisions common.
class BlockHasher {
 public:
  virtual ~BlockHasher() = default;
  virtual BlockHash Hash(const BlockHash& parent, std::span<const TokenId> tokens) = 0;
};

// Neither allocates nor locks: it is called in a step. Any thread.
class Sha256Hasher final : public BlockHasher {
 public:
  BlockHash Hash(const BlockHash& parent, std::span<const TokenId> tokens) override;
};

}  // namespace vivace
