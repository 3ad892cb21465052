// The register tiles of attention: a few (query, head) rows against a tile of positions, for float
// caches, for bf16 by dot products, and for int8. Included by attention_impl.h only; internal
// linkage.
//
// Every sum is made per row: dims in order for a score, positions in order for an output. How many
// rows share a tile never shows in the bits. Positions a row may not see are not multiplied by zero
// but left out (what lies there may be NaN).
//
// `ahead` are groups that are wanted next: blocks lie anywhere, so no hardware sees them coming,
// and each load here brings in a line of them.
#pragma once

#include "kernels/attention.h"
#include "kernels/x86/kv_layout_impl.h"

namespace vivace::kernels {
namespace {

// Positions of a tile that each row of a register tile sees: [lo[r], hi[r]). All rows see
// [inner_begin, inner_end), both even; none sees anything outside [begin, end).
struct RowRanges {
  const int32_t* lo = nullptr;  // where inner is not all
  const int32_t* hi = nullptr;
  int begin = 0, end = kPositionTile, inner_begin = 0, inner_end = kPositionTile;

  static RowRanges Whole() { return {}; }
  RowRanges() = default;
  RowRanges(const int32_t* row_lo, const int32_t* row_hi, int rows) : lo(row_lo), hi(row_hi) {
    begin = kPositionTile;
    end = inner_begin = 0;
    inner_end = kPositionTile;
    for (int r = 0; r < rows; ++r) {
      if (lo[r] < hi[r]) {
        begin = lo[r] < begin ? lo[r] : begin;
        end = hi[r] > end ? hi[r] : end;
      }
      inner_begin = lo[r] > inner_begin ? lo[r] : inner_begin;
      inner_end = hi[r] < inner_end ? hi[r] : inner_end;
    }
    inner_begin = (inner_begin + 1) / 2 * 2;
    inner_end = inner_end < 0 ? 0 : inner_end / 2 * 2;
    if (inner_begin >= inner_end) inner_begin = inner_end = end;
  }
};

// p[r][first_vec ..] = q[r] . K of `kT` vectors of positions.
template <class V, class Kv, int kR, int kT>
[[gnu::noinline]] void ScoreTile(const float* q, int64_t q_stride,
                                 const typename Kv::T* const* groups,
                                 const typename Kv::T* const* ahead, int first_vec, int pairs,
                                 float* p) {
  using F = typename V::F;
  constexpr int kVecsPerGroup = kGroup / V::kLanes;
  const typename Kv::T* g[kT];
  const typename Kv::T* next[kT];
  for (int t = 0; t < kT; ++t) {
    g[t] = groups[(first_vec + t) / kVecsPerGroup];
    next[t] = ahead[(first_vec + t) / kVecsPerGroup];
  }
  F acc[kR][kT];
  for (int r = 0; r < kR; ++r) {
    for (int t = 0; t < kT; ++t) acc[r][t] = V::Zero();
  }
  int i = 0;
  do {
    F k[kT];
    for (int t = 0; t < kT; ++t) {
      k[t] = Kv::KeyEven(g[t], i, (first_vec + t) % kVecsPerGroup);
      if (t % kVecsPerGroup == 0) {
        PrefetchBytes(next[t] + i * 2 * kGroup, 2 * kGroup * sizeof(typename Kv::T));
      }
    }
    for (int r = 0; r < kR; ++r) {
      const F x = V::Set1(q[r * q_stride + 2 * i]);
      for (int t = 0; t < kT; ++t) acc[r][t] = V::Accumulate(acc[r][t], x, k[t]);
    }
    for (int t = 0; t < kT; ++t) k[t] = Kv::KeyOdd(g[t], i, (first_vec + t) % kVecsPerGroup);
    for (int r = 0; r < kR; ++r) {
      const F x = V::Set1(q[r * q_stride + 2 * i + 1]);
      for (int t = 0; t < kT; ++t) acc[r][t] = V::Accumulate(acc[r][t], x, k[t]);
    }
  } while (++i < pairs);
  for (int r = 0; r < kR; ++r) {
    for (int t = 0; t < kT; ++t) {
      V::Store(p + r * kPositionTile + (first_vec + t) * V::kLanes, acc[r][t]);
    }
  }
}

// out[r] += sum of p[r][t] * V[t] over the positions the row sees in [from, to).
template <class V, class Kv>
void ValueEdge(const RowRanges& ranges, int rows, int from, int to, const float* p,
               const typename Kv::T* const* groups, int value_dim, float* out) {
  for (int r = 0; r < rows; ++r) {
    const int first = ranges.lo[r] > from ? ranges.lo[r] : from;
    const int last = ranges.hi[r] < to ? ranges.hi[r] : to;
    float* o = out + r * value_dim;
    for (int t = first; t < last; ++t) {
      const typename Kv::T* row = groups[t / kGroup] + int64_t{t % kGroup / 2 * 2} * value_dim;
      const typename V::F x = V::Set1(p[r * kPositionTile + t]);
      for (int c = 0; c < value_dim / V::kLanes; ++c) {
        const typename V::F v =
            t % 2 == 0 ? Kv::ValueEven(row, value_dim, c) : Kv::ValueOdd(row, value_dim, c);
        V::Store(o + c * V::kLanes, V::Fma(x, v, V::Load(o + c * V::kLanes)));
      }
    }
  }
}

// out[r] += sum of p[r][t] * V[t] over the positions that all rows see, of which there are some;
// vectors [first_vec, first_vec + kC) of the row.
template <class V, class Kv, int kR, int kC>
[[gnu::noinline]] void ValueTile(const RowRanges& ranges, const float* p,
                                 const typename Kv::T* const* groups,
                                 const typename Kv::T* const* ahead, int value_dim, int first_vec,
                                 float* out) {
  using F = typename V::F;
  float* o = out + first_vec * V::kLanes;
  F acc[kR][kC];
  for (int r = 0; r < kR; ++r) {
    for (int c = 0; c < kC; ++c) acc[r][c] = V::Load(o + r * value_dim + c * V::kLanes);
  }
  int t = ranges.inner_begin;
  do {  // groups, each from the first pair that is wanted
    const int64_t offset = int64_t{t % kGroup} * value_dim + first_vec * Kv::kValueStep;
    const typename Kv::T* row = groups[t >> kGroupShift] + offset;
    const typename Kv::T* next = ahead[t >> kGroupShift] + offset;
    const int whole = (t + kGroup) >> kGroupShift << kGroupShift;
    const int last = whole < ranges.inner_end ? whole : ranges.inner_end;
    do {
      PrefetchBytes(next, kC * V::kLanes * 2 * sizeof(typename Kv::T));
      F v[kC];
      for (int c = 0; c < kC; ++c) v[c] = Kv::ValueEven(row, value_dim, c);
      for (int r = 0; r < kR; ++r) {
        const F x = V::Set1(p[r * kPositionTile + t]);
        for (int c = 0; c < kC; ++c) acc[r][c] = V::Accumulate(acc[r][c], x, v[c]);
      }
      for (int c = 0; c < kC; ++c) v[c] = Kv::ValueOdd(row, value_dim, c);
      for (int r = 0; r < kR; ++r) {
        const F x = V::Set1(p[r * kPositionTile + t + 1]);
        for (int c = 0; c < kC; ++c) acc[r][c] = V::Accumulate(acc[r][c], x, v[c]);
      }
      row += 2 * value_dim;
      next += 2 * value_dim;
      t += 2;
    } while (t < last);
  } while (t < ranges.inner_end);
  for (int r = 0; r < kR; ++r) {
    for (int c = 0; c < kC; ++c) V::Store(o + r * value_dim + c * V::kLanes, acc[r][c]);
  }
}

// As ScoreTile with queries of bf16, a pair of dims at once.
template <class V, class Kv, int kR, int kT>
[[gnu::noinline]] void DotScoreTile(const uint16_t* q, int64_t q_stride,
                                    const typename Kv::T* const* groups,
                                    const typename Kv::T* const* ahead, int first_vec, int pairs,
                                    float* p) {
  using I = typename V::I;
  static_assert(V::kLanes == kGroup);
  typename V::F acc[kR][kT];
  for (int r = 0; r < kR; ++r) {
    for (int t = 0; t < kT; ++t) acc[r][t] = V::Zero();
  }
  int i = 0;
  do {
    I k[kT];
    for (int t = 0; t < kT; ++t) {
      k[t] = V::LoadWords(groups[first_vec + t] + i * 2 * kGroup);
      PrefetchBytes(ahead[first_vec + t] + i * 2 * kGroup, 64);
    }
    for (int r = 0; r < kR; ++r) {
      const I x = V::SetWord(q + r * q_stride + 2 * i);
      for (int t = 0; t < kT; ++t) acc[r][t] = V::DotBf16(acc[r][t], x, k[t]);
    }
  } while (++i < pairs);
  for (int r = 0; r < kR; ++r) {
    for (int t = 0; t < kT; ++t) {
      V::Store(p + r * kPositionTile + (first_vec + t) * V::kLanes, acc[r][t]);
    }
  }
}

// As ValueEdge with weights of bf16, a pair of positions at once: of one that the row sees half of,
// the other half counts as 0 whatever it is.
template <class V, class Kv>
void DotValueEdge(const RowRanges& ranges, int rows, int from, int to, const uint16_t* w,
                  const typename Kv::T* const* groups, int value_dim, float* out) {
  for (int r = 0; r < rows; ++r) {
    const int first = ranges.lo[r] > from ? ranges.lo[r] : from;
    const int last = ranges.hi[r] < to ? ranges.hi[r] : to;
    float* o = out + r * value_dim;
    for (int t = first / 2 * 2; t < last; t += 2) {
      const uint32_t seen = (t >= first ? 0xffffu : 0) | (t + 1 < last ? 0xffff0000u : 0);
      const typename Kv::T* row = groups[t / kGroup] + int64_t{t % kGroup} * value_dim;
      const typename V::I x = V::SetWord(w + r * kPositionTile + t);
      for (int c = 0; c < value_dim / V::kLanes; ++c) {
        const typename V::I v = V::MaskWords(V::LoadWords(row + c * Kv::kValueStep), seen);
        V::Store(o + c * V::kLanes, V::DotBf16(V::Load(o + c * V::kLanes), x, v));
      }
    }
  }
}

// As ValueTile with weights of bf16.
template <class V, class Kv, int kR, int kC>
[[gnu::noinline]] void DotValueTile(const RowRanges& ranges, const uint16_t* w,
                                    const typename Kv::T* const* groups,
                                    const typename Kv::T* const* ahead, int value_dim,
                                    int first_vec, float* out) {
  using I = typename V::I;
  float* o = out + first_vec * V::kLanes;
  typename V::F acc[kR][kC];
  for (int r = 0; r < kR; ++r) {
    for (int c = 0; c < kC; ++c) acc[r][c] = V::Load(o + r * value_dim + c * V::kLanes);
  }
  int t = ranges.inner_begin;
  do {  // groups, each from the first pair that is wanted
    const int64_t offset = int64_t{t % kGroup} * value_dim + first_vec * Kv::kValueStep;
    const typename Kv::T* row = groups[t >> kGroupShift] + offset;
    const typename Kv::T* next = ahead[t >> kGroupShift] + offset;
    const int whole = (t + kGroup) >> kGroupShift << kGroupShift;
    const int last = whole < ranges.inner_end ? whole : ranges.inner_end;
    do {
      PrefetchBytes(next, kC * 64);
      I v[kC];
      for (int c = 0; c < kC; ++c) v[c] = V::LoadWords(row + c * Kv::kValueStep);
      for (int r = 0; r < kR; ++r) {
        const I x = V::SetWord(w + r * kPositionTile + t);
        for (int c = 0; c < kC; ++c) acc[r][c] = V::DotBf16(acc[r][c], x, v[c]);
      }
      row += 2 * value_dim;
      next += 2 * value_dim;
      t += 2;
    } while (t < last);
  } while (t < ranges.inner_end);
  for (int r = 0; r < kR; ++r) {
    for (int c = 0; c < kC; ++c) V::Store(o + r * value_dim + c * V::kLanes, acc[r][c]);
  }
}

// As ScoreTile for int8 keys and int16 queries: exact integer sums, then
// p = sum * q_scale[r] * scale of the key.
template <class V, class Kv, int kR, int kT>
[[gnu::noinline]] void IntScoreTile(const int16_t* q, int64_t q_stride, const float* q_scale,
                                    const typename Kv::T* const* groups,
                                    const typename Kv::T* const* ahead, int first_vec, int pairs,
                                    float* p) {
  using F = typename V::F;
  using I = typename V::I;
  constexpr int kVecsPerGroup = kGroup / V::kLanes;
  const typename Kv::T* g[kT];
  const typename Kv::T* next[kT];
  for (int t = 0; t < kT; ++t) {
    g[t] = groups[(first_vec + t) / kVecsPerGroup];
    next[t] = ahead[(first_vec + t) / kVecsPerGroup];
  }
  I acc[kR][kT];
  for (int r = 0; r < kR; ++r) {
    for (int t = 0; t < kT; ++t) acc[r][t] = V::IntZero();
  }
  int i = 0;
  do {
    I k[kT];
    for (int t = 0; t < kT; ++t) {
      k[t] = Kv::Key(g[t], i, (first_vec + t) % kVecsPerGroup);
      if (t % kVecsPerGroup == 0 && i % 2 == 0) PrefetchBytes(next[t] + i * 2 * kGroup, 64);
    }
    for (int r = 0; r < kR; ++r) {
      const I x = V::SetWord(q + r * q_stride + 2 * i);
      for (int t = 0; t < kT; ++t) acc[r][t] = V::DotPairs(acc[r][t], x, k[t]);
    }
  } while (++i < pairs);
  for (int t = 0; t < kT; ++t) {
    const int vec = (first_vec + t) % kVecsPerGroup;
    if (vec == 0) PrefetchBytes(next[t] + pairs * 2 * kGroup, 64);
    const F scale = V::Load(Kv::Scales(g[t], 2 * pairs) + vec * V::kLanes);
    for (int r = 0; r < kR; ++r) {
      V::Store(p + r * kPositionTile + (first_vec + t) * V::kLanes,
               V::Mul(V::Mul(V::ToFloat(acc[r][t]), V::Set1(q_scale[r])), scale));
    }
  }
}

// As ValueTile for int8 values and int16 weights, which are 0 where the row sees nothing: exact
// integer sums, then out += sum * w_scale.
template <class V, class Kv, int kR, int kC>
[[gnu::noinline]] void IntValueTile(const RowRanges& ranges, const int16_t* w, const float* w_scale,
                                    const typename Kv::T* const* groups,
                                    const typename Kv::T* const* ahead, int value_dim,
                                    int first_vec, float* out) {
  using F = typename V::F;
  using I = typename V::I;
  I acc[kR][kC];
  for (int r = 0; r < kR; ++r) {
    for (int c = 0; c < kC; ++c) acc[r][c] = V::IntZero();
  }
  int t = ranges.begin / 2 * 2;
  do {  // groups, each from the first pair that is wanted
    const int64_t offset = int64_t{t % kGroup} * value_dim + first_vec * Kv::kValueStep;
    const typename Kv::T* row = groups[t >> kGroupShift] + offset;
    const typename Kv::T* next = ahead[t >> kGroupShift] + offset;
    const int whole = (t + kGroup) >> kGroupShift << kGroupShift;
    const int last = whole < ranges.end ? whole : ranges.end;
    do {
      PrefetchBytes(next, kC * V::kLanes * 2);
      I v[kC];
      for (int c = 0; c < kC; ++c) v[c] = Kv::Value(row, c);
      for (int r = 0; r < kR; ++r) {
        const I x = V::SetWord(w + r * kPositionTile + t);
        for (int c = 0; c < kC; ++c) acc[r][c] = V::DotPairs(acc[r][c], x, v[c]);
      }
      row += 2 * value_dim;
      next += 2 * value_dim;
      t += 2;
    } while (t < last);
  } while (t < ranges.end);
  float* o = out + first_vec * V::kLanes;
  for (int r = 0; r < kR; ++r) {
    const F scale = V::Set1(w_scale[r]);
    for (int c = 0; c < kC; ++c) {
      float* to = o + r * value_dim + c * V::kLanes;
      V::Store(to, V::Fma(V::ToFloat(acc[r][c]), scale, V::Load(to)));
    }
  }
}

// Calls fn.template operator()<R>() with R = rows, 1 <= rows <= 6.
template <class Fn>
void WithRows(int rows, Fn&& fn) {
  switch (rows) {
    case 1:
      fn.template operator()<1>();
      break;
    case 2:
      fn.template operator()<2>();
      break;
    case 3:
      fn.template operator()<3>();
      break;
    case 4:
      fn.template operator()<4>();
      break;
    case 5:
      fn.template operator()<5>();
      break;
    default:
      fn.template operator()<6>();
      break;
  }
}

// Cuts `rows` into register tiles of at most `most` rows, as equal as they go; fn(first, count).
template <class Fn>
void ForRowTiles(int rows, int most, Fn&& fn) {
  int tiles = (rows + most - 1) / most;
  for (int first = 0; tiles > 0; --tiles) {
    const int count = (rows - first + tiles - 1) / tiles;
    fn(first, count);
    first += count;
  }
}

}  // namespace
}  // namespace vivace::kernels
