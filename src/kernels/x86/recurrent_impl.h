// The convolution and the recurrence of the x86 tiers (kernels/recurrent.h), as templates over the
// tier's Vec. Included by recurrent_<tier>.cc only; internal linkage, so that no tier can end up
// with another's instructions.
//
// A head's S lies in tiles of kStateColumns columns, one after the other, [key_dim, kStateColumns]
// each; past value_dim they are zeros. Columns of S know nothing of each other, so a block of them
// goes through a whole run of tokens before the next one starts, and stays in first-level cache.
#pragma once

#include <cmath>
#include <cstring>

#include "kernels/recurrent.h"
#include "kernels/x86/qkv_heads_impl.h"

namespace vivace::kernels {
namespace {

constexpr int32_t kStateColumns = 16;
constexpr int32_t kMaxKeyDim = RecurrentGeometry::kMaxKeyDim;

// The first `count` floats at p, which may be as many as a vector has or more; zeros after them.
template <class V>
typename V::F Take(const float* p, int32_t count) {
  return count >= V::kLanes ? V::Load(p) : V::LoadFirst(p, count);
}

template <class V>
void Put(float* p, typename V::F x, int32_t count) {
  if (count >= V::kLanes) return V::Store(p, x);
  if (count <= 0) return;
  alignas(64) float lanes[V::kLanes];
  V::Store(lanes, x);
  std::memcpy(p, lanes, static_cast<size_t>(count) * sizeof(float));
}

// Rows of a step lie far apart, where processors do not look ahead by themselves.
void Prefetch(const float* p, int32_t count) {
  constexpr int32_t kLineFloats = 16;
  for (int32_t i = 0; i < count; i += kLineFloats) __builtin_prefetch(p + i);
}
constexpr int32_t kRowsAhead = 8;

// ---- convolution --------------------------------------------------------------------------------

// One row, whose inputs are at inputs[tap]. kWidth is conv.width where it is known.
template <class V, int kWidth>
void ConvolveRow(const ConvChannels& conv, int32_t row, const float* const* inputs) {
  const int64_t at = row * conv.stride;
  if (row >= kRowsAhead) {
    Prefetch(conv.x + at - kRowsAhead * conv.stride, conv.channels);
    if (conv.out != nullptr) Prefetch(conv.c + at - kRowsAhead * conv.stride, conv.channels);
  }
  const int32_t width = kWidth > 0 ? kWidth : conv.width;
  const auto convolve = [&](int32_t i, int32_t left) {
    typename V::F sum = conv.bias != nullptr ? Take<V>(conv.bias + i, left) : V::Zero();
    for (int32_t tap = 0; tap < width; ++tap) {
      sum = V::Fma(Take<V>(conv.weight + tap * conv.tap_stride + i, left),
                   Take<V>(inputs[tap] + i, left), sum);
    }
    if (conv.out != nullptr) {
      const typename V::F y = V::Mul(Take<V>(conv.c + at + i, left), sum);
      Put<V>(conv.out + row * conv.out_stride + i, y, left);
    } else {
      Put<V>(conv.x + at + i, V::Silu(sum), left);
    }
  };
  int32_t i = 0;
  for (; i + V::kLanes <= conv.channels; i += V::kLanes) convolve(i, V::kLanes);
  if (i < conv.channels) convolve(i, conv.channels - i);
}

template <class V>
void GateInputs(const ConvChannels& conv) {
  for (int32_t row = 0; row < conv.rows; ++row) {
    float* const x = conv.x + row * conv.stride;
    const float* const b = conv.b + row * conv.stride;
    if (row + kRowsAhead < conv.rows) {
      Prefetch(x + kRowsAhead * conv.stride, conv.channels);
      Prefetch(b + kRowsAhead * conv.stride, conv.channels);
    }
    for (int32_t i = 0; i < conv.channels; i += V::kLanes) {
      const int32_t left = conv.channels - i;
      Put<V>(x + i, V::Mul(Take<V>(b + i, left), Take<V>(x + i, left)), left);
    }
  }
}

// From the last row to the first, so that a row's results may take the place of its inputs.
template <class V, int kWidth>
void ConvolveRows(const ConvChannels& conv) {
  if (conv.out != nullptr) GateInputs<V>(conv);
  const int32_t kept = conv.width - 1;
  // Input `row` of the sequence's part of the step; before it there are those of the state.
  const auto input = [&](int32_t row) -> const float* {
    return row >= 0 ? conv.x + row * conv.stride : conv.state + (row + kept) * conv.tap_stride;
  };
  const size_t bytes = static_cast<size_t>(conv.channels) * sizeof(float);
  float last[RecurrentGeometry::kMaxConvWidth - 1][kMaxConvChannels];
  for (int32_t j = 0; j < kept; ++j) std::memcpy(last[j], input(conv.rows - kept + j), bytes);
  for (int32_t row = conv.rows - 1; row >= 0; --row) {
    const float* inputs[RecurrentGeometry::kMaxConvWidth];
    for (int32_t j = 0; j <= kept; ++j) inputs[j] = input(row - kept + j);
    ConvolveRow<V, kWidth>(conv, row, inputs);
  }
  for (int32_t j = 0; j < kept; ++j) {
    std::memcpy(conv.state + j * conv.tap_stride, last[j], bytes);
  }
}

template <class V>
void ConvolveImpl(const ConvChannels& conv) {
  switch (conv.width) {
    case 3:
      return ConvolveRows<V, 3>(conv);
    case 4:
      return ConvolveRows<V, 4>(conv);
    default:
      return ConvolveRows<V, 0>(conv);
  }
}

// ---- recurrence ---------------------------------------------------------------------------------

// q and k of a run's tokens, [tokens, key_dim] each, as the recurrence takes them.
template <class V>
class RunKeys {
 public:
  explicit RunKeys(const HeadRun& run) : key_dim_(run.key_dim) {
    const float q_scale = 1.0f / std::sqrt(static_cast<float>(key_dim_));
    for (int32_t t = 0; t < run.tokens; ++t) {
      const float *q = run.q + t * run.stride, *k = run.k + t * run.stride;
      const bool delta = run.kind == RecurrentKind::kGatedDelta;
      Scale(q, delta ? q_scale * InverseLength(q) : 1.0f, q_ + t * key_dim_);
      Scale(k, delta ? InverseLength(k) : 1.0f, k_ + t * key_dim_);
    }
  }

  const float* Query(int32_t token) const { return q_ + token * key_dim_; }
  const float* Key(int32_t token) const { return k_ + token * key_dim_; }

 private:
  float InverseLength(const float* x) const {
    typename V::F squares = V::Zero();
    for (int32_t i = 0; i < key_dim_; i += V::kLanes) {
      const typename V::F part = Take<V>(x + i, key_dim_ - i);
      squares = V::Fma(part, part, squares);
    }
    return 1.0f / std::sqrt(V::ReduceAdd(squares) + kKeyEps);
  }
  void Scale(const float* x, float scale, float* out) const {
    for (int32_t i = 0; i < key_dim_; i += V::kLanes) {
      const int32_t left = key_dim_ - i;
      Put<V>(out + i, V::Mul(Take<V>(x + i, left), V::Set1(scale)), left);
    }
  }

  const int32_t key_dim_;
  alignas(64) float q_[kRunTokens * kMaxKeyDim];
  alignas(64) float k_[kRunTokens * kMaxKeyDim];
};

// Sums over keys of kN vectors of columns, each in two parts, of even and of odd keys, so that an
// addition need not wait for the last one.
template <class V, int kN>
struct ColumnSums {
  static constexpr int kParts = 2;
  typename V::F parts[kParts][kN];

  ColumnSums() {
    for (auto& part : parts) {
      for (auto& sum : part) sum = V::Zero();
    }
  }
  typename V::F Total(int n) const { return V::Add(parts[0][n], parts[1][n]); }
};

// kN vectors of columns of S. kDelta: S^T k is taken off a value before it is written (else
// Mamba-2).
template <class V, int kN, bool kDelta>
class Columns {
  using F = typename V::F;
  using Sums = ColumnSums<V, kN>;

 public:
  Columns(const HeadRun& run, const RunKeys<V>& keys, int32_t first)
      : run_(run), keys_(keys), first_(first) {
    for (int n = 0; n < kN; ++n) {
      const int32_t column = first + n * V::kLanes;
      const int32_t in_tile = column % kStateColumns;
      state_[n] = run.state + int64_t{column - in_tile} * run.key_dim + in_tile;
    }
  }

  void Run() {
    Sums held;  // S^T k, before S decays
    if (kDelta) Read(keys_.Key(0), &held);
    for (int32_t t = 0; t < run_.tokens; ++t) {
      const F decay = V::Set1(run_.gates[t].decay), input = V::Set1(run_.gates[t].input);
      F write[kN];
      for (int n = 0; n < kN; ++n) {
        const int32_t column = first_ + n * V::kLanes;
        F v = Take<V>(run_.v + t * run_.stride + column, run_.value_dim - column);
        if (kDelta) v = V::Sub(v, V::Mul(decay, held.Total(n)));
        write[n] = V::Mul(input, v);
      }
      Sums y;
      if (kDelta && t + 1 < run_.tokens) {
        Update<true>(t, decay, write, &y, &held);
      } else {
        Update<false>(t, decay, write, &y, &held);
      }
      for (int n = 0; n < kN; ++n) {
        const int32_t column = first_ + n * V::kLanes;
        Put<V>(run_.out + t * run_.out_stride + column, y.Total(n), run_.value_dim - column);
      }
    }
  }

 private:
  // body(key, part of a sum) in order.
  template <class Body>
  static void ForKeys(int32_t key_dim, const Body& body) {
    int32_t i = 0;
    for (; i + Sums::kParts <= key_dim; i += Sums::kParts) {
      for (int part = 0; part < Sums::kParts; ++part) body(i + part, part);
    }
    for (; i < key_dim; ++i) body(i, 0);
  }

  void Read(const float* k, Sums* result) const {
    Sums held;
    ForKeys(run_.key_dim, [&](int32_t i, int part) {
      const F key = V::Set1(k[i]);
      for (int n = 0; n < kN; ++n) {
        F& sum = held.parts[part][n];
        sum = V::Fma(V::Load(state_[n] + i * kStateColumns), key, sum);
      }
    });
    *result = held;
  }

  // S = decay S + k write^T; read = S^T q; and on the way, held = S^T k of the next token.
  // What the loop works on is its own: a store into S might be one into anything else.
  template <bool kNext>
  void Update(int32_t t, F decay, const F (&write)[kN], Sums* read, Sums* next_held) {
    const float *q = keys_.Query(t), *k = keys_.Key(t), *next = keys_.Key(t + (kNext ? 1 : 0));
    float* state[kN];
    F added[kN];
    for (int n = 0; n < kN; ++n) {
      state[n] = state_[n];
      added[n] = write[n];
    }
    Sums y, held;
    ForKeys(run_.key_dim, [&](int32_t i, int part) {
      const F query = V::Set1(q[i]), key = V::Set1(k[i]), next_key = V::Set1(next[i]);
      for (int n = 0; n < kN; ++n) {
        float* const at = state[n] + i * kStateColumns;
        const F s = V::Fma(key, added[n], V::Mul(decay, V::Load(at)));
        V::Store(at, s);
        y.parts[part][n] = V::Fma(s, query, y.parts[part][n]);
        if (kNext) held.parts[part][n] = V::Fma(s, next_key, held.parts[part][n]);
      }
    });
    *read = y;
    if (kNext) *next_held = held;
  }

  const HeadRun& run_;
  const RunKeys<V>& keys_;
  const int32_t first_;
  float* state_[kN];
};

template <class V, int kN>
[[gnu::noinline]] void AdvanceColumns(const HeadRun& run, const RunKeys<V>& keys, int32_t first) {
  if (run.kind == RecurrentKind::kGatedDelta) {
    Columns<V, kN, true>(run, keys, first).Run();
  } else {
    Columns<V, kN, false>(run, keys, first).Run();
  }
}

template <class V>
void FinishToken(const HeadRun& run, int32_t token) {
  float* const out = run.out + token * run.out_stride;
  const float *v = run.v + token * run.stride, *z = run.z + token * run.stride;
  const bool delta = run.kind == RecurrentKind::kGatedDelta;
  if (delta && run.norm.present()) {
    VectorHeads<V>::Norm(run.norm.weight, run.norm.eps, run.value_dim, out);
  }
  for (int32_t i = 0; i < run.value_dim; i += V::kLanes) {
    const int32_t left = run.value_dim - i;
    typename V::F y = Take<V>(out + i, left);
    if (!delta) y = V::Fma(Take<V>(v + i, left), V::Set1(run.skip), y);
    Put<V>(out + i, V::Mul(y, V::Silu(Take<V>(z + i, left))), left);
  }
}

template <class V>
void AdvanceImpl(const HeadRun& run) {
  constexpr int32_t kColumns = 2 * V::kLanes;  // at once
  const RunKeys<V> keys(run);
  const int32_t columns = (run.value_dim + kStateColumns - 1) / kStateColumns * kStateColumns;
  int32_t first = 0;
  for (; first + kColumns <= columns; first += kColumns) AdvanceColumns<V, 2>(run, keys, first);
  if constexpr (kColumns > kStateColumns) {
    if (first < columns) AdvanceColumns<V, 1>(run, keys, first);
  }
  for (int32_t token = 0; token < run.tokens; ++token) FinishToken<V>(run, token);
}

}  // namespace
}  // namespace vivace::kernels
