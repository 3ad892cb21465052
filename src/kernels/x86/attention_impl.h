// Paged attention of the x86 tiers, as templates over the tier's Vec and the cache's element type.
// Included by attention_<tier>.cc only. See kernels/attention.h for what must hold.
//
// A unit of work is up to kMaxTileRows (query row, head) pairs of one kv head: each K and V load
// serves all of them. They are rows of one sequence, or of several that begin with the same blocks;
// then tiles of the shared positions are read once for all, and the rest for one sequence after the
// other. attention_plan_impl.h says how a step becomes units and units items.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/attention.h"
#include "kernels/x86/attention_plan_impl.h"
#include "kernels/x86/attention_tiles_impl.h"
#include "kernels/x86/kv_layout_impl.h"

namespace vivace::kernels {
namespace {  // internal linkage: no tier may end up with another's instructions

constexpr float kNoScore = -1e30f;  // running maximum before the first position
constexpr int kTileGroups = kPositionTile / kGroup;
constexpr int kRowSlots = kMaxTileRows + kMaxLanes;  // rows of arrays that are read by vectors

template <class V>
struct alignas(64) TileScratch {
  float q[kMaxTileRows * kScratchRowFloats];
  int16_t q16[kMaxTileRows * kScratchRowFloats];  // int16 for int8 caches, or bf16
  float out[kMaxTileRows * kScratchRowFloats];    // of the running split
  float total[kMaxTileRows * kScratchRowFloats];  // of the splits before it
  float p[kMaxTileRows * kPositionTile];          // scores, then weights
  int16_t w[kMaxTileRows * kPositionTile];  // weights: times the values' scales for int8, or bf16
  float q_scale[kRowSlots], w_scale[kRowSlots];
  // Online softmax of the running split; `drop` is old minus new maximum, `tile_sum` the tile's.
  float max[kRowSlots], sum[kRowSlots], drop[kRowSlots], tile_sum[kRowSlots];
  float total_max[kRowSlots], total_sum[kRowSlots];
  int32_t lo[kRowSlots], hi[kRowSlots];  // positions of the running tile a row sees
  int32_t position[kRowSlots];
  int64_t offset[kRowSlots];  // of the row's query and output
};

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

  // No rows yet; of `kv_head`, and of sequences that share [0, shared_positions).
  void Start(int kv_head, int32_t shared_positions) {
    kv_head_ = kv_head;
    shared_positions_ = shared_positions;
    rows_ = num_parts_ = 0;
    first_row_position_ = std::numeric_limits<int32_t>::max();
    end_ = 0;
  }

  // (row, head) pairs [first, first + count) of `sequence`.
  void Add(const SequenceRows& sequence, int first, int count) {
    int row = first / group_, head = first % group_;
    const int32_t begin = sequence.first_position + row;
    const int32_t end = sequence.first_position + (first + count - 1) / group_ + 1;
    parts_[num_parts_++] = {&sequence, rows_, count, begin, end};
    first_row_position_ = begin < first_row_position_ ? begin : first_row_position_;
    end_ = end > end_ ? end : end_;
    for (int i = 0; i < count; ++i, ++rows_) {
      s_.position[rows_] = sequence.first_position + row;
      s_.offset[rows_] =
          (int64_t{sequence.first_row + row} * args_.heads + kv_head_ * group_ + head) * head_dim_;
      PrepareQuery(rows_);
      if (++head == group_) head = 0, ++row;
    }
  }

  // Positions that some row of the unit sees.
  int32_t first_position() const {
    if (args_.window <= 0) return 0;
    const int32_t first = first_row_position_ - args_.window + 1;
    return first > 0 ? first : 0;
  }
  int32_t end_position() const { return end_; }

  // Attends to the positions of split `index`; the result is in max, sum, out.
  void RunSplit(int32_t index) {
    for (int r = 0; r < rows_; ++r) {
      s_.max[r] = kNoScore;
      s_.sum[r] = 0.0f;
    }
    std::memset(s_.out, 0, sizeof(float) * rows_ * stride_);
    int32_t begin = index * kPositionSplit;
    const int32_t split_end = begin + kPositionSplit;
    const int32_t end = end_ < split_end ? end_ : split_end;
    const int32_t first = first_position();
    if (first > begin) begin = first / kPositionTile * kPositionTile;
    for (int32_t tile = begin; tile < end; tile += kPositionTile) {
      if (tile + kPositionTile <= shared_positions_) {
        RunTile({parts_[0].sequence, 0, rows_, first_row_position_, parts_[0].end}, tile);
        continue;
      }
      for (int i = 0; i < num_parts_; ++i) {
        if (tile < parts_[i].end) RunTile(parts_[i], tile);
      }
    }
  }

  void ClearTotal() {
    for (int r = 0; r < rows_; ++r) s_.total_sum[r] = 0.0f;
  }

  // total = total merged with a split's (max, sum, out). A sum is 0 where a row has seen nothing.
  void Merge(const float* max, const float* sum, const float* out) {
    for (int r = 0; r < rows_; ++r) {
      if (sum[r] == 0.0f) continue;
      float* total = s_.total + r * stride_;
      const float* from = out + r * stride_;
      if (s_.total_sum[r] == 0.0f) {
        s_.total_max[r] = max[r];
        s_.total_sum[r] = sum[r];
        std::memcpy(total, from, sizeof(float) * stride_);
        continue;
      }
      const float m = max[r] > s_.total_max[r] ? max[r] : s_.total_max[r];
      const float a = ExpScalar(s_.total_max[r] - m);
      const float b = ExpScalar(max[r] - m);
      s_.total_max[r] = m;
      s_.total_sum[r] = s_.total_sum[r] * a + sum[r] * b;
      const F va = V::Set1(a), vb = V::Set1(b);
      for (int d = 0; d < stride_; d += V::kLanes) {
        const F scaled = V::Mul(V::Load(from + d), vb);
        V::Store(total + d, V::Fma(V::Load(total + d), va, scaled));
      }
    }
  }
  void MergeOwn() { Merge(s_.max, s_.sum, s_.out); }

  // Writes total / sum to the output rows.
  void Finish() {
    for (int r = 0; r < rows_; ++r) {
      float* out = args_.out + s_.offset[r];
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
  void SavePartial(float* to) const {
    std::memcpy(to, s_.max, sizeof(float) * rows_);
    std::memcpy(to + rows_, s_.sum, sizeof(float) * rows_);
    std::memcpy(to + 2 * rows_, s_.out, sizeof(float) * rows_ * stride_);
  }
  void MergePartial(const float* from) { Merge(from, from + rows_, from + 2 * rows_); }

 private:
  // Rows [row, row + rows) of the unit, at positions from `first_position` on, which read
  // `sequence`'s blocks and see nothing from `end` on.
  struct Part {
    const SequenceRows* sequence;
    int row;
    int rows;
    int32_t first_position;
    int32_t end;
  };

  static uint16_t* AsBf16(int16_t* p) { return reinterpret_cast<uint16_t*>(p); }

  static float ExpScalar(float x) {
    alignas(64) float lanes[V::kLanes];
    V::Store(lanes, V::Exp(V::Set1(x)));
    return lanes[0];
  }

  // The row's query times the scale of scores; for an int8 cache as int16 and a scale, NaN if the
  // query holds anything that is not a number.
  void PrepareQuery(int r) {
    const float* q = args_.q + s_.offset[r];
    const F scale = V::Set1(args_.scale);
    float* scaled = s_.q + r * stride_;
    F most = V::Zero();
    uint32_t bad = 0;
    for (int d = 0; d < head_dim_; d += V::kLanes) {
      const F x = V::Mul(V::LoadFirst(q + d, head_dim_ - d), scale);
      V::Store(scaled + d, x);
      if constexpr (Kv::kDot) V::StoreBf16(AsBf16(s_.q16 + r * stride_ + d), x);
      if constexpr (Kv::kInteger) {
        bad |= V::NonFiniteBits(x);
        most = V::Max(most, V::Abs(x));
      }
    }
    if constexpr (Kv::kInteger) {
      const float max = V::ReduceMax(most);
      s_.q_scale[r] = bad != 0 ? NAN : max / kInt16Max;
      const F inverse = V::Set1(max > kSmallest ? kInt16Max / max : 0.0f);
      for (int d = 0; d < head_dim_; d += V::kLanes) {
        V::StoreInt16(s_.q16 + r * stride_ + d, V::Mul(V::Load(scaled + d), inverse));
      }
    }
  }

  // Where the groups [first_group, groups) of positions from `tile` on lie.
  void Locate(const SequenceRows& sequence, int32_t tile, int first_group, int groups, T** keys,
              T** values) const {
    for (int g = first_group; g < groups; ++g) {
      const int32_t position = tile + g * kGroup;
      const int32_t block = sequence.blocks[position / layout_.block_size].value;
      const int32_t offset = position % layout_.block_size;
      keys[g] = layout_.Key(args_.kv.data, block, kv_head_, offset);
      values[g] = layout_.Value(args_.kv.data, block, kv_head_, offset);
    }
  }

  // What each row of the part sees of a tile.
  void FindRanges(const Part& part, int32_t tile) {
    whole_tile_ = args_.window <= 0 && part.first_position >= tile + kPositionTile - 1;
    if (whole_tile_) return;
    for (int r = part.row; r < part.row + part.rows; ++r) {
      const int32_t hi = s_.position[r] + 1 - tile;
      const int32_t lo = args_.window > 0 ? hi - args_.window : 0;
      s_.hi[r] = hi < kPositionTile ? hi : kPositionTile;
      s_.lo[r] = lo > 0 ? lo : 0;
    }
  }
  RowRanges Ranges(int row, int rows) const {
    return whole_tile_ ? RowRanges::Whole() : RowRanges(s_.lo + row, s_.hi + row, rows);
  }

  // Positions [tile, tile + 64) for the rows of `part`.
  void RunTile(const Part& part, int32_t tile) {
    FindRanges(part, tile);
    const RowRanges ranges = Ranges(part.row, part.rows);
    if (ranges.begin >= ranges.end) return;
    const int first_group = ranges.begin / kGroup;
    const int groups = (ranges.end + kGroup - 1) / kGroup;
    T *keys[kTileGroups], *values[kTileGroups], *next_keys[kTileGroups], *next_values[kTileGroups];
    Locate(*part.sequence, tile, first_group, groups, keys, values);
    for (int g = first_group; g < groups; ++g) next_keys[g] = keys[g];  // if there is no next tile
    const int32_t left = part.end - tile - kPositionTile;
    const int next_groups = (left + kGroup - 1) / kGroup;
    Locate(*part.sequence, tile + kPositionTile, 0,
           next_groups < kTileGroups ? next_groups : kTileGroups, next_keys, next_values);
    Scores(part, keys, values);
    Softmax(part, values);
    Rescale(part);
    Values(part, values, next_keys);
  }

  void Scores(const Part& part, const T* const* keys, const T* const* ahead) {
    ForRowTiles(part.rows, V::kScoreRows, [&](int first, int count) {
      const int row = part.row + first;
      const RowRanges ranges = Ranges(row, count);
      const int last_vec = (ranges.end + V::kLanes - 1) / V::kLanes;
      WithRows(count, [&]<int kR>() {
        int vec = ranges.begin / V::kLanes;
        for (; vec + V::kScoreVecs <= last_vec; vec += V::kScoreVecs) {
          Score<kR, V::kScoreVecs>(row, keys, ahead, vec);
        }
        for (; vec < last_vec; ++vec) Score<kR, 1>(row, keys, ahead, vec);
      });
    });
  }
  template <int kR, int kT>
  void Score(int row, const T* const* keys, const T* const* ahead, int vec) {
    float* p = s_.p + row * kPositionTile;
    if constexpr (Kv::kInteger) {
      IntScoreTile<V, Kv, kR, kT>(s_.q16 + row * stride_, stride_, s_.q_scale + row, keys, ahead,
                                  vec, head_dim_ / 2, p);
    } else if constexpr (Kv::kDot) {
      DotScoreTile<V, Kv, kR, kT>(AsBf16(s_.q16 + row * stride_), stride_, keys, ahead, vec,
                                  head_dim_ / 2, p);
    } else {
      ScoreTile<V, Kv, kR, kT>(s_.q + row * stride_, stride_, keys, ahead, vec, head_dim_ / 2, p);
    }
  }

  // Turns the rows' scores into weights. Positions a row may not see get the weight 0, whatever
  // their score is.
  void Softmax(const Part& part, const T* const* values) {
    constexpr int kVecs = kPositionTile / V::kLanes;
    for (int r = part.row; r < part.row + part.rows; ++r) {
      if (whole_tile_) {  // bounds the compiler knows: scores stay in registers
        SoftmaxRow<true>(r, 0, kVecs, 0, kPositionTile, values);
        continue;
      }
      s_.drop[r] = s_.tile_sum[r] = 0.0f;
      if constexpr (Kv::kInteger) ClearWeights(r);
      const int lo = s_.lo[r], hi = s_.hi[r];
      if (lo >= hi) continue;
      SoftmaxRow<false>(r, lo / V::kLanes, (hi + V::kLanes - 1) / V::kLanes, lo, hi, values);
    }
  }

  template <bool kWhole>
  static F Visible(F x, int vec, int lo, int hi, F other) {
    if constexpr (kWhole) return x;
    return V::KeepLanes(x, lo - vec * V::kLanes, hi - vec * V::kLanes, other);
  }

  // Vectors [first_vec, last_vec) of the tile, of which the row sees positions [lo, hi).
  template <bool kWhole>
  void SoftmaxRow(int r, int first_vec, int last_vec, int lo, int hi, const T* const* values) {
    float* p = s_.p + r * kPositionTile;
    const F none = V::Set1(kNoScore);
    F e[kPositionTile / V::kLanes];  // scores, then weights
    F best = none;
    for (int v = first_vec; v < last_vec; ++v) {
      e[v] = Visible<kWhole>(V::Load(p + v * V::kLanes), v, lo, hi, none);
      best = V::Max(best, e[v]);
    }
    const float tile_max = V::ReduceMax(best);
    const float max = tile_max > s_.max[r] ? tile_max : s_.max[r];
    const F shift = V::Set1(max);
    F sum = V::Zero();
    for (int v = first_vec; v < last_vec; ++v) {
      e[v] = Visible<kWhole>(V::Exp(V::Sub(e[v], shift)), v, lo, hi, V::Zero());
      sum = V::Add(sum, e[v]);
      if constexpr (Kv::kDot) {
        V::StoreBf16(AsBf16(s_.w + r * kPositionTile + v * V::kLanes), e[v]);
      } else if constexpr (!Kv::kInteger) {
        V::Store(p + v * V::kLanes, e[v]);
      }
    }
    s_.tile_sum[r] = V::ReduceAdd(sum);
    s_.drop[r] = s_.max[r] - max;
    s_.max[r] = max;
    if constexpr (Kv::kInteger) QuantizeWeights<kWhole>(r, first_vec, last_vec, lo, hi, values, e);
  }

  void ClearWeights(int r) {
    std::memset(s_.w + r * kPositionTile, 0, sizeof(int16_t) * kPositionTile);
    s_.w_scale[r] = 0.0f;
  }

  // w = weight * scale of the value, as int16 with one scale for the row's tile. A value that is
  // not a number has the scale infinity and makes w_scale NaN.
  template <bool kWhole>
  void QuantizeWeights(int r, int first_vec, int last_vec, int lo, int hi, const T* const* values,
                       F* w) {
    constexpr int kVecsPerGroup = kGroup / V::kLanes;
    F most = V::Zero();
    for (int v = first_vec; v < last_vec; ++v) {
      const float* scales = Kv::Scales(values[v / kVecsPerGroup], stride_);
      w[v] = V::Mul(w[v], V::Load(scales + v % kVecsPerGroup * V::kLanes));
      w[v] = Visible<kWhole>(w[v], v, lo, hi, V::Zero());
      most = V::Max(most, w[v]);
    }
    const float max = V::ReduceMax(most);
    s_.w_scale[r] = max / kInt16Max + (max - max);
    const F inverse = V::Set1(max > kSmallest ? kInt16Max / max : 0.0f);
    for (int v = first_vec; v < last_vec; ++v) {
      V::StoreInt16(s_.w + r * kPositionTile + v * V::kLanes, V::Mul(w[v], inverse));
    }
  }

  // Brings the sums and outputs so far to the new maxima, for all rows of the part at once.
  void Rescale(const Part& part) {
    alignas(64) float alpha[kRowSlots];
    for (int i = 0; i < part.rows; i += V::kLanes) {
      V::Store(alpha + i, V::Exp(V::Load(s_.drop + part.row + i)));
    }
    for (int i = 0; i < part.rows; ++i) {
      const int r = part.row + i;
      s_.sum[r] = s_.sum[r] * alpha[i] + s_.tile_sum[r];
      if (alpha[i] == 1.0f) continue;
      const F a = V::Set1(alpha[i]);
      float* out = s_.out + r * stride_;
      for (int d = 0; d < stride_; d += V::kLanes) V::Store(out + d, V::Mul(V::Load(out + d), a));
    }
  }

  void Values(const Part& part, const T* const* values, const T* const* ahead) {
    const int vecs = stride_ / V::kLanes;
    ForRowTiles(part.rows, V::kValueRows, [&](int first, int count) {
      const int row = part.row + first;
      const RowRanges ranges = Ranges(row, count);
      if (ranges.begin >= ranges.end) return;
      Edge(ranges, row, count, ranges.begin, ranges.inner_begin, values);
      WithRows(count, [&]<int kR>() {
        int vec = 0;
        for (; vec + V::kValueVecs <= vecs; vec += V::kValueVecs) {
          Value<kR, V::kValueVecs>(ranges, row, values, ahead, vec);
        }
        for (; vec < vecs; vec += 2) Value<kR, 2>(ranges, row, values, ahead, vec);
      });
      Edge(ranges, row, count, ranges.inner_end, ranges.end, values);
    });
  }
  // Positions [from, to), which not all rows see. Int8 weights are 0 where a row sees nothing.
  void Edge(const RowRanges& ranges, int row, int rows, int from, int to, const T* const* values) {
    if (from >= to) return;
    if constexpr (Kv::kDot) {
      DotValueEdge<V, Kv>(ranges, rows, from, to, AsBf16(s_.w + row * kPositionTile), values,
                          stride_, s_.out + row * stride_);
    } else if constexpr (!Kv::kInteger) {
      ValueEdge<V, Kv>(ranges, rows, from, to, s_.p + row * kPositionTile, values, stride_,
                       s_.out + row * stride_);
    }
  }
  template <int kR, int kC>
  void Value(const RowRanges& ranges, int row, const T* const* values, const T* const* ahead,
             int vec) {
    float* out = s_.out + row * stride_;
    if constexpr (Kv::kInteger) {
      IntValueTile<V, Kv, kR, kC>(ranges, s_.w + row * kPositionTile, s_.w_scale + row, values,
                                  ahead, stride_, vec, out);
    } else if (ranges.inner_begin >= ranges.inner_end) {
      return;
    } else if constexpr (Kv::kDot) {
      DotValueTile<V, Kv, kR, kC>(ranges, AsBf16(s_.w + row * kPositionTile), values, ahead,
                                  stride_, vec, out);
    } else {
      ValueTile<V, Kv, kR, kC>(ranges, s_.p + row * kPositionTile, values, ahead, stride_, vec,
                               out);
    }
  }

  static constexpr float kInt16Max = 32767.0f;
  static constexpr float kSmallest = 1e-30f;  // less counts as zero: its inverse stays finite

  const AttentionArgs& args_;
  const KvLayout<V, Kv>& layout_;
  TileScratch<V>& s_;
  const int head_dim_;
  const int group_;
  const int stride_;  // elements of a q, out and total row: head_dim padded
  int kv_head_ = 0;
  int32_t shared_positions_ = 0;
  int rows_ = 0;
  int32_t first_row_position_ = 0, end_ = 0;
  bool whole_tile_ = false;  // every row sees all of the running tile
  Part parts_[kMaxTileRows];
  int num_parts_ = 0;
};

template <class V, class Kv>
void RunItem(const AttentionArgs& args, const KvLayout<V, Kv>& layout, const AttentionPlan& plan,
             int32_t item) {
  const ItemPlace place = FindItem(args, plan, item);
  const Bundle& bundle = *place.bundle;
  TileScratch<V> scratch;
  Unit<V, Kv> unit(args, layout, scratch);
  unit.Start(place.kv_head, bundle.shared_positions);
  const int group = args.heads / args.kv.geometry.kv_heads;
  for (int i = 0; i < bundle.members; ++i) {
    const SequenceRows& sequence = args.step.sequences[plan.members[bundle.first_member + i]];
    const int first = place.chunk * plan.tile_rows;  // 0 where there are several members
    const int left = sequence.num_rows * group - first;
    unit.Add(sequence, first, left < plan.tile_rows ? left : plan.tile_rows);
  }
  if (bundle.splits == 1) {
    unit.ClearTotal();
    const int32_t last = (unit.end_position() - 1) / kPositionSplit;
    for (int32_t s = unit.first_position() / kPositionSplit; s <= last; ++s) {
      unit.RunSplit(s);
      unit.MergeOwn();
    }
    unit.Finish();
    return;
  }
  float* partials = plan.partials + bundle.partials + place.unit * bundle.splits * plan.slot_floats;
  unit.RunSplit(place.split);
  unit.SavePartial(partials + place.split * plan.slot_floats);
  int32_t* counter = plan.counters + bundle.first_unit + place.unit;
  if (__atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL) != bundle.splits) return;
  unit.ClearTotal();
  for (int32_t s = 0; s < bundle.splits; ++s) unit.MergePartial(partials + s * plan.slot_floats);
  unit.Finish();
}

template <class V, class Bf16 = Bf16Elements<V>>
void AttentionImpl(const AttentionArgs& args, Workspace workspace, ThreadPool& pool) {
  if (args.step.sequences.empty()) return;
  WithElements<V, Bf16>(args.kv.geometry.dtype, [&]<class Kv>() {
    const KvLayout<V, Kv> layout(args.kv.geometry);
    const AttentionPlan plan = PlanAttention(args, layout.value_dim, pool.size(), workspace);
    // Backwards: prompt chunks stand last in a step and their last rows see most, so the longest
    // items start first.
    pool.ForEach(plan.items, [&](int64_t i) {
      RunItem<V, Kv>(args, layout, plan, static_cast<int32_t>(plan.items - 1 - i));
    });
  });
}

}  // namespace
}  // namespace vivace::kernels
