// Passes over a row of logits for the x86 tiers, as templates over the tier's Vec. Included by
// vocab_<tier>.cc only; internal linkage, so that no tier can end up with another's instructions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/vocab_ops.h"

namespace vivace::kernels {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Calls visit(first, lanes, vector); lanes past the end hold `filler`.
template <class V, class Visit>
void ForVectors(const float* x, int32_t count, float filler, Visit&& visit) {
  int32_t i = 0;
  for (; i + V::kLanes <= count; i += V::kLanes) visit(i, V::Load(x + i));
  if (i < count) {
    const int left = count - i;
    visit(i, V::KeepLanes(V::LoadFirst(x + i, left), 0, left, V::Set1(filler)));
  }
}

// All lanes of the maximum compare false against a NaN, so NaN and +inf are looked for on their
// own.
template <class V>
float MaxImpl(const float* x, int32_t count) {
  const auto limit = V::Set1(std::numeric_limits<float>::max());
  auto best = V::Set1(kMinusInfinity);
  uint32_t bad = 0;
  ForVectors<V>(x, count, kMinusInfinity, [&](int32_t, typename V::F v) {
    bad |= ~V::GreaterEqualBits(limit, v) & ((1u << V::kLanes) - 1);
    best = V::Max(best, v);
  });
  return bad != 0 ? NAN : V::ReduceMax(best);
}

template <class V>
int32_t FindImpl(const float* x, int32_t count, float value) {
  const auto wanted = V::Set1(value);
  for (int32_t i = 0; i < count; i += V::kLanes) {
    const int left = count - i < V::kLanes ? count - i : V::kLanes;
    const auto v = left == V::kLanes ? V::Load(x + i) : V::LoadFirst(x + i, left);
    const uint32_t equal =
        V::GreaterEqualBits(v, wanted) & V::GreaterEqualBits(wanted, v) & ((1u << left) - 1);
    if (equal != 0) return i + std::countr_zero(equal);
  }
  return -1;
}

// Vectors are added up in float for a few hundred values, those partial sums in double.
template <class V>
double SumExpImpl(const float* x, int32_t count, float shift, float scale) {
  constexpr int32_t kRun = 32 * V::kLanes;
  const auto s = V::Set1(shift), k = V::Set1(scale);
  double total = 0;
  for (int32_t begin = 0; begin < count; begin += kRun) {
    const int32_t size = count - begin < kRun ? count - begin : kRun;
    auto sum = V::Zero();
    ForVectors<V>(x + begin, size, kMinusInfinity, [&](int32_t, typename V::F v) {
      // Exp bottoms out above zero: a banned token must weigh nothing.
      const auto z = V::Mul(V::Sub(v, s), k);
      const auto e = V::Exp(z);
      sum = V::Add(sum, V::SelectGreater(z, V::Set1(-87.0f), e, V::Zero()));
    });
    total += V::ReduceAddDouble(sum);
  }
  return total;
}

template <class V>
int32_t CountAboveImpl(const float* x, int32_t count, float value) {
  const auto limit = V::Set1(value);
  int32_t n = 0;
  ForVectors<V>(x, count, kMinusInfinity,
                [&](int32_t, typename V::F v) { n += std::popcount(V::GreaterBits(v, limit)); });
  return n;
}

template <class V>
int32_t CollectImpl(const float* x, int32_t count, float floor, int32_t* out) {
  const auto limit = V::Set1(floor);
  int32_t n = 0;
  for (int32_t i = 0; i < count; i += V::kLanes) {
    const int left = count - i < V::kLanes ? count - i : V::kLanes;
    const auto v = left == V::kLanes ? V::Load(x + i) : V::LoadFirst(x + i, left);
    uint32_t bits = V::GreaterEqualBits(v, limit) & ((1u << left) - 1);
    for (; bits != 0; bits &= bits - 1) out[n++] = i + std::countr_zero(bits);
  }
  return n;
}

template <class V>
constexpr VocabOps MakeVocabOps() {
  return {MaxImpl<V>, FindImpl<V>, SumExpImpl<V>, CountAboveImpl<V>, CollectImpl<V>};
}

}  // namespace
}  // namespace vivace::kernels
