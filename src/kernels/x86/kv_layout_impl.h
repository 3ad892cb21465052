// How the x86 tiers lay K and V out inside a cache block, as templates over the tier's Vec.
//
// Per block: kv heads one after the other; per head first K, then V.
//   K  groups of 16 positions; in a group [head_dim/2][16 positions][2 dims]: one load holds a pair
//      of dims for 16 (or 8) positions, so a score needs no horizontal sum.
//   V  one row per position, head_dim padded to a multiple of 2 * kLanes. Inside each such piece
//   the
//      values j and j + kLanes share a 32-bit word, so that two bit operations widen bf16 to two
//      vectors of consecutive dims.
// fp32 caches have the same shape with two words where bf16 has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/block_ops.h"

namespace vivace::kernels {
namespace {  // internal linkage: no tier may end up with another's instructions

constexpr int kGroup = 16;            // positions of a K group
constexpr int32_t kMaxHeadDim = 512;  // what the register-tile scratch is made for

template <class V>
struct Bf16Elements {
  using T = uint16_t;
  static typename V::F KeyEven(const T* group, int pair, int vec) {
    return V::LoadLow(group + (pair * kGroup + vec * V::kLanes) * 2);
  }
  static typename V::F KeyOdd(const T* group, int pair, int vec) {
    return V::LoadHigh(group + (pair * kGroup + vec * V::kLanes) * 2);
  }
  static typename V::F ValueLow(const T* row, int piece) {
    return V::LoadLow(row + piece * 2 * V::kLanes);
  }
  static typename V::F ValueHigh(const T* row, int piece) {
    return V::LoadHigh(row + piece * 2 * V::kLanes);
  }
  static T Narrow(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    if (x != x) return static_cast<T>((bits >> 16) | 0x40);
    return static_cast<T>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
  // Brings `count` elements from `p` on nearer; any address will do.
  static void Prefetch(const T* p, int count) {
    for (int i = 0; i < count * static_cast<int>(sizeof(T)); i += 64) {
      __builtin_prefetch(reinterpret_cast<const char*>(p) + i);
    }
  }
  static void StoreKey(T* group, int position, const float* k, int pairs) {
    for (int i = 0; i < pairs; ++i) {
      T* out = group + (i * kGroup + position) * 2;
      out[0] = Narrow(k[2 * i]);
      out[1] = Narrow(k[2 * i + 1]);
    }
  }
  static void StoreValuePiece(T* row, int piece, typename V::F low, typename V::F high) {
    V::StorePair(row + piece * 2 * V::kLanes, low, high);
  }
};

template <class V>
struct F32Elements {
  using T = float;
  static typename V::F KeyEven(const T* group, int pair, int vec) {
    return V::Load(group + 2 * pair * kGroup + vec * V::kLanes);
  }
  static typename V::F KeyOdd(const T* group, int pair, int vec) {
    return V::Load(group + (2 * pair + 1) * kGroup + vec * V::kLanes);
  }
  static typename V::F ValueLow(const T* row, int piece) {
    return V::Load(row + piece * 2 * V::kLanes);
  }
  static typename V::F ValueHigh(const T* row, int piece) {
    return V::Load(row + (piece * 2 + 1) * V::kLanes);
  }
  // Brings `count` elements from `p` on nearer; any address will do.
  static void Prefetch(const T* p, int count) {
    for (int i = 0; i < count * static_cast<int>(sizeof(T)); i += 64) {
      __builtin_prefetch(reinterpret_cast<const char*>(p) + i);
    }
  }
  static void StoreKey(T* group, int position, const float* k, int pairs) {
    for (int i = 0; i < 2 * pairs; ++i) group[i * kGroup + position] = k[i];
  }
  static void StoreValuePiece(T* row, int piece, typename V::F low, typename V::F high) {
    V::Store(row + piece * 2 * V::kLanes, low);
    V::Store(row + (piece * 2 + 1) * V::kLanes, high);
  }
};

// Offsets, in elements of Kv::T.
template <class V, class Kv>
struct KvLayout {
  using T = typename Kv::T;

  explicit KvLayout(const KvGeometry& g)
      : block_size(g.block_size),
        value_dim((g.head_dim + 2 * V::kLanes - 1) / (2 * V::kLanes) * (2 * V::kLanes)),
        key_group(static_cast<int64_t>(g.head_dim) * kGroup),
        keys(g.block_size / kGroup * key_group),
        head(keys + static_cast<int64_t>(g.block_size) * value_dim),
        block(head * g.kv_heads) {}

  T* Key(std::byte* data, int32_t block_id, int32_t kv_head, int32_t offset) const {
    return reinterpret_cast<T*>(data) + block_id * block + kv_head * head +
           offset / kGroup * key_group;
  }
  T* Value(std::byte* data, int32_t block_id, int32_t kv_head, int32_t offset) const {
    return reinterpret_cast<T*>(data) + block_id * block + kv_head * head + keys +
           static_cast<int64_t>(offset) * value_dim;
  }

  int32_t block_size;
  int32_t value_dim;  // padded
  int64_t key_group;
  int64_t keys;  // of one head
  int64_t head;
  int64_t block;
};

template <class V>
size_t KvBlockBytesImpl(const KvGeometry& g) {
  if (g.head_dim < 2 || g.head_dim % 2 != 0 || g.head_dim > kMaxHeadDim || g.kv_heads < 1 ||
      g.block_size < kGroup || g.block_size % kGroup != 0) {
    return 0;
  }
  if (g.dtype == KvDType::kF32) {
    return static_cast<size_t>(KvLayout<V, F32Elements<V>>(g).block) * sizeof(float);
  }
  return static_cast<size_t>(KvLayout<V, Bf16Elements<V>>(g).block) * sizeof(uint16_t);
}

}  // namespace
}  // namespace vivace::kernels
