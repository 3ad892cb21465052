#include "kernels/project_rows.h"

#include "base/check.h"
#include "kernels/carve.h"
#include "kernels/row_ops.h"

namespace vivace::kernels {
namespace {

struct Scratch {
  Scratch(const LinearOps& linear, std::byte* data, int32_t rows, int32_t hidden, int64_t outputs,
          int threads)
      : carve(data),
        projected(carve.Take<float>(rows * outputs)),
        normed(carve.Take<float>(int64_t{rows} * hidden)),
        input(carve.Take<std::byte>(
            static_cast<int64_t>(linear.input_bytes(rows, hidden, threads)))) {}

  Carve carve;
  float* projected;
  float* normed;     // rows whose norm is a pass of its own
  std::byte* input;  // of the products
};

}  // namespace

size_t ProjectRowsBytes(const LinearOps& linear, int32_t rows, int32_t hidden, int64_t outputs,
                        int threads) {
  return Scratch(linear, nullptr, rows, hidden, outputs, threads).carve.bytes();
}

ProjectedRows ProjectRows(const LinearOps& linear, const float* x, int32_t rows, const Norm& norm,
                          const MatrixGroup& group, Workspace workspace, ThreadPool& pool) {
  const int32_t hidden = group.parts[0].cols;
  int64_t outputs = 0;
  for (int i = 0; i < group.num_parts; ++i) outputs += group.parts[i].rows;
  const Scratch scratch(linear, workspace.data, rows, hidden, outputs, pool.size());
  VIVACE_DCHECK(scratch.carve.bytes() <= workspace.bytes);
  const InputRows input = WithNorm({.x = x, .stride = hidden, .rows = rows, .cols = hidden}, norm,
                                   scratch.normed, pool);
  const PreparedInput prepared = linear.prepare(input, group, scratch.input, pool);
  linear.multiply(group, prepared, Epilogue::kStore, scratch.projected, outputs, pool);
  return {scratch.projected, outputs};
}

}  // namespace vivace::kernels
