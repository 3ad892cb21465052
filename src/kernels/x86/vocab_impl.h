// Passes over a row of logits for the x86 tiers, as templates over the tier's Vec with two
// additions:
//   Compress(x, bits)   the lanes whose bit is set, in front
//   Iota(first)         first, first + 1, ... as the bits of int32
// Integers travel through as bits of floats: nothing computes with them. Included by
// vocab_<tier>.cc only; internal linkage, so that no tier can end up with another's instructions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "kernels/vocab_ops.h"

namespace vivace::kernels {
namespace {

constexpr float kLog2E = std::numbers::log2e_v<float>;
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

// The same with four chains, for passes of an instruction or two per value that would otherwise
// wait for their own last result: visit(chain, vector), the chain a constant once inlined.
template <class V, class Visit>
void ForFourChains(const float* x, int32_t count, float filler, Visit&& visit) {
  int32_t i = 0;
  for (; i + 4 * V::kLanes <= count; i += 4 * V::kLanes) {
    visit(0, V::Load(x + i));
    visit(1, V::Load(x + i + V::kLanes));
    visit(2, V::Load(x + i + 2 * V::kLanes));
    visit(3, V::Load(x + i + 3 * V::kLanes));
  }
  ForVectors<V>(x + i, count - i, filler, [&](int32_t, typename V::F v) { visit(0, v); });
}

// All lanes of the maximum compare false against a NaN, so NaN and +inf are looked for on their
// own.
template <class V>
float MaxImpl(const float* x, int32_t count) {
  const auto limit = V::Set1(std::numeric_limits<float>::max());
  constexpr uint32_t kAllLanes = (1u << V::kLanes) - 1;
  const auto least = V::Set1(kMinusInfinity);
  typename V::F best[4] = {least, least, least, least};
  uint32_t good = kAllLanes;
  ForFourChains<V>(x, count, kMinusInfinity, [&](int chain, typename V::F v) {
    good &= V::GreaterEqualBits(limit, v);
    best[chain] = V::Max(best[chain], v);
  });
  if (good != kAllLanes) return NAN;
  return V::ReduceMax(V::Max(V::Max(best[0], best[1]), V::Max(best[2], best[3])));
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

// 2^x for x <= 0; zero where that is not a normal number, as it is for a banned token.
template <class V>
typename V::F Power(typename V::F x) {
  return V::SelectGreater(x, V::Set1(-126.0f), V::Exp2(x), V::Zero());
}

// Vectors are added up in float for a few hundred values, those partial sums in double.
template <class V>
double SumExpImpl(const float* x, int32_t count, float shift, float scale) {
  constexpr int32_t kRun = 32 * V::kLanes;
  const auto s = V::Set1(shift), k = V::Set1(scale * kLog2E);
  double total = 0;
  for (int32_t begin = 0; begin < count; begin += kRun) {
    const int32_t size = count - begin < kRun ? count - begin : kRun;
    auto sum = V::Zero();
    ForVectors<V>(x + begin, size, kMinusInfinity, [&](int32_t, typename V::F v) {
      sum = V::Add(sum, Power<V>(V::Mul(V::Sub(v, s), k)));
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

// Writes the kept lanes of each vector at out[n]: whole vectors, whose rest the next one
// overwrites. In place that is safe: what is written ends where what was read ends.
template <class V>
int32_t CollectImpl(const float* x, int32_t count, float floor, int32_t* ids, float* values) {
  const auto limit = V::Set1(floor);
  int32_t n = 0;
  ForVectors<V>(x, count, kMinusInfinity, [&](int32_t i, typename V::F v) {
    const uint32_t bits = V::GreaterEqualBits(v, limit);
    if (bits == 0) return;
    V::Store(values + n, V::Compress(v, bits));
    V::Store(reinterpret_cast<float*>(ids + n), V::Compress(V::Iota(i), bits));
    n += std::popcount(bits);
  });
  return n;
}

template <class V>
double WeighImpl(float* x, int32_t count, float shift, float scale) {
  constexpr int32_t kRun = 32 * V::kLanes;
  const auto s = V::Set1(shift), k = V::Set1(scale * kLog2E);
  double total = 0;
  for (int32_t begin = 0; begin < count; begin += kRun) {
    const int32_t size = count - begin < kRun ? count - begin : kRun;
    auto sum = V::Zero();
    ForVectors<V>(x + begin, size, kMinusInfinity, [&](int32_t i, typename V::F v) {
      const auto e = Power<V>(V::Mul(V::Sub(v, s), k));
      sum = V::Add(sum, e);
      if (size - i >= V::kLanes) {
        V::Store(x + begin + i, e);
      } else {
        alignas(64) float lanes[V::kLanes];
        V::Store(lanes, e);
        for (int32_t j = i; j < size; ++j) x[begin + j] = lanes[j - i];
      }
    });
    total += V::ReduceAddDouble(sum);
  }
  return total;
}

template <class V>
double SumAboveImpl(const float* x, int32_t count, float value) {
  constexpr int32_t kRun = 64 * V::kLanes;
  const auto limit = V::Set1(value);
  double total = 0;
  for (int32_t begin = 0; begin < count; begin += kRun) {
    const int32_t size = count - begin < kRun ? count - begin : kRun;
    typename V::F sum[4] = {V::Zero(), V::Zero(), V::Zero(), V::Zero()};
    ForFourChains<V>(x + begin, size, kMinusInfinity, [&](int chain, typename V::F v) {
      sum[chain] = V::Add(sum[chain], V::SelectGreater(v, limit, v, V::Zero()));
    });
    total += V::ReduceAddDouble(V::Add(V::Add(sum[0], sum[1]), V::Add(sum[2], sum[3])));
  }
  return total;
}

template <class V>
int32_t KeepBetweenImpl(const float* x, int32_t count, float low, float high, float* out) {
  const auto l = V::Set1(low), h = V::Set1(high);
  int32_t n = 0;
  ForVectors<V>(x, count, kMinusInfinity, [&](int32_t, typename V::F v) {
    const uint32_t bits = V::GreaterBits(v, l) & V::GreaterEqualBits(h, v);
    V::Store(out + n, V::Compress(v, bits));
    n += std::popcount(bits);
  });
  return n;
}

template <class V>
int32_t KeepPairsImpl(int32_t* ids, float* x, int32_t count, float floor) {
  const auto limit = V::Set1(floor);
  int32_t n = 0;
  ForVectors<V>(x, count, kMinusInfinity, [&](int32_t i, typename V::F v) {
    const uint32_t bits = V::GreaterEqualBits(v, limit);
    const auto kept = V::Compress(V::Load(reinterpret_cast<const float*>(ids + i)), bits);
    V::Store(x + n, V::Compress(v, bits));
    V::Store(reinterpret_cast<float*>(ids + n), kept);
    n += std::popcount(bits);
  });
  return n;
}

template <class V>
constexpr VocabOps MakeVocabOps() {
  return {MaxImpl<V>,   FindImpl<V>,     SumExpImpl<V>,      CountAboveImpl<V>, CollectImpl<V>,
          WeighImpl<V>, SumAboveImpl<V>, KeepBetweenImpl<V>, KeepPairsImpl<V>};
}

}  // namespace
}  // namespace vivace::kernels
