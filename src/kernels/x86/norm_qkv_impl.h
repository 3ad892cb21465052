// norm_qkv of the x86 tiers: RMSNorm and QKV by the tier's linear ops, then rotation and the write
// into the paged cache. Included by attention_<tier>.cc only; internal linkage.
#pragma once

#include "kernels/carve.h"
#include "kernels/latent.h"
#include "kernels/linear.h"
#include "kernels/qkv_rows_impl.h"
#include "kernels/x86/attention_impl.h"
#include "kernels/x86/qkv_heads_impl.h"

namespace vivace::kernels {
namespace {

// The workspace of norm_qkv: the raw outputs, then rows whose norm is a pass of its own, then the
// linear ops' input.
template <const LinearOps& kLinear>
struct QkvScratch {
  QkvScratch(std::byte* data, int32_t rows, int32_t hidden, int64_t outputs, int threads)
      : carve(data),
        raw(carve.Take<float>(rows * outputs)),
        normed(carve.Take<float>(int64_t{rows} * hidden)),
        input(carve.Take<std::byte>(
            static_cast<int64_t>(kLinear.input_bytes(rows, hidden, threads)))) {}

  Carve carve;
  float* raw;
  float* normed;
  std::byte* input;
};

template <const LinearOps& kLinear>
size_t AttentionWorkspaceBytesImpl(const WorkspaceShape& shape) {
  const QkvScratch<kLinear> scratch(nullptr, shape.max_rows, shape.hidden, shape.qkv_rows,
                                    shape.threads);
  const size_t norm_qkv = scratch.carve.bytes();
  const size_t attention = AttentionListBytes(shape.max_sequences, shape.threads) +
                           kPartialBytesPerThread * static_cast<size_t>(shape.threads);
  return Align64(norm_qkv > attention ? norm_qkv : attention);
}

template <class V, class Kv, const LinearOps& kLinear>
void NormQkvOf(const NormQkvArgs& args, Workspace workspace, ThreadPool& pool) {
  const int32_t rows = args.step.num_rows;
  int64_t outputs = 0;
  for (int i = 0; i < args.qkv->num_parts; ++i) outputs += args.qkv->parts[i].rows;
  const QkvScratch<kLinear> scratch(workspace.data, rows, args.hidden, outputs, pool.size());
  const InputRows input =
      WithNorm({.x = args.x, .stride = args.hidden, .rows = rows, .cols = args.hidden}, args.norm,
               scratch.normed, pool);
  const PreparedInput prepared = kLinear.prepare(input, *args.qkv, scratch.input, pool);
  kLinear.multiply(*args.qkv, prepared, Epilogue::kStore, scratch.raw, outputs, pool);
  const KvLayout<V, Kv> layout(args.kv.geometry);
  const int32_t dim = args.kv.geometry.head_dim;
  FinishQkvRows<VectorHeads<V>>(
      args, scratch.raw, outputs,
      [&](int32_t block, int32_t head, int32_t offset, const float* k, const float* v) {
        const int32_t position = offset % kGroup;
        Kv::StoreKey(layout.Key(args.kv.data, block, head, offset), position, k, dim);
        Kv::StoreValue(layout.Value(args.kv.data, block, head, offset), position, v, dim,
                       layout.value_dim);
      },
      pool);
}

template <class V, const LinearOps& kLinear>
void NormQkvImpl(const NormQkvArgs& args, Workspace workspace, ThreadPool& pool) {
  WithElements<V>(args.kv.geometry.dtype,
                  [&]<class Kv>() { NormQkvOf<V, Kv, kLinear>(args, workspace, pool); });
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
