// Paged attention of the x86 tiers, as templates over the tier's Vec and the cache's element type.
// Included by attention_<tier>.cc only. See kernels/attention.h for what must hold.
//
// A unit of work is up to kMaxTileRows (query row, head) pairs of one kv head, rows of one
// sequence: each K and V load serves all of them. With few units (decoding a few sequences) every
// split of a unit is an item of its own and whoever finishes last merges; with many, one item runs
// a unit's splits one after the other. Both do the same arithmetic in the same order.
#pragma once

#include <cstring>

#include "kernels/attention.h"
#include "kernels/x86/kv_layout_impl.h"

namespace vivace::kernels {
namespace {  // internal linkage: no tier may end up with another's instructions

constexpr float kNoScore = -1e30f;  // running maximum before the first position
constexpr int kTileGroups = kPositionTile / kGroup;
constexpr int kMaxTileRows = 24;        // K, V, q, scores and output tiles stay near L1
constexpr int kScratchRowFloats = 256;  // head_dim up to this gets full tiles
constexpr int kItemsPerThread = 4;      // below this many units a thread, splits are items
constexpr size_t kPartialBytesPerThread = 1 << 20;

// One sequence's place in the list of items; lives in the workspace.
struct SequenceItems {
  int32_t first_item;
  int32_t chunks;      // of (row, head) pairs; units are kv_heads * chunks
  int32_t splits;      // items per unit
  int32_t first_unit;  // counter index; splits > 1 only
  int64_t partials;    // floats into the partial area; splits > 1 only
};

template <class V>
struct alignas(64) TileScratch {
  float q[kMaxTileRows * kScratchRowFloats];
  float out[kMaxTileRows * kScratchRowFloats];    // of the running split
  float total[kMaxTileRows * kScratchRowFloats];  // of the splits before it
  float p[kMaxTileRows * kPositionTile];
  float max[kMaxTileRows], sum[kMaxTileRows], alpha[kMaxTileRows];
  float total_max[kMaxTileRows], total_sum[kMaxTileRows];
};

// p[r][0..16*kT) = q[r] . K of `kT` vectors of positions, dims in order. `ahead` are pieces of
// memory as long as the groups that are wanted next: blocks lie anywhere, so no hardware sees them
// coming, and each load here brings in a line of them.
template <class V, class Kv, int kR, int kT>
void ScoreTile(const float* q, int64_t q_stride, const typename Kv::T* const* groups,
               const typename Kv::T* const* ahead, int first_vec, int pairs, float* p) {
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
  for (int i = 0; i < pairs; ++i) {
    F k[kT];
    for (int t = 0; t < kT; ++t) {
      k[t] = Kv::KeyEven(g[t], i, (first_vec + t) % kVecsPerGroup);
      if (t % kVecsPerGroup == 0) Kv::Prefetch(next[t] + i * 2 * kGroup, 2 * kGroup);
    }
    for (int r = 0; r < kR; ++r) {
      const F x = V::Set1(q[r * q_stride + 2 * i]);
      for (int t = 0; t < kT; ++t) acc[r][t] = V::Fma(x, k[t], acc[r][t]);
    }
    for (int t = 0; t < kT; ++t) k[t] = Kv::KeyOdd(g[t], i, (first_vec + t) % kVecsPerGroup);
    for (int r = 0; r < kR; ++r) {
      const F x = V::Set1(q[r * q_stride + 2 * i + 1]);
      for (int t = 0; t < kT; ++t) acc[r][t] = V::Fma(x, k[t], acc[r][t]);
    }
  }
  for (int r = 0; r < kR; ++r) {
    for (int t = 0; t < kT; ++t) {
      V::Store(p + r * kPositionTile + (first_vec + t) * V::kLanes, acc[r][t]);
    }
  }
}

// out[r][piece..] = out * alpha[r] + sum over positions [first, last) of p[r][t] * V[t], in order.
// `ahead` as in ScoreTile.
template <class V, class Kv, int kR, int kP>
void ValueTile(const float* p, const float* alpha, const typename Kv::T* const* groups,
               const typename Kv::T* const* ahead, int first, int last, int64_t row_stride,
               int piece, float* out, int64_t out_stride) {
  using F = typename V::F;
  float* o = out + piece * 2 * V::kLanes;
  F acc[kR][2 * kP];
  for (int r = 0; r < kR; ++r) {
    const F a = V::Set1(alpha[r]);
    for (int c = 0; c < 2 * kP; ++c) {
      acc[r][c] = V::Mul(V::Load(o + r * out_stride + c * V::kLanes), a);
    }
  }
  for (int t = first; t < last; ++t) {
    const int64_t offset = (t % kGroup) * row_stride;
    const typename Kv::T* row = groups[t / kGroup] + offset;
    Kv::Prefetch(ahead[t / kGroup] + offset + piece * 2 * V::kLanes, kP * 2 * V::kLanes);
    F v[2 * kP];
    for (int c = 0; c < kP; ++c) {
      v[2 * c] = Kv::ValueLow(row, piece + c);
      v[2 * c + 1] = Kv::ValueHigh(row, piece + c);
    }
    for (int r = 0; r < kR; ++r) {
      const F x = V::Set1(p[r * kPositionTile + t]);
      for (int c = 0; c < 2 * kP; ++c) acc[r][c] = V::Fma(x, v[c], acc[r][c]);
    }
  }
  for (int r = 0; r < kR; ++r) {
    for (int c = 0; c < 2 * kP; ++c) V::Store(o + r * out_stride + c * V::kLanes, acc[r][c]);
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

template <class V, class Kv>
class Unit {
 public:
  using T = typename Kv::T;
  using F = typename V::F;

  Unit(const AttentionArgs& args, const KvLayout<V, Kv>& layout, TileScratch<V>& scratch)
      : args_(args),
        layout_(layout),
        s_(scratch),
        head_dim_(args.kv.geometry.head_dim),
        group_(args.heads / args.kv.geometry.kv_heads),
        stride_(layout.value_dim) {}

  // (row, head) pairs [first, first + count) of `sequence`, heads of `kv_head`.
  void Start(const SequenceRows& sequence, int kv_head, int first, int count) {
    sequence_ = &sequence;
    kv_head_ = kv_head;
    first_ = first;
    rows_ = count;
    const F scale = V::Set1(args_.scale);
    for (int r = 0; r < rows_; ++r) {
      const float* q = Query(r);
      float* out = s_.q + r * stride_;
      int d = 0;
      for (; d + V::kLanes <= head_dim_; d += V::kLanes)
        V::Store(out + d, V::Mul(V::Load(q + d), scale));
      for (; d < head_dim_; ++d) out[d] = q[d] * args_.scale;
    }
  }

  // Positions that some row of the unit sees.
  int32_t first_position() const {
    if (args_.window <= 0) return 0;
    const int32_t first = RowPosition(0) - args_.window + 1;
    return first > 0 ? first : 0;
  }
  int32_t end_position() const { return RowPosition(rows_ - 1) + 1; }

  // Attends to the positions of split `index`; the result is in max(), sum(), out().
  void RunSplit(int32_t index) {
    for (int r = 0; r < rows_; ++r) {
      s_.max[r] = kNoScore;
      s_.sum[r] = 0.0f;
    }
    std::memset(s_.out, 0, sizeof(float) * rows_ * stride_);
    int32_t begin = index * kPositionSplit;
    const int32_t split_end = begin + kPositionSplit;
    const int32_t end = end_position() < split_end ? end_position() : split_end;
    if (first_position() > begin) begin = first_position() / kPositionTile * kPositionTile;
    for (int32_t tile = begin; tile < end; tile += kPositionTile) RunTile(tile, end);
  }

  void ClearTotal() {
    for (int r = 0; r < rows_; ++r) {
      s_.total_max[r] = kNoScore;
      s_.total_sum[r] = 0.0f;
    }
    std::memset(s_.total, 0, sizeof(float) * rows_ * stride_);
  }

  // total = total merged with a split's (max, sum, out).
  void Merge(const float* max, const float* sum, const float* out) {
    for (int r = 0; r < rows_; ++r) {
      const float m = max[r] > s_.total_max[r] ? max[r] : s_.total_max[r];
      const float a = ExpScalar(s_.total_max[r] - m);
      const float b = ExpScalar(max[r] - m);
      s_.total_max[r] = m;
      s_.total_sum[r] = s_.total_sum[r] * a + sum[r] * b;
      float* total = s_.total + r * stride_;
      const F va = V::Set1(a), vb = V::Set1(b);
      for (int d = 0; d < stride_; d += V::kLanes) {
        const F scaled = V::Mul(V::Load(out + r * stride_ + d), vb);
        V::Store(total + d, V::Fma(V::Load(total + d), va, scaled));
      }
    }
  }
  void MergeOwn() { Merge(s_.max, s_.sum, s_.out); }

  // Writes total / sum to the output rows.
  void Finish() {
    for (int r = 0; r < rows_; ++r) {
      float* out = const_cast<float*>(args_.out) + OutputOffset(r);
      const float inverse = 1.0f / s_.total_sum[r];
      const F scale = V::Set1(inverse);
      const float* total = s_.total + r * stride_;
      int d = 0;
      for (; d + V::kLanes <= head_dim_; d += V::kLanes) {
        V::Store(out + d, V::Mul(V::Load(total + d), scale));
      }
      for (; d < head_dim_; ++d) out[d] = total[d] * inverse;
    }
  }

  // A split's result as floats: max[rows], sum[rows], out[rows][stride].
  int64_t partial_floats() const { return rows_ * (2 + static_cast<int64_t>(stride_)); }
  void SavePartial(float* to) const {
    std::memcpy(to, s_.max, sizeof(float) * rows_);
    std::memcpy(to + rows_, s_.sum, sizeof(float) * rows_);
    std::memcpy(to + 2 * rows_, s_.out, sizeof(float) * rows_ * stride_);
  }
  void MergePartial(const float* from) { Merge(from, from + rows_, from + 2 * rows_); }

 private:
  int64_t OutputOffset(int r) const {
    const int64_t row = sequence_->first_row + (first_ + r) / group_;
    const int64_t head = kv_head_ * group_ + (first_ + r) % group_;
    return (row * args_.heads + head) * head_dim_;
  }
  const float* Query(int r) const { return args_.q + OutputOffset(r); }
  int32_t RowPosition(int r) const { return sequence_->first_position + (first_ + r) / group_; }

  static float ExpScalar(float x) {
    alignas(64) float lanes[V::kLanes];
    V::Store(lanes, V::Exp(V::Set1(x)));
    return lanes[0];
  }

  // Where the groups of positions [tile, min(tile + 64, end)) lie; those below `first_group` are
  // not looked up.
  void Locate(int32_t tile, int32_t end, int first_group, T** keys, T** values) const {
    for (int g = first_group; g < kTileGroups && tile + g * kGroup < end; ++g) {
      const int32_t position = tile + g * kGroup;
      const int32_t block = sequence_->blocks[position / layout_.block_size].value;
      const int32_t offset = position % layout_.block_size;
      keys[g] = layout_.Key(args_.kv.data, block, kv_head_, offset);
      values[g] = layout_.Value(args_.kv.data, block, kv_head_, offset);
    }
  }

  // One tile: positions [tile, min(tile + 64, end)).
  void RunTile(int32_t tile, int32_t end) {
    const int count = end - tile < kPositionTile ? end - tile : kPositionTile;
    const int first = first_position() > tile ? first_position() - tile : 0;
    const int first_group = first / kGroup;
    const int groups = (count + kGroup - 1) / kGroup;
    T *keys[kTileGroups], *values[kTileGroups], *next_keys[kTileGroups], *next_values[kTileGroups];
    Locate(tile, end, first_group, keys, values);
    for (int g = first_group; g < groups; ++g) next_keys[g] = keys[g];  // if there is no next tile
    Locate(tile + kPositionTile, end_position(), 0, next_keys, next_values);
    Scores(keys, values, first_group, groups);
    for (int r = 0; r < rows_; ++r) Softmax(r, tile, first_group, groups);
    Values(values, next_keys, first, count);
  }

  void Scores(const T* const* keys, const T* const* ahead, int first_group, int groups) {
    constexpr int kVecsPerGroup = kGroup / V::kLanes;
    const int last_vec = groups * kVecsPerGroup;
    ForRowTiles(rows_, V::kScoreRows, [&](int row, int count) {
      const float* q = s_.q + row * stride_;
      float* p = s_.p + row * kPositionTile;
      WithRows(count, [&]<int kR>() {
        int vec = first_group * kVecsPerGroup;
        for (; vec + V::kScoreVecs <= last_vec; vec += V::kScoreVecs) {
          ScoreTile<V, Kv, kR, V::kScoreVecs>(q, stride_, keys, ahead, vec, head_dim_ / 2, p);
        }
        for (; vec < last_vec; ++vec) {
          ScoreTile<V, Kv, kR, 1>(q, stride_, keys, ahead, vec, head_dim_ / 2, p);
        }
      });
    });
  }

  // Turns row r's scores into weights and updates its maximum and sum. Positions the row may not
  // see get the weight 0, whatever their score is.
  void Softmax(int r, int32_t tile, int first_group, int groups) {
    constexpr int kVecsPerGroup = kGroup / V::kLanes;
    constexpr int kMaxVecs = kPositionTile / V::kLanes;
    float* p = s_.p + r * kPositionTile;
    const int hi = RowPosition(r) + 1 - tile;
    const int lo = args_.window > 0 ? hi - args_.window : 0;
    const int first_vec = first_group * kVecsPerGroup;
    const int last_vec = groups * kVecsPerGroup;
    const bool whole = lo <= first_vec * V::kLanes && hi >= last_vec * V::kLanes;
    const F none = V::Set1(kNoScore);
    F score[kMaxVecs];
    F best = none;
    for (int v = first_vec; v < last_vec; ++v) {
      score[v] = V::Load(p + v * V::kLanes);
      if (!whole) score[v] = V::KeepLanes(score[v], lo - v * V::kLanes, hi - v * V::kLanes, none);
      best = V::Max(best, score[v]);
    }
    const float tile_max = V::ReduceMax(best);
    const float max = tile_max > s_.max[r] ? tile_max : s_.max[r];
    const F shift = V::Set1(max);
    F sum = V::Zero();
    for (int v = first_vec; v < last_vec; ++v) {
      F e = V::Exp(V::Sub(score[v], shift));
      if (!whole) e = V::KeepLanes(e, lo - v * V::kLanes, hi - v * V::kLanes, V::Zero());
      V::Store(p + v * V::kLanes, e);
      sum = V::Add(sum, e);
    }
    s_.alpha[r] = s_.max[r] == max ? 1.0f : ExpScalar(s_.max[r] - max);
    s_.sum[r] = s_.sum[r] * s_.alpha[r] + V::ReduceAdd(sum);
    s_.max[r] = max;
  }

  void Values(const T* const* values, const T* const* ahead, int first, int last) {
    const int pieces = stride_ / (2 * V::kLanes);
    ForRowTiles(rows_, V::kValueRows, [&](int row, int count) {
      const float* p = s_.p + row * kPositionTile;
      float* out = s_.out + row * stride_;
      WithRows(count, [&]<int kR>() {
        int piece = 0;
        for (; piece + V::kValuePairs <= pieces; piece += V::kValuePairs) {
          ValueTile<V, Kv, kR, V::kValuePairs>(p, s_.alpha + row, values, ahead, first, last,
                                               stride_, piece, out, stride_);
        }
        for (; piece < pieces; ++piece) {
          ValueTile<V, Kv, kR, 1>(p, s_.alpha + row, values, ahead, first, last, stride_, piece,
                                  out, stride_);
        }
      });
    });
  }

  const AttentionArgs& args_;
  const KvLayout<V, Kv>& layout_;
  TileScratch<V>& s_;
  const int head_dim_;
  const int group_;
  const int stride_;  // floats of a q, out and total row: head_dim padded
  const SequenceRows* sequence_ = nullptr;
  int kv_head_ = 0;
  int first_ = 0;
  int rows_ = 0;
};

// (row, head) pairs a unit may hold.
constexpr int TileRows(int value_dim) {
  return value_dim <= kScratchRowFloats ? kMaxTileRows
                                        : kMaxTileRows * kScratchRowFloats / value_dim;
}

// The workspace of one attention call: the list of items, merge counters, partial results.
struct AttentionPlan {
  SequenceItems* sequences;  // [max_sequences + 1]; the last holds the number of items
  int32_t* counters;
  float* partials;
  int64_t partial_floats;  // room
  int32_t max_units;       // room for counters
};

constexpr size_t Align64(size_t n) { return (n + 63) / 64 * 64; }

[[maybe_unused]] inline AttentionPlan CarveAttention(std::byte* data, size_t bytes,
                                                     int32_t sequences, int threads) {
  AttentionPlan plan;
  const size_t list = Align64((static_cast<size_t>(sequences) + 1) * sizeof(SequenceItems));
  plan.max_units = kItemsPerThread * threads;
  const size_t counters = Align64(plan.max_units * sizeof(int32_t));
  plan.sequences = reinterpret_cast<SequenceItems*>(data);
  plan.counters = reinterpret_cast<int32_t*>(data + list);
  plan.partials = reinterpret_cast<float*>(data + list + counters);
  plan.partial_floats = static_cast<int64_t>((bytes - list - counters) / sizeof(float));
  return plan;
}

[[maybe_unused]] inline size_t AttentionListBytes(int32_t sequences, int threads) {
  return Align64((static_cast<size_t>(sequences) + 1) * sizeof(SequenceItems)) +
         Align64(kItemsPerThread * static_cast<size_t>(threads) * sizeof(int32_t));
}

// Fills plan.sequences; returns the number of items.
[[maybe_unused]] inline int32_t PlanItems(const AttentionArgs& args, int tile_rows, int value_dim,
                                          int threads, const AttentionPlan& plan) {
  const int kv_heads = args.kv.geometry.kv_heads;
  const int group = args.heads / kv_heads;
  int64_t units = 0;
  const int count = static_cast<int>(args.step.sequences.size());
  for (int i = 0; i < count; ++i) {
    SequenceItems& s = plan.sequences[i];
    s.chunks = (args.step.sequences[i].num_rows * group + tile_rows - 1) / tile_rows;
    units += static_cast<int64_t>(s.chunks) * kv_heads;
  }
  const bool split = threads > 1 && units < plan.max_units;
  int32_t items = 0, split_units = 0;
  int64_t partials = 0;
  for (int i = 0; i < count; ++i) {
    SequenceItems& s = plan.sequences[i];
    const SequenceRows& rows = args.step.sequences[i];
    const int32_t own_units = s.chunks * kv_heads;
    s.first_item = items;
    s.splits = 1;
    const int32_t end = rows.first_position + rows.num_rows;
    const int32_t splits = (end + kPositionSplit - 1) / kPositionSplit;
    const int64_t need = static_cast<int64_t>(own_units) * splits * tile_rows * (2 + value_dim);
    if (split && splits > 1 && partials + need <= plan.partial_floats) {
      s.splits = splits;
      s.first_unit = split_units;
      s.partials = partials;
      for (int u = 0; u < own_units; ++u) plan.counters[split_units + u] = 0;
      split_units += own_units;
      partials += need;
    }
    items += own_units * s.splits;
  }
  plan.sequences[count].first_item = items;
  return items;
}

template <class V, class Kv>
void RunItem(const AttentionArgs& args, const KvLayout<V, Kv>& layout, const AttentionPlan& plan,
             int tile_rows, int32_t item) {
  int lo = 0, hi = static_cast<int>(args.step.sequences.size()) - 1;
  while (lo < hi) {  // the last sequence that starts at or before the item
    const int mid = (lo + hi + 1) / 2;
    if (plan.sequences[mid].first_item <= item)
      lo = mid;
    else
      hi = mid - 1;
  }
  const SequenceItems& place = plan.sequences[lo];
  const SequenceRows& sequence = args.step.sequences[lo];
  const int kv_heads = args.kv.geometry.kv_heads;
  int32_t index = item - place.first_item;
  const int32_t split = index % place.splits;
  index /= place.splits;
  const int kv_head = index % kv_heads;
  const int chunk = index / kv_heads;
  const int pairs = sequence.num_rows * (args.heads / kv_heads);
  const int first = chunk * tile_rows;

  TileScratch<V> scratch;
  Unit<V, Kv> unit(args, layout, scratch);
  unit.Start(sequence, kv_head, first, pairs - first < tile_rows ? pairs - first : tile_rows);
  if (place.splits == 1) {
    unit.ClearTotal();
    const int32_t last = (unit.end_position() - 1) / kPositionSplit;
    for (int32_t s = unit.first_position() / kPositionSplit; s <= last; ++s) {
      unit.RunSplit(s);
      unit.MergeOwn();
    }
    unit.Finish();
    return;
  }
  const int64_t slot_floats = static_cast<int64_t>(tile_rows) * (2 + layout.value_dim);
  float* partials = plan.partials + place.partials + index * place.splits * slot_floats;
  unit.RunSplit(split);
  unit.SavePartial(partials + split * slot_floats);
  int32_t* counter = plan.counters + place.first_unit + index;
  if (__atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL) != place.splits) return;
  unit.ClearTotal();
  for (int32_t s = 0; s < place.splits; ++s) unit.MergePartial(partials + s * slot_floats);
  unit.Finish();
}

template <class V, class Kv>
void AttentionOf(const AttentionArgs& args, Workspace workspace, ThreadPool& pool) {
  if (args.step.sequences.empty()) return;
  const KvLayout<V, Kv> layout(args.kv.geometry);
  const int tile_rows = TileRows(layout.value_dim);
  const AttentionPlan plan =
      CarveAttention(workspace.data, workspace.bytes,
                     static_cast<int32_t>(args.step.sequences.size()), pool.size());
  const int32_t items = PlanItems(args, tile_rows, layout.value_dim, pool.size(), plan);
  // Backwards: prompt chunks stand last in a step and their last rows see most, so the longest
  // items start first.
  pool.ForEach(items, [&](int64_t i) {
    RunItem<V, Kv>(args, layout, plan, tile_rows, static_cast<int32_t>(items - 1 - i));
  });
}

template <class V>
void AttentionImpl(const AttentionArgs& args, Workspace workspace, ThreadPool& pool) {
  if (args.kv.geometry.dtype == KvDType::kF32) {
    AttentionOf<V, F32Elements<V>>(args, workspace, pool);
  } else {
    AttentionOf<V, Bf16Elements<V>>(args, workspace, pool);
  }
}

}  // namespace
}  // namespace vivace::kernels
