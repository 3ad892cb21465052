// The attention half of a layer in scalar fp32: the oracle. Kept as plain as the definition:
// scores, softmax, weighted sum, one (row, head) at a time over the whole context.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention.h"
#include "kernels/latent.h"
#include "kernels/qkv_rows_impl.h"
#include "kernels/reference/linear_reference.h"

namespace vivace::kernels::reference {
namespace {

// Block: [kv_heads][K or V][block_size][head_dim] floats; of latents there is no V.
struct Layout {
  explicit Layout(const KvGeometry& g)
      : head_dim(g.head_dim),
        plane(int64_t{g.block_size} * g.head_dim),
        to_value(g.latent_dim > 0 ? 0 : plane),
        head(plane + to_value),
        block(head * g.kv_heads) {}

  float* Key(std::byte* data, int32_t block_id, int32_t kv_head, int32_t offset) const {
    return reinterpret_cast<float*>(data) + block_id * block + kv_head * head +
           int64_t{offset} * head_dim;
  }
  float* Value(std::byte* data, int32_t block_id, int32_t kv_head, int32_t offset) const {
    return Key(data, block_id, kv_head, offset) + to_value;
  }

  int64_t head_dim, plane, to_value, head, block;
};

// The scores of one worker: a context of floats.
size_t ScoreBytes(const WorkspaceShape& shape) {
  return static_cast<size_t>(shape.max_context) * sizeof(float) *
         static_cast<size_t>(shape.threads);
}

void AttendHead(const AttentionArgs& args, const Layout& layout, int32_t row, int32_t head,
                float* scores) {
  const KvGeometry& g = args.kv.geometry;
  const RowPlace place = Locate(args.step.sequences, row);
  const int32_t kv_head = head / (args.heads / g.kv_heads);
  const int64_t at = int64_t{row} * args.heads + head;
  const float* q = args.q + at * g.head_dim;
  float* out = args.out + at * g.value_dim();
  const int32_t begin = args.window > 0 ? std::max(0, place.position + 1 - args.window) : 0;
  float best = args.sinks ? args.sinks[head] : -std::numeric_limits<float>::infinity();
  for (int32_t t = begin; t <= place.position; ++t) {
    const float* k = layout.Key(args.kv.data, place.sequence->blocks[t / g.block_size].value,
                                kv_head, t % g.block_size);
    float score = 0;
    for (int32_t d = 0; d < g.head_dim; ++d) score += q[d] * k[d];
    score *= args.scale;
    if (args.softcap > 0) score = args.softcap * std::tanh(score / args.softcap);
    scores[t - begin] = score;
    best = std::max(best, score);
  }
  float sum = args.sinks ? std::exp(args.sinks[head] - best) : 0;
  std::fill(out, out + g.value_dim(), 0.0f);
  for (int32_t t = begin; t <= place.position; ++t) {
    const float weight = std::exp(scores[t - begin] - best);
    const float* v = layout.Value(args.kv.data, place.sequence->blocks[t / g.block_size].value,
                                  kv_head, t % g.block_size);
    sum += weight;
    for (int32_t d = 0; d < g.value_dim(); ++d) out[d] += weight * v[d];
  }
  for (int32_t d = 0; d < g.value_dim(); ++d) out[d] /= sum;
}

void StoreKeys(const KvCacheView& kv, const StepRows& step, const float* keys, int64_t stride,
               ThreadPool& pool) {
  const Layout layout(kv.geometry);
  ForStepRows(
      step.num_rows,
      [&](int32_t row) {
        const CachePlace place = PlaceOf(step, kv.geometry, row);
        std::copy_n(keys + row * stride, layout.head_dim,
                    layout.Key(kv.data, place.block, 0, place.offset));
      },
      pool);
}

}  // namespace

size_t KvBlockBytes(const KvGeometry& g) {
  const bool sound = g.dtype == KvDType::kF32 && g.head_dim > 0 && g.head_dim % 2 == 0 &&
                     g.latent_dim >= 0 && g.latent_dim <= g.head_dim && g.kv_heads > 0 &&
                     g.block_size > 0;
  return sound ? static_cast<size_t>(Layout(g).block) * sizeof(float) : 0;
}

size_t AttentionWorkspaceBytes(const WorkspaceShape& shape) {
  const size_t norm_qkv =
      ProjectRowsBytes(kLinearOps, shape.max_rows, shape.hidden, shape.qkv_rows, shape.threads);
  return std::max(norm_qkv, ScoreBytes(shape));
}

void NormQkv(const NormQkvArgs& args, Workspace workspace, ThreadPool& pool) {
  const ProjectedRows raw =
      ProjectRows(kLinearOps, args.x, args.step.num_rows, args.norm, *args.qkv, workspace, pool);
  const Layout layout(args.kv.geometry);
  FinishQkvRows<ScalarHeads>(
      args, raw,
      [&](int32_t block, int32_t head, int32_t offset, const float* k, const float* v) {
        std::copy(k, k + layout.head_dim, layout.Key(args.kv.data, block, head, offset));
        std::copy(v, v + layout.head_dim, layout.Value(args.kv.data, block, head, offset));
      },
      pool);
}

void LatentQkv(const LatentQkvArgs& args, Workspace workspace, ThreadPool& pool) {
  kernels::LatentQkv(kLinearOps, StoreKeys, args, workspace, pool);
}

void Attention(const AttentionArgs& args, Workspace workspace, ThreadPool& pool) {
  const Layout layout(args.kv.geometry);
  const int64_t items = int64_t{args.step.num_rows} * args.heads;
  const auto per_worker = static_cast<int64_t>(workspace.bytes / sizeof(float)) / pool.size();
  pool.Run([&](int worker) {
    float* scores = reinterpret_cast<float*>(workspace.data) + worker * per_worker;
    for (int64_t i = worker; i < items; i += pool.size()) {
      AttendHead(args, layout, static_cast<int32_t>(i / args.heads),
                 static_cast<int32_t>(i % args.heads), scores);
    }
  });
}

}  // namespace vivace::kernels::reference
