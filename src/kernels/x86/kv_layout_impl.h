// How the x86 tiers lay K and V out inside a cache block, as templates over the tier's Vec.
//
// Per block: kv heads one after the other; per head first K, then V, both in groups of 16
// positions.
//   K  [head_dim/2][16 positions][2 dims]: one load holds a pair of dims for 16 (or 8) positions,
//      so a score needs no horizontal sum.
//   V  [8][head_dim, padded to a multiple of 2 * kLanes][2 positions]: one load holds a vector of
//      dims for a pair of positions.
// So two bit operations widen a load of bf16 to two vectors, and a load of int8 is what a
// multiply-add of pairs takes. fp32 has no pairs to keep: K is [head_dim][16], V [16][head_dim].
// An int8 group ends with 16 fp32 scales, one for each position: value = scale * int8.
// Of latents (KvGeometry::latent_dim) there are only keys: attention turns a tile's keys into
// values once for all its rows (KeysToValues).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/block_ops.h"

namespace vivace::kernels {
namespace {  // internal linkage: no tier may end up with another's instructions

constexpr int kGroupShift = 4;
constexpr int kGroup = 1 << kGroupShift;  // positions of a group
constexpr int32_t kMaxHeadDim = 576;      // what the register-tile scratch is made for
constexpr int kMaxLanes = 16;

// The largest query value beside an int8 cache: a score is a sum of head_dim products of an int16
// and an int8, in 32 bits.
constexpr int32_t MaxQueryValue(int32_t head_dim) {
  const int32_t most = std::numeric_limits<int32_t>::max() / 127 / head_dim;
  return most < 32767 ? most : 32767;
}

// Brings `bytes` from `p` on nearer; any address will do.
[[maybe_unused]] inline void PrefetchBytes(const void* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char*>(p) + i, 0, 2);
}

template <class V>
struct Bf16Elements {
  using T = uint16_t;
  using F = typename V::F;
  static constexpr bool kInteger = false;
  static constexpr bool kDot = false;
  static constexpr int kScaleElements = 0;          // of T at the end of a group
  static constexpr int kValueStep = 2 * V::kLanes;  // from one vector of dims to the next

  static F KeyEven(const T* group, int pair, int vec) {
    return V::LoadLow(group + (pair * kGroup + vec * V::kLanes) * 2);
  }
  static F KeyOdd(const T* group, int pair, int vec) {
    return V::LoadHigh(group + (pair * kGroup + vec * V::kLanes) * 2);
  }
  // `row` is where a pair of positions begins, here and below; an odd one is its second.
  static F ValueEven(const T* row, int /*value_dim*/, int vec) {
    return V::LoadLow(row + vec * kValueStep);
  }
  static F ValueOdd(const T* row, int /*value_dim*/, int vec) {
    return V::LoadHigh(row + vec * kValueStep);
  }

  static void StoreKey(T* group, int position, const float* k, int dims) {
    alignas(64) T row[kMaxHeadDim];
    Narrow(k, dims, row);
    for (int i = 0; i < dims / 2; ++i) {
      std::memcpy(group + (i * kGroup + position) * 2, row + 2 * i, 2 * sizeof(T));
    }
  }
  static void StoreValue(T* group, int position, const float* v, int dims, int value_dim) {
    alignas(64) T row[kMaxHeadDim];
    Narrow(v, dims, row);
    T* out = group + position / 2 * 2 * value_dim + position % 2;
    for (int d = 0; d < dims; ++d) out[2 * d] = row[d];
  }

  // The first `dims` dims of a group of keys as a group of values.
  static void KeysToValues(const T* keys, int /*key_dims*/, int dims, int value_dim, T* values) {
    int i = 0;
    for (; i + V::kPairRows <= dims / 2; i += V::kPairRows) {
      V::SwapPairs(keys + i * 2 * kGroup, values + 4 * i, 2 * value_dim);
    }
    for (; i < dims / 2; ++i) {
      for (int t = 0; t < kGroup; t += 2) {
        uint64_t x;  // {dims 2i, 2i + 1} of two positions
        std::memcpy(&x, keys + (i * kGroup + t) * 2, sizeof x);
        x = (x & 0xffff00000000ffffu) | (x >> 16 & 0xffff0000u) | (x & 0xffff0000u) << 16;
        std::memcpy(values + t * value_dim + 4 * i, &x, sizeof x);
      }
    }
  }

 private:
  static void Narrow(const float* x, int dims, T* row) {
    for (int d = 0; d < dims; d += V::kLanes) V::StoreBf16(row + d, V::LoadFirst(x + d, dims - d));
  }
};

// The same cache, multiplied by dot products of bf16 pairs: queries and weights are rounded to bf16
// too. V has DotBf16 then.
template <class V>
struct Bf16DotElements : Bf16Elements<V> {
  static constexpr bool kDot = true;
};

template <class V>
struct F32Elements {
  using T = float;
  using F = typename V::F;
  static constexpr bool kInteger = false;
  static constexpr bool kDot = false;
  static constexpr int kScaleElements = 0;
  static constexpr int kValueStep = V::kLanes;

  static F KeyEven(const T* group, int pair, int vec) {
    return V::Load(group + 2 * pair * kGroup + vec * V::kLanes);
  }
  static F KeyOdd(const T* group, int pair, int vec) {
    return V::Load(group + (2 * pair + 1) * kGroup + vec * V::kLanes);
  }
  static F ValueEven(const T* row, int /*value_dim*/, int vec) {
    return V::Load(row + vec * kValueStep);
  }
  static F ValueOdd(const T* row, int value_dim, int vec) {
    return V::Load(row + value_dim + vec * kValueStep);
  }

  static void StoreKey(T* group, int position, const float* k, int dims) {
    for (int d = 0; d < dims; ++d) group[d * kGroup + position] = k[d];
  }
  static void StoreValue(T* group, int position, const float* v, int dims, int value_dim) {
    std::memcpy(group + static_cast<int64_t>(position) * value_dim, v, sizeof(float) * dims);
  }
  static void KeysToValues(const T* keys, int /*key_dims*/, int dims, int value_dim, T* values) {
    for (int d = 0; d < dims; ++d) {
      for (int t = 0; t < kGroup; ++t) values[t * value_dim + d] = keys[d * kGroup + t];
    }
  }
};

// Int8 with a scale for each position: max |x| / 127. A row with a NaN or an infinity has the
// scale infinity and zeros, so that whoever sees it gets NaN and nobody else anything.
template <class V>
struct Int8Elements {
  using T = int8_t;
  using F = typename V::F;
  static constexpr bool kInteger = true;
  static constexpr bool kDot = false;
  static constexpr int kScaleElements = kGroup * sizeof(float);
  static constexpr int kValueStep = 2 * V::kLanes;

  // 2 * kLanes values as 16 bits.
  static typename V::I Key(const T* group, int pair, int vec) {
    return V::WidenBytes(group + (pair * kGroup + vec * V::kLanes) * 2);
  }
  static typename V::I Value(const T* row, int vec) {
    return V::WidenBytes(row + vec * kValueStep);
  }
  // The scales of a group of K or V whose rows have `dims` values.
  static const float* Scales(const T* group, int dims) {
    return reinterpret_cast<const float*>(group + dims * kGroup);
  }

  static void StoreKey(T* group, int position, const float* k, int dims) {
    alignas(64) T row[kMaxHeadDim + kMaxLanes];
    StoreScale(group + dims * kGroup, position, Quantize(k, dims, row));
    for (int i = 0; i < dims / 2; ++i) {
      std::memcpy(group + (i * kGroup + position) * 2, row + 2 * i, 2);
    }
  }
  static void StoreValue(T* group, int position, const float* v, int dims, int value_dim) {
    alignas(64) T row[kMaxHeadDim + kMaxLanes];
    StoreScale(group + value_dim * kGroup, position, Quantize(v, dims, row));
    T* out = group + position / 2 * 2 * value_dim + position % 2;
    for (int d = 0; d < dims; ++d) out[2 * d] = row[d];
  }

  static void KeysToValues(const T* keys, int key_dims, int dims, int value_dim, T* values) {
    for (int i = 0; i < dims / 2; ++i) {
      for (int t = 0; t < kGroup; t += 2) {
        uint32_t x;  // {dims 2i, 2i + 1} of two positions
        std::memcpy(&x, keys + (i * kGroup + t) * 2, sizeof x);
        x = (x & 0xff0000ffu) | (x >> 8 & 0xff00u) | (x & 0xff00u) << 8;
        std::memcpy(values + t * value_dim + 4 * i, &x, sizeof x);
      }
    }
    std::memcpy(values + value_dim * kGroup, keys + key_dims * kGroup, kScaleElements);
  }

 private:
  static constexpr float kSmallest = 1e-30f;  // rows below it are zeros: 127 / max stays finite

  static void StoreScale(T* scales, int position, float scale) {
    std::memcpy(scales + position * sizeof(float), &scale, sizeof(float));
  }
  static float Quantize(const float* x, int dims, T* row) {
    F most = V::Zero();
    uint32_t bad = 0;
    for (int d = 0; d < dims; d += V::kLanes) {
      const F v = V::LoadFirst(x + d, dims - d);
      bad |= V::NonFiniteBits(v);
      most = V::Max(most, V::Abs(v));
    }
    const float max = V::ReduceMax(most);
    if (bad != 0 || max < kSmallest) {
      std::memset(row, 0, dims);
      return bad != 0 ? std::numeric_limits<float>::infinity() : 0.0f;
    }
    const F inverse = V::Set1(127.0f / max);
    for (int d = 0; d < dims; d += V::kLanes) {
      V::StoreInt8(row + d, V::Mul(V::LoadFirst(x + d, dims - d), inverse));
    }
    return max / 127.0f;
  }
};

// Offsets, in elements of Kv::T.
template <class V, class Kv>
struct KvLayout {
  using T = typename Kv::T;

  static_assert(kMaxHeadDim % (2 * V::kLanes) == 0);  // or a padded row might be longer

  explicit KvLayout(const KvGeometry& g)
      : block_size(g.block_size),
        value_dim((g.head_dim + 2 * V::kLanes - 1) / (2 * V::kLanes) * (2 * V::kLanes)),
        key_group(int64_t{g.head_dim} * kGroup + Kv::kScaleElements),
        value_group(g.latent_dim > 0 ? 0 : int64_t{value_dim} * kGroup + Kv::kScaleElements),
        keys(g.block_size / kGroup * key_group),
        head(keys + g.block_size / kGroup * value_group),
        block(head * g.kv_heads) {}

  // The group of position `offset` of a block.
  T* Key(std::byte* data, int32_t block_id, int32_t kv_head, int32_t offset) const {
    return reinterpret_cast<T*>(data) + block_id * block + kv_head * head +
           offset / kGroup * key_group;
  }
  T* Value(std::byte* data, int32_t block_id, int32_t kv_head, int32_t offset) const {
    return reinterpret_cast<T*>(data) + block_id * block + kv_head * head + keys +
           offset / kGroup * value_group;
  }

  int32_t block_size;
  int32_t value_dim;  // padded
  int64_t key_group, value_group;
  int64_t keys;  // of one head
  int64_t head;
  int64_t block;
};

// Calls fn.template operator()<Elements>() for the cache's element type.
// `Bf16` is how bf16 is multiplied.
template <class V, class Bf16 = Bf16Elements<V>, class Fn>
auto WithElements(KvDType dtype, Fn&& fn) {
  switch (dtype) {
    case KvDType::kF32:
      return fn.template operator()<F32Elements<V>>();
    case KvDType::kI8:
      return fn.template operator()<Int8Elements<V>>();
    case KvDType::kBF16:
      break;
  }
  return fn.template operator()<Bf16>();
}

template <class V>
size_t KvBlockBytesImpl(const KvGeometry& g) {
  if (g.head_dim < 2 || g.head_dim % 2 != 0 || g.head_dim > kMaxHeadDim || g.kv_heads < 1 ||
      g.block_size < kGroup || g.block_size % kGroup != 0) {
    return 0;
  }
  if (g.latent_dim < 0 || g.latent_dim % 2 != 0 || g.latent_dim > g.head_dim) return 0;
  return WithElements<V>(g.dtype, [&]<class Kv>() {
    return static_cast<size_t>(KvLayout<V, Kv>(g).block) * sizeof(typename Kv::T);
  });
}

}  // namespace
}  // namespace vivace::kernels
