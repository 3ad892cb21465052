// norm_qkv of the x86 tiers: norm and QKV by the tier's linear ops, then rotation and the write
// into the paged cache. Included by attention_<tier>.cc only; internal linkage.
#pragma once

#include "kernels/latent.h"
#include "kernels/linear.h"
#include "kernels/qkv_rows_impl.h"
#include "kernels/x86/attention_impl.h"
#include "kernels/x86/qkv_heads_impl.h"

namespace vivace::kernels {
namespace {

[[maybe_unused]] size_t AttentionWorkspaceBytesImpl(const LinearOps& linear,
                                                    const WorkspaceShape& shape) {
  const size_t norm_qkv =
      ProjectRowsBytes(linear, shape.max_rows, shape.hidden, shape.qkv_rows, shape.threads);
  const size_t attention = AttentionListBytes(shape.max_sequences, shape.threads) +
                           kPartialBytesPerThread * static_cast<size_t>(shape.threads);
  return Align64(norm_qkv > attention ? norm_qkv : attention);
}

template <class V>
void NormQkvImpl(const LinearOps& linear, const NormQkvArgs& args, Workspace workspace,
                 ThreadPool& pool) {
  const ProjectedRows raw =
      ProjectRows(linear, args.x, args.step.num_rows, args.norm, *args.qkv, workspace, pool);
  WithElements<V>(args.kv.geometry.dtype, [&]<class Kv>() {
    const KvLayout<V, Kv> layout(args.kv.geometry);
    const int32_t dim = args.kv.geometry.head_dim;
    FinishQkvRows<VectorHeads<V>>(
        args, raw,
        [&](int32_t block, int32_t head, int32_t offset, const float* k, const float* v) {
          const int32_t position = offset % kGroup;
          Kv::StoreKey(layout.Key(args.kv.data, block, head, offset), position, k, dim);
          Kv::StoreValue(layout.Value(args.kv.data, block, head, offset), position, v, dim,
                         layout.value_dim);
        },
        pool);
  });
}

// A cache of latents: keys only.
template <class V>
void StoreKeys(const KvCacheView& kv, const StepRows& step, const float* keys, int64_t stride,
               ThreadPool& pool) {
  WithElements<V>(kv.geometry.dtype, [&]<class Kv>() {
    const KvLayout<V, Kv> layout(kv.geometry);
    ForStepRows(
        step.num_rows,
        [&](int32_t row) {
          const CachePlace place = PlaceOf(step, kv.geometry, row);
          Kv::StoreKey(layout.Key(kv.data, place.block, 0, place.offset), place.offset % kGroup,
                       keys + row * stride, kv.geometry.head_dim);
        },
        pool);
  });
}

}  // namespace
}  // namespace vivace::kernels
