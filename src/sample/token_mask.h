// One bit for each token of a vocabulary, 32 to a word: 1 where it may be drawn. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"

namespace vivace {

constexpr size_t MaskWords(int32_t vocab) { return (static_cast<size_t>(vocab) + 31) / 32; }

inline bool InMask(std::span<const uint32_t> mask, TokenId token) {
  const auto id = static_cast<uint32_t>(token);
  return (mask[id / 32] >> (id % 32) & 1) != 0;
}
inline void AddToMask(std::span<uint32_t> mask, TokenId token) {
  const auto id = static_cast<uint32_t>(token);
  mask[id / 32] |= 1u << (id % 32);
}
inline void TakeFromMask(std::span<uint32_t> mask, TokenId token) {
  const auto id = static_cast<uint32_t>(token);
  mask[id / 32] &= ~(1u << (id % 32));
}

}  // namespace vivace
