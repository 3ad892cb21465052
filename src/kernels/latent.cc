#include "kernels/latent.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/carve.h"
#include "kernels/qkv_rows_impl.h"
#include "kernels/row_ops.h"

namespace vivace::kernels {
namespace {

// Heads of one call. Their prepared rows lie side by side, so a step of many rows takes fewer.
int HeadsAtOnce(int32_t rows) {
  constexpr int32_t kRows = 512;
  return std::clamp(kRows / std::max(rows, 1), 1, kMaxProducts);
}

size_t HeadInputBytes(const LinearOps& linear, int32_t rows, int32_t cols, int threads) {
  return static_cast<size_t>(HeadsAtOnce(rows)) * linear.input_bytes(rows, cols, threads);
}

// The same for every count of rows up to `rows`: the heads at once may be more with fewer.
size_t MostHeadInputBytes(const LinearOps& linear, int32_t rows, int32_t cols, int threads) {
  size_t most = 0;
  for (int32_t n = 1; n <= rows; ++n) {
    most = std::max(most, HeadInputBytes(linear, n, cols, threads));
  }
  return most;
}

// out[:, h] = weights[h] of in[:, h], for each head h.
struct HeadProducts {
  const float* in;
  int32_t in_head, cols;  // floats from head to head, and those of them that are multiplied
  int64_t in_stride;
  float* out;
  int32_t out_head;
  int64_t out_stride;
  int32_t rows;

  void Run(const LinearOps& linear, std::span<const MatrixGroup> weights, std::byte* buffer,
           ThreadPool& pool) const {
    const auto at_once = static_cast<size_t>(HeadsAtOnce(rows));
    const size_t input_bytes = linear.input_bytes(rows, cols, pool.size());
    Product products[kMaxProducts];
    for (size_t first = 0; first < weights.size(); first += at_once) {
      const size_t count = std::min(at_once, weights.size() - first);
      for (size_t i = 0; i < count; ++i) {
        const size_t head = first + i;
        const InputRows input{.x = in + head * static_cast<size_t>(in_head),
                              .stride = in_stride,
                              .rows = rows,
                              .cols = cols};
        products[i] = {
            .group = &weights[head],
            .input = linear.prepare(input, weights[head], buffer + i * input_bytes, pool),
            .out = out + head * static_cast<size_t>(out_head),
            .out_stride = out_stride};
      }
      linear.multiply_all({products, count}, Epilogue::kStore, pool);
    }
  }
};

// What the arguments say about sizes.
struct Dims {
  explicit Dims(const LatentQkvArgs& args)
      : hidden(args.input->parts[0].cols),
        rank(args.kv.geometry.latent_dim),
        nope(args.k_b[0].parts[0].cols),
        rope(args.kv.geometry.head_dim - rank) {}

  int32_t head_in() const { return nope + rope; }
  int32_t head_out() const { return rank + rope; }

  int32_t hidden, rank, nope, rope;
};

// Norms and rotates the row's key in place, and rotates the rest of its queries into args.q.
void FinishRow(const LatentQkvArgs& args, const Dims& dims, int32_t row, float* key,
               const float* queries) {
  NormRow(args.kv_norm, key, dims.rank, key);
  ScalarHeads::Rotate(args.rope, row, key + dims.rank, key + dims.rank);
  const int64_t from = dims.head_in(), to = dims.head_out();
  const auto heads = static_cast<int64_t>(args.k_b.size());
  for (int64_t head = 0; head < heads; ++head) {
    ScalarHeads::Rotate(args.rope, row, queries + head * from + dims.nope,
                        args.q + (row * heads + head) * to + dims.rank);
  }
}

}  // namespace

size_t LatentWorkspaceBytes(const LinearOps& linear, const WorkspaceShape& shape) {
  if (shape.latent_outputs == 0) return 0;
  const int32_t cols = std::max(shape.hidden, shape.max_cols);
  Carve carve(nullptr);
  carve.Take<float>(int64_t{shape.max_rows} * shape.latent_outputs + 64);
  carve.Take<float>(int64_t{shape.max_rows} * shape.hidden);
  carve.Take<std::byte>(static_cast<int64_t>(
      std::max(linear.input_bytes(shape.max_rows, cols, shape.threads),
               MostHeadInputBytes(linear, shape.max_rows, shape.latent_cols, shape.threads))));
  return carve.bytes();
}

void LatentQkv(const LinearOps& linear, StoreLatents store, const LatentQkvArgs& args,
               Workspace workspace, ThreadPool& pool) {
  const int32_t rows = args.step.num_rows;
  if (rows == 0) return;
  const Dims dims(args);
  const auto heads = static_cast<int32_t>(args.k_b.size());
  const int32_t first_outputs = args.input->parts[0].rows;  // in front of the key
  const int64_t outputs = first_outputs + args.input->parts[1].rows;
  Carve carve(workspace.data);
  auto* raw = carve.Take<float>(rows * outputs);
  auto* queries = args.q_b ? carve.Take<float>(int64_t{rows} * heads * dims.head_in()) : raw;
  const int64_t queries_stride = args.q_b ? int64_t{heads} * dims.head_in() : outputs;
  auto* normed = carve.Take<float>(int64_t{rows} * dims.hidden);
  auto* buffer = carve.Take<std::byte>(0);

  const InputRows x =
      WithNorm({.x = args.x, .stride = dims.hidden, .rows = rows, .cols = dims.hidden}, args.norm,
               normed, pool);
  const PreparedInput input = linear.prepare(x, *args.input, buffer, pool);
  linear.multiply(*args.input, input, Epilogue::kStore, raw, outputs, pool);
  if (args.q_b != nullptr) {
    VIVACE_DCHECK(args.q_norm.kind == NormKind::kRms);
    const InputRows compressed{.x = raw,
                               .stride = outputs,
                               .rows = rows,
                               .cols = first_outputs,
                               .norm = {args.q_norm.weight, args.q_norm.eps}};
    const PreparedInput prepared = linear.prepare(compressed, *args.q_b, buffer, pool);
    linear.multiply(*args.q_b, prepared, Epilogue::kStore, queries, queries_stride, pool);
  }
  ForStepRows(
      rows,
      [&](int32_t row) {
        FinishRow(args, dims, row, raw + row * outputs + first_outputs,
                  queries + row * queries_stride);
      },
      pool);
  store(args.kv, args.step, raw + first_outputs, outputs, pool);
  HeadProducts{.in = queries,
               .in_head = dims.head_in(),
               .cols = dims.nope,
               .in_stride = queries_stride,
               .out = args.q,
               .out_head = dims.head_out(),
               .out_stride = int64_t{heads} * dims.head_out(),
               .rows = rows}
      .Run(linear, args.k_b, buffer, pool);
}

void LatentValues(const LinearOps& linear, const LatentValuesArgs& args, Workspace workspace,
                  ThreadPool& pool) {
  if (args.num_rows == 0) return;
  const auto heads = static_cast<int64_t>(args.v_b.size());
  const PackedMatrix& matrix = args.v_b[0].parts[0];
  HeadProducts{.in = args.y,
               .in_head = matrix.cols,
               .cols = matrix.cols,
               .in_stride = heads * matrix.cols,
               .out = args.out,
               .out_head = matrix.rows,
               .out_stride = heads * matrix.rows,
               .rows = args.num_rows}
      .Run(linear, args.v_b, workspace.data, pool);
}

}  // namespace vivace::kernels
