// A step's rows through a norm and a group of products: where QKV and recurrent layers begin.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/block_ops.h"
#include "kernels/linear.h"

namespace vivace::kernels {

// Rows as the products leave them, in the workspace.
struct ProjectedRows {
  float* data;     // [rows, outputs]
  int64_t stride;  // outputs of the whole group
};

// Of the workspace, for up to `rows` rows and groups of up to `outputs`.
size_t ProjectRowsBytes(const LinearOps& linear, int32_t rows, int32_t hidden, int64_t outputs,
                        int threads);

// W norm(x) (+ bias) of x [rows, cols of W]. What ProjectRowsBytes says is in use until the next
// call; the rows are at its beginning.
ProjectedRows ProjectRows(const LinearOps& linear, const float* x, int32_t rows, const Norm& norm,
                          const MatrixGroup& group, Workspace workspace, ThreadPool& pool);

}  // namespace vivace::kernels
