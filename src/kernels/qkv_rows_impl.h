// From the raw outputs of QKV products to rotated queries and cached keys and values, row by row.
// The same for every tier but for how a head is normed and rotated (`Heads`) and how the cache is
// laid out (`Store`). Included by the tiers'
// attention files, and by latent.cc and moe.cc for what they do to each row of a step; internal
// linkage, so that no tier can end up with another's instructions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/block_ops.h"
#include "kernels/project_rows.h"
#include "kernels/row_ops.h"

namespace vivace::kernels {
namespace {

constexpr int32_t kRowsPerItem = 8;  // handed to a worker at once; fewer rows are done in place

struct RowPlace {
  const SequenceRows* sequence;
  int32_t position;
};

// The sequence that `row` of the step belongs to; sequences tile the rows in order.
[[maybe_unused]] RowPlace Locate(std::span<const SequenceRows> sequences, int32_t row) {
  size_t low = 0, high = sequences.size() - 1;
  while (low < high) {
    const size_t middle = (low + high + 1) / 2;
    if (sequences[middle].first_row <= row) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const SequenceRows& found = sequences[low];
  return {&found, found.first_position + row - found.first_row};
}

// Rotates pairs [first, dims / 2) of one head; `out` may be `x`.
[[maybe_unused]] void RotatePairs(const RopeRows& rope, const float* cos, const float* sin,
                                  int32_t first, const float* x, float* out) {
  const int32_t half = rope.dims / 2;
  const int32_t step = rope.interleaved ? 2 : 1;
  const int32_t apart = rope.interleaved ? 1 : half;
  for (int32_t i = first; i < half; ++i) {
    const float a = x[i * step], b = x[i * step + apart];
    out[i * step] = a * cos[i] - b * sin[i];
    out[i * step + apart] = a * sin[i] + b * cos[i];
  }
}

// One head in plain loops.
struct [[maybe_unused]] ScalarHeads {
  // RMSNorm in place.
  static void Norm(const float* weight, float eps, int32_t head_dim, float* x) {
    float sum = 0;
    for (int32_t d = 0; d < head_dim; ++d) sum += x[d] * x[d];
    const float scale = 1.0f / std::sqrt(sum / static_cast<float>(head_dim) + eps);
    for (int32_t d = 0; d < head_dim; ++d) x[d] = x[d] * scale * weight[d];
  }
  // The first rope.dims of a head, rotated; `out` may be `x`.
  static void Rotate(const RopeRows& rope, int32_t row, const float* x, float* out) {
    const int64_t at = static_cast<int64_t>(row) * (rope.dims / 2);
    RotatePairs(rope, rope.cos + at, rope.sin + at, 0, x, out);
  }
};

// Norms what `heads` heads hold, in place, if there is a norm: each alone or all together.
template <class Heads>
void NormHeads(const Norm& norm, bool whole, int32_t heads, int32_t dim, float* x) {
  if (!norm.present()) return;
  if (whole) return NormRow(norm, x, heads * dim, x);
  for (int32_t head = 0; head < heads; ++head) {
    if (norm.kind == NormKind::kRms) {
      Heads::Norm(norm.weight, norm.eps, dim, x + head * dim);
    } else {
      NormRow(norm, x + head * dim, dim, x + head * dim);
    }
  }
}

// Where a row's key and value go.
struct CachePlace {
  int32_t block, offset;
};

[[maybe_unused]] CachePlace PlaceOf(const StepRows& step, const KvGeometry& geometry, int32_t row) {
  const RowPlace place = Locate(step.sequences, row);
  return {place.sequence->blocks[place.position / geometry.block_size].value,
          place.position % geometry.block_size};
}

// One row: `raw` holds q, k, v of all heads and is used up. store(block, head, offset, k, v) caches
// one kv head's key and value.
template <class Heads, class Store>
void FinishQkvRow(const NormQkvArgs& args, int32_t row, float* raw, const Store& store) {
  const KvGeometry& geometry = args.kv.geometry;
  const int32_t dim = geometry.head_dim;
  const int64_t q_size = static_cast<int64_t>(args.heads) * dim;
  NormHeads<Heads>(args.q_norm, args.whole_norms, args.heads, dim, raw);
  for (int32_t head = 0; head < args.heads; ++head) {
    const float* q = raw + head * dim;
    float* out = args.q + row * q_size + head * dim;
    Heads::Rotate(args.rope, row, q, out);
    std::copy(q + args.rope.dims, q + dim, out + args.rope.dims);
  }
  const CachePlace place = PlaceOf(args.step, geometry, row);
  float* keys = raw + q_size;
  float* values = keys + static_cast<int64_t>(geometry.kv_heads) * dim;
  NormHeads<Heads>(args.k_norm, args.whole_norms, geometry.kv_heads, dim, keys);
  for (int32_t head = 0; head < geometry.kv_heads; ++head) {
    float* k = keys + head * dim;
    Heads::Rotate(args.rope, row, k, k);
    store(place.block, head, place.offset, k, values + head * dim);
  }
}

// body(row) for all rows of a step.
template <class Body>
void ForStepRows(int32_t rows, const Body& body, ThreadPool& pool) {
  const auto run = [&](int64_t item) {
    const auto first = static_cast<int32_t>(item) * kRowsPerItem;
    const int32_t last = std::min(first + kRowsPerItem, rows);
    for (int32_t row = first; row < last; ++row) body(row);
  };
  const int64_t items = (rows + kRowsPerItem - 1) / kRowsPerItem;
  if (items == 1) return run(0);
  pool.ForEach(items, run);
}

// All rows of the step.
template <class Heads, class Store>
void FinishQkvRows(const NormQkvArgs& args, const ProjectedRows& raw, const Store& store,
                   ThreadPool& pool) {
  ForStepRows(
      args.step.num_rows,
      [&](int32_t row) { FinishQkvRow<Heads>(args, row, raw.data + row * raw.stride, store); },
      pool);
}

}  // namespace
}  // namespace vivace::kernels
