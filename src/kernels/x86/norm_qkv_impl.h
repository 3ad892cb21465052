// norm_qkv of the x86 tiers: RMSNorm and QKV by the tier's linear ops, then rotation and the write
// into the paged cache. Included by attention_<tier>.cc only; internal linkage.
#pragma once

#include "kernels/linear.h"
#include "kernels/qkv_rows_impl.h"
#include "kernels/x86/attention_impl.h"
#include "kernels/x86/qkv_heads_impl.h"

namespace vivace::kernels {
namespace {

// The workspace of norm_qkv: the linear ops' input, then the raw outputs.
template <const LinearOps& kLinear>
size_t RawQkvOffset(int32_t rows, int32_t hidden, int threads) {
  return Align64(kLinear.input_bytes(rows, hidden, threads));
}

template <const LinearOps& kLinear>
size_t AttentionWorkspaceBytesImpl(const WorkspaceShape& shape) {
  const size_t raw =
      static_cast<size_t>(shape.max_rows) * static_cast<size_t>(shape.qkv_rows) * sizeof(float);
  const size_t norm_qkv = RawQkvOffset<kLinear>(shape.max_rows, shape.hidden, shape.threads) + raw;
  const size_t attention = AttentionListBytes(shape.max_sequences, shape.threads) +
                           kPartialBytesPerThread * static_cast<size_t>(shape.threads);
  return Align64(norm_qkv > attention ? norm_qkv : attention);
}

template <class V, class Kv, const LinearOps& kLinear>
void NormQkvOf(const NormQkvArgs& args, Workspace workspace, ThreadPool& pool) {
  const InputRows input{.x = args.x,
                        .stride = args.hidden,
                        .rows = args.step.num_rows,
                        .cols = args.hidden,
                        .norm = {args.norm_weight, args.norm_eps}};
  int64_t outputs = 0;
  for (int i = 0; i < args.qkv->num_parts; ++i) outputs += args.qkv->parts[i].rows;
  auto* raw = reinterpret_cast<float*>(workspace.data +
                                       RawQkvOffset<kLinear>(input.rows, input.cols, pool.size()));
  const PreparedInput prepared = kLinear.prepare(input, *args.qkv, workspace.data, pool);
  kLinear.multiply(*args.qkv, prepared, Epilogue::kStore, raw, outputs, pool);
  const KvLayout<V, Kv> layout(args.kv.geometry);
  const int32_t dim = args.kv.geometry.head_dim;
  FinishQkvRows<VectorHeads<V>>(
      args, raw, outputs,
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

}  // namespace
}  // namespace vivace::kernels
