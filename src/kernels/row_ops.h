// Passes over rows between the products: norms of their own, adds to the residual, activations that
// no product ends in, soft caps. One source for all tiers: next to the products they cost little,
// and so all tiers round alike. A row's result depends on the row alone. No op allocates.
// Thread: called by the engine thread, they run on `pool`.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/block_ops.h"

namespace vivace::kernels {

// out = norm(x) of one row; `out` may be x. `norm` is present.
void NormRow(const Norm& norm, const float* x, int32_t cols, float* out);

// Of rows at x + (index ? index[i] : i) * stride; `out` is [rows, cols], and may be x without
// index.
void NormRows(const Norm& norm, const float* x, int64_t stride, const int32_t* index, int32_t rows,
              int32_t cols, float* out, ThreadPool& pool);

void AddRows(const AddRowsArgs& args, ThreadPool& pool);

// out [rows, ffn] = act(gate) * up of rows {gate [ffn], up [ffn]}, or act(up) of rows of up alone.
void Activate(const ActivationSpec& activation, bool gated, const float* raw, int32_t rows,
              int32_t ffn, float* out, ThreadPool& pool);

// x = cap * tanh(x / cap) of the first `cols` of each row.
void SoftcapRows(float cap, int32_t rows, int32_t cols, int64_t stride, float* x, ThreadPool& pool);

// y *= sigmoid(gates), value by value.
void GateRows(const float* gates, int32_t rows, int32_t cols, float* y, ThreadPool& pool);

// 1 / (1 + e^-x)
float Sigmoid(float x);

}  // namespace vivace::kernels
