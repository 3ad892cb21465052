// Norm and rotation of one head with the tier's vectors; what qkv_rows_impl.h takes as `Heads` in
// the x86 tiers. The rotation is bit for bit that of ScalarHeads, whatever the length of its tail.
#pragma once

#include <cmath>

#include "kernels/qkv_rows_impl.h"

namespace vivace::kernels {
namespace {  // internal linkage: no tier may end up with another's instructions

template <class V>
struct VectorHeads {
  using F = typename V::F;

  static void Norm(const float* weight, float eps, int32_t head_dim, float* x) {
    F squares = V::Zero();
    for (int32_t d = 0; d < head_dim; d += V::kLanes) {
      const F v = V::LoadFirst(x + d, head_dim - d);
      squares = V::Fma(v, v, squares);
    }
    const float scale =
        1.0f / std::sqrt(V::ReduceAdd(squares) / static_cast<float>(head_dim) + eps);
    int32_t d = 0;
    for (; d + V::kLanes <= head_dim; d += V::kLanes) {
      V::Store(x + d, V::Mul(V::Mul(V::Load(x + d), V::Set1(scale)), V::Load(weight + d)));
    }
    for (; d < head_dim; ++d) x[d] = x[d] * scale * weight[d];
  }

  static void Rotate(const RopeRows& rope, int32_t row, const float* x, float* out) {
    const int32_t half = rope.dims / 2;
    const float* cos = rope.cos + static_cast<int64_t>(row) * half;
    const float* sin = rope.sin + static_cast<int64_t>(row) * half;
    const int32_t done = rope.interleaved ? RotateNeighbours(cos, sin, half, x, out)
                                          : RotateHalves(cos, sin, half, x, out);
    RotatePairs(rope, cos, sin, done, x, out);
  }

 private:
  // Both return how many pairs they have done.
  static int32_t RotateHalves(const float* cos, const float* sin, int32_t half, const float* x,
                              float* out) {
    int32_t i = 0;
    for (; i + V::kLanes <= half; i += V::kLanes) {
      const F a = V::Load(x + i), b = V::Load(x + half + i);
      const F c = V::Load(cos + i), s = V::Load(sin + i);
      V::Store(out + i, V::Sub(V::Mul(a, c), V::Mul(b, s)));
      V::Store(out + half + i, V::Add(V::Mul(a, s), V::Mul(b, c)));
    }
    return i;
  }
  static int32_t RotateNeighbours(const float* cos, const float* sin, int32_t half, const float* x,
                                  float* out) {
    constexpr int32_t kPairs = V::kLanes / 2;
    int32_t i = 0;
    for (; i + kPairs <= half; i += kPairs) {
      const F pairs = V::Load(x + 2 * i);
      const F turned = V::Mul(V::SwapNeighbours(pairs), V::LoadEachTwice(sin + i));
      V::Store(out + 2 * i, V::SubAdd(V::Mul(pairs, V::LoadEachTwice(cos + i)), turned));
    }
    return i;
  }
};

}  // namespace
}  // namespace vivace::kernels
