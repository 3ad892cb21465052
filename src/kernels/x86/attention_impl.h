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

constexpr float kNoScore = std::numeric_limits<float>::lowest();  // maximum before any position
constexpr float kLog2E = 1.44269504f;
constexpr int kTileGroups = kPositionTile / kGroup;
constexpr int kRowSlots = kMaxTileRows + kMaxLanes;  // rows of arrays that are read by vectors

template <class V>
struct alignas(64) TileScratch {
  float q[kMaxTileRows * kMaxHeadDim];
  int16_t q16[kMaxTileRows * kMaxHeadDim];  // int16 for int8 caches, or bf16
  float out[kMaxTileRows * kMaxHeadDim];    // of the running split
  float total[kMaxTileRows * kMaxHeadDim];  // of the splits before it
  float p[kMaxTileRows * kPositionTile];    // scores, then weights
  int16_t w[kMaxTileRows * kPositionTile];  // weights: times the values' scales for int8, or bf16
  float q_scale[kRowSlots], w_scale[kRowSlots];
  // Online softmax of the running split: maxima, and sums of weights that are kept a vector a row
  // until the split ends.
  float max[kRowSlots], sum[kRowSlots], sums[kMaxTileRows * V::kLanes];
  float best[V::kLanes * V::kLanes];  // of V::kLanes rows at a time: a tile's maxima, a vector each
  float total_max[kRowSlots], total_sum[kRowSlots];
  int32_t lo[kRowSlots], hi[kRowSlots];  // positions of the running tile a row sees
  int32_t position[kRowSlots];
  int64_t pair[kRowSlots];  // which (row, head) of the step it is
  // Values made of the running tile's latent keys, in groups as the cache would have them.
  std::byte values[kPositionTile * (kMaxHeadDim + 1) * sizeof(float)];
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
        latent_dim_(args.kv.geometry.latent_dim),
        value_dim_(args.kv.geometry.value_dim()),
        group_(args.heads / args.kv.geometry.kv_heads),
        stride_(layout.value_dim),
        max_query_(static_cast<float>(MaxQueryValue(head_dim_))) {}

  // The tile that this thread is likely to read after the unit's; without a sequence: none.
  struct Following {
    const SequenceRows* sequence = nullptr;
    int kv_head = 0;
    int32_t tile = 0;
    int32_t end = 0;  // positions of the sequence
  };
  void SetFollowing(const Following& following) { following_ = following; }

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
      s_.pair[rows_] = int64_t{sequence.first_row + row} * args_.heads + kv_head_ * group_ + head;
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
      V::Store(s_.sums + r * V::kLanes, V::Zero());
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
    for (int r = 0; r < rows_; ++r) s_.sum[r] = V::ReduceAdd(V::Load(s_.sums + r * V::kLanes));
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
      const float a = Exp2Scalar(s_.total_max[r] - m);
      const float b = Exp2Scalar(max[r] - m);
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
      float* out = args_.out + s_.pair[r] * value_dim_;
      const float inverse = Inverse(r);
      const F scale = V::Set1(inverse);
      const float* total = s_.total + r * stride_;
      int d = 0;
      for (; d + V::kLanes <= value_dim_; d += V::kLanes) {
        V::Store(out + d, V::Mul(V::Load(total + d), scale));
      }
      for (; d < value_dim_; ++d) out[d] = total[d] * inverse;
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

  // Where each group of a tile lies.
  struct TilePlace {
    T* keys[kTileGroups];
    T* values[kTileGroups];
  };

  static constexpr int kTileVecs = kPositionTile / V::kLanes;

  // Of the row's sum of weights, with the head's sink among them.
  float Inverse(int r) const {
    // All scores -infinity: nothing to weigh, as 0 / 0.
    if (s_.total_sum[r] == 0.0f) return NAN;
    if (args_.sinks == nullptr) return 1.0f / s_.total_sum[r];
    const float sink = args_.sinks[s_.pair[r] % args_.heads] * kLog2E, max = s_.total_max[r];
    const float m = sink > max ? sink : max;
    const float a = Exp2Scalar(max - m);
    return a / (s_.total_sum[r] * a + Exp2Scalar(sink - m));
  }

  static uint16_t* AsBf16(int16_t* p) { return reinterpret_cast<uint16_t*>(p); }

  static float Exp2Scalar(float x) {
    alignas(64) float lanes[V::kLanes];
    V::Store(lanes, V::Exp2(V::Set1(x)));
    return lanes[0];
  }

  // The row's query times the scale of scores, which are powers of two from here on; for an int8
  // cache as int16 and a scale, NaN if the query holds anything that is not a number.
  void PrepareQuery(int r) {
    const float* q = args_.q + s_.pair[r] * head_dim_;
    const F scale = V::Set1(args_.scale * kLog2E);
    float* scaled = s_.q + r * stride_;
    F most = V::Zero();
    uint32_t bad = 0;
    for (int d = 0; d < head_dim_; d += V::kLanes) {
      const F x = V::Mul(V::LoadFirst(q + d, head_dim_ - d), scale);
      V::Store(scaled + d, x);
      if constexpr (Kv::kDot) V::StoreDotBf16(AsBf16(s_.q16 + r * stride_ + d), x);
      if constexpr (Kv::kInteger) {
        bad |= V::NonFiniteBits(x);
        most = V::Max(most, V::Abs(x));
      }
    }
    if constexpr (Kv::kInteger) {
      const float max = V::ReduceMax(most);
      s_.q_scale[r] = bad != 0 ? NAN : max / max_query_;
      const F inverse = V::Set1(max > kSmallest ? max_query_ / max : 0.0f);
      for (int d = 0; d < head_dim_; d += V::kLanes) {
        V::StoreInt16(s_.q16 + r * stride_ + d, V::Mul(V::Load(scaled + d), inverse));
      }
    }
  }

  // Where the groups [first_group, groups) of positions from `tile` on lie.
  void Locate(const SequenceRows& sequence, int kv_head, int32_t tile, int first_group, int groups,
              TilePlace* place) const {
    for (int g = first_group; g < groups; ++g) {
      const int32_t position = tile + g * kGroup;
      const int32_t block = sequence.blocks[position / layout_.block_size].value;
      const int32_t offset = position % layout_.block_size;
      place->keys[g] = layout_.Key(args_.kv.data, block, kv_head, offset);
      place->values[g] =
          latent_dim_ > 0 ? place->keys[g] : layout_.Value(args_.kv.data, block, kv_head, offset);
    }
  }

  // Points the values of latents to what they are made to be, from their keys.
  void MakeValues(int first_group, int groups, TilePlace* place) {
    auto* out = reinterpret_cast<T*>(s_.values);
    for (int g = first_group; g < groups; ++g, out += stride_ * kGroup + Kv::kScaleElements) {
      Kv::KeysToValues(place->keys[g], head_dim_, latent_dim_, stride_, out);
      place->values[g] = out;
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
    TilePlace here, next;
    Locate(*part.sequence, kv_head_, tile, first_group, groups, &here);
    const int next_groups = LocateNext(part, tile, &next);
    for (int g = next_groups; g < groups; ++g) {  // something that is near
      next.keys[g] = here.keys[g];
      next.values[g] = here.values[g];
    }
    Scores(part, here.keys, next.keys);
    if (args_.softcap > 0) Softcap(part);
    if (latent_dim_ > 0) MakeValues(first_group, groups, &here);
    Softmax(part, here.values);
    Values(part, here.values, next.values);
    for (int g = groups; g < next_groups; ++g) {  // the rest of them
      PrefetchBytes(next.keys[g], layout_.key_group * sizeof(T));
      PrefetchBytes(next.values[g], layout_.value_group * sizeof(T));
    }
  }

  // Where the tile that comes after `tile` of the part lies; returns how many groups it has.
  int LocateNext(const Part& part, int32_t tile, TilePlace* place) {
    const int32_t next = tile + kPositionTile;
    if (next < part.end) {
      const int groups = GroupsUpTo(part.end - next);
      Locate(*part.sequence, kv_head_, next, 0, groups, place);
      return groups;
    }
    if (following_.sequence == nullptr) return 0;
    const int groups = GroupsUpTo(following_.end - following_.tile);
    Locate(*following_.sequence, following_.kv_head, following_.tile, 0, groups, place);
    following_.sequence = nullptr;
    return groups;
  }
  static int GroupsUpTo(int32_t positions) {
    return positions < kPositionTile ? (positions + kGroup - 1) / kGroup : kTileGroups;
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
        if constexpr (V::kScoreVecs > 2) {  // few rows need two vectors to hide latencies
          for (; vec + 2 <= last_vec; vec += 2) Score<kR, 2>(row, keys, ahead, vec);
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

  // Scores are powers of two by now, and so is the cap.
  void Softcap(const Part& part) {
    const F cap = V::Set1(args_.softcap * kLog2E);
    const F doubled = V::Set1(-2.0f / args_.softcap);  // 2^(x doubled) is e^-2|x / cap|
    const F one = V::Set1(1.0f);
    float* p = s_.p + part.row * kPositionTile;
    for (int i = 0; i < part.rows * kPositionTile; i += V::kLanes) {
      const F x = V::Load(p + i);
      const F e = V::Exp2(V::Mul(V::Abs(x), doubled));
      const F y = V::Mul(cap, V::Div(V::Sub(one, e), V::Add(one, e)));
      V::Store(p + i, V::SelectGreater(V::Zero(), x, V::Sub(V::Zero(), y), y));
    }
  }

  // Turns the rows' scores into weights, and brings the sums and outputs so far to the new maxima.
  // Positions a row may not see get the weight 0, whatever their score is.
  void Softmax(const Part& part, const T* const* values) {
    for (int first = 0; first < part.rows; first += V::kLanes) {
      const int left = part.rows - first;
      SoftmaxRows(part.row + first, left < V::kLanes ? left : V::kLanes, values);
    }
  }

  // Of up to V::kLanes rows: one step for all of them after the other, so that no row waits for the
  // long chains of its own.
  void SoftmaxRows(int row, int rows, const T* const* values) {
    for (int i = 0; i < rows; ++i) {
      const F best = whole_tile_ ? BestScore<true>(row + i) : BestScore<false>(row + i);
      V::Store(s_.best + i * V::kLanes, best);
    }
    const F old_max = V::Load(s_.max + row);
    const F tile_max = V::KeepLanes(V::MaxOfRows(s_.best), 0, rows, V::Set1(kNoScore));
    const F max = V::Max(tile_max, old_max);  // the old one where the tile's is NaN
    V::Store(s_.max + row, max);
    alignas(64) float alpha[V::kLanes];
    V::Store(alpha, V::Exp2(V::Sub(old_max, max)));
    for (int i = 0; i < rows; ++i) {
      whole_tile_ ? WeighRow<true>(row + i, alpha[i], values)
                  : WeighRow<false>(row + i, alpha[i], values);
    }
  }

  // The scores of vector `vec` that row r sees, -infinity in place of the others.
  template <bool kWhole>
  F VisibleScores(int r, int vec) const {
    const F x = V::Load(s_.p + r * kPositionTile + vec * V::kLanes);
    if constexpr (kWhole) return x;
    const int at = vec * V::kLanes;
    return V::KeepLanes(x, s_.lo[r] - at, s_.hi[r] - at,
                        V::Set1(-std::numeric_limits<float>::infinity()));
  }

  template <bool kWhole>
  F BestScore(int r) const {
    F best = VisibleScores<kWhole>(r, 0);
    for (int v = 1; v < kTileVecs; ++v) best = V::Max(best, VisibleScores<kWhole>(r, v));
    return best;
  }

  template <bool kWhole>
  void WeighRow(int r, float alpha, const T* const* values) {
    const F max = V::Set1(s_.max[r]);
    F e[kTileVecs];
    for (int v = 0; v < kTileVecs; ++v) {
      e[v] = V::Exp2(V::Sub(VisibleScores<kWhole>(r, v), max));
    }
    F sum = e[0];
    for (int v = 1; v < kTileVecs; ++v) sum = V::Add(sum, e[v]);
    float* sums = s_.sums + r * V::kLanes;
    V::Store(sums, V::Fma(V::Load(sums), V::Set1(alpha), sum));
    if constexpr (Kv::kInteger) {
      QuantizeWeights<kWhole>(r, values, e);
    } else {
      for (int v = 0; v < kTileVecs; ++v) {
        const int at = r * kPositionTile + v * V::kLanes;
        if constexpr (Kv::kDot) {
          V::StoreDotBf16(AsBf16(s_.w + at), e[v]);
        } else {
          V::Store(s_.p + at, e[v]);
        }
      }
    }
    if (alpha == 1.0f) return;
    const F a = V::Set1(alpha);
    float* out = s_.out + r * stride_;
    for (int d = 0; d < stride_; d += V::kLanes) V::Store(out + d, V::Mul(V::Load(out + d), a));
  }

  // w = weight * scale of the value, as int16 with one scale for the row's tile. A value that is
  // not a number has the scale infinity and makes w_scale NaN.
  template <bool kWhole>
  void QuantizeWeights(int r, const T* const* values, F* w) {
    constexpr int kVecsPerGroup = kGroup / V::kLanes;
    F most = V::Zero();
    for (int v = 0; v < kTileVecs; ++v) {
      const int at = v * V::kLanes;
      if constexpr (!kWhole) {
        if (at >= s_.hi[r] || at + V::kLanes <= s_.lo[r]) {  // and there may be no such group
          w[v] = V::Zero();
          continue;
        }
      }
      const float* scales = Kv::Scales(values[v / kVecsPerGroup], stride_);
      w[v] = V::Mul(w[v], V::Load(scales + v % kVecsPerGroup * V::kLanes));
      if constexpr (!kWhole) w[v] = V::KeepLanes(w[v], s_.lo[r] - at, s_.hi[r] - at, V::Zero());
      most = V::Max(most, w[v]);
    }
    const float max = V::ReduceMax(most);
    s_.w_scale[r] = max / kInt16Max + (max - max);
    const F inverse = V::Set1(max > kSmallest ? kInt16Max / max : 0.0f);
    for (int v = 0; v < kTileVecs; ++v) {
      V::StoreInt16(s_.w + r * kPositionTile + v * V::kLanes, V::Mul(w[v], inverse));
    }
  }

  void Values(const Part& part, const T* const* values, const T* const* ahead) {
    const int vecs = (value_dim_ + 2 * V::kLanes - 1) / (2 * V::kLanes) * 2;
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
  const int latent_dim_;  // above 0: values are made of keys
  const int value_dim_;
  const int group_;
  const int stride_;       // elements of a q, out and total row: head_dim padded
  const float max_query_;  // of an int16 query
  int kv_head_ = 0;
  int32_t shared_positions_ = 0;
  int rows_ = 0;
  int32_t first_row_position_ = 0, end_ = 0;
  bool whole_tile_ = false;  // every row sees all of the running tile
  Part parts_[kMaxTileRows];
  int num_parts_ = 0;
  Following following_;
};

// Where item `next` begins to read; nowhere if there is no such item.
template <class V, class Kv>
typename Unit<V, Kv>::Following FindFollowing(const AttentionArgs& args, const AttentionPlan& plan,
                                              int32_t next) {
  if (next < 0) return {};
  const ItemPlace place = FindItem(args, plan, next);
  const SequenceRows& sequence = args.step.sequences[plan.members[place.bundle->first_member]];
  const int32_t end = sequence.first_position + sequence.num_rows;
  int32_t tile = place.split * kPositionSplit;
  if (args.window > 0) {
    const int group = args.heads / args.kv.geometry.kv_heads;
    const int32_t row = sequence.first_position + place.chunk * kMaxTileRows / group;
    const int32_t first = (row - args.window + 1) / kPositionTile * kPositionTile;
    if (first > tile) tile = first;
  }
  if (tile >= end) return {};
  return {&sequence, place.kv_head, tile, end};
}

template <class V, class Kv>
void RunItem(const AttentionArgs& args, const KvLayout<V, Kv>& layout, const AttentionPlan& plan,
             int32_t item, int32_t next) {
  const ItemPlace place = FindItem(args, plan, item);
  const Bundle& bundle = *place.bundle;
  TileScratch<V> scratch;
  Unit<V, Kv> unit(args, layout, scratch);
  unit.Start(place.kv_head, bundle.shared_positions);
  unit.SetFollowing(FindFollowing<V, Kv>(args, plan, next));
  const int group = args.heads / args.kv.geometry.kv_heads;
  for (int i = 0; i < bundle.members; ++i) {
    const SequenceRows& sequence = args.step.sequences[plan.members[bundle.first_member + i]];
    const int first = place.chunk * kMaxTileRows;  // 0 where there are several members
    const int left = sequence.num_rows * group - first;
    unit.Add(sequence, first, left < kMaxTileRows ? left : kMaxTileRows);
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
      const auto item = static_cast<int32_t>(plan.items - 1 - i);
      RunItem<V, Kv>(args, layout, plan, item, item - pool.size());
    });
  });
}

}  // namespace
}  // namespace vivace::kernels
