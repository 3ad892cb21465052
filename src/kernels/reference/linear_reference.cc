#include "kernels/reference/linear_reference.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "quant/dequantize.h"

namespace vivace::kernels::reference {
namespace {

constexpr int32_t kRowsPerItem = 16;

size_t Align(size_t bytes) { return (bytes + 63) / 64 * 64; }

size_t RowBytesOf(DType dtype, int32_t cols) {
  return static_cast<size_t>(RowBytes(Info(dtype), cols));
}

bool CanPack(DType dtype, int32_t rows, int32_t cols) {
  return rows > 0 && cols > 0 && cols % Info(dtype).block_elems == 0;
}

size_t PackedBytes(DType dtype, int32_t rows, int32_t cols) {
  return Align(static_cast<size_t>(rows) * RowBytesOf(dtype, cols));
}

void Pack(const WeightView& source, int32_t first_tile, int32_t last_tile, std::byte* out) {
  const size_t row_bytes = RowBytesOf(source.dtype, source.cols);
  const size_t first = static_cast<size_t>(first_tile) * kTileRows;
  const size_t last =
      std::min(static_cast<size_t>(last_tile) * kTileRows, static_cast<size_t>(source.rows));
  std::memcpy(out + first * row_bytes, source.data + first * row_bytes, (last - first) * row_bytes);
}

void UnpackRow(const PackedMatrix& matrix, int32_t row, float* out) {
  const size_t offset = static_cast<size_t>(row) * RowBytesOf(matrix.dtype, matrix.cols);
  quant::DequantizeRow(matrix.dtype, matrix.data + offset, matrix.cols, out);
}

// The greatest output of a row so far and the first id that has it. A NaN or +infinity counts as
// {+infinity, -1}, which is better than all else.
struct Best {
  float value = -std::numeric_limits<float>::infinity();
  int32_t id = -1;

  bool BetterThan(const Best& other) const {
    return value > other.value || (value == other.value && id < other.id);
  }
};

Best AsBest(float output, int32_t id) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return output < kInfinity ? Best{output, id} : Best{kInfinity, -1};
}

// A thread's scratch: one expanded weight row (two for pairs), and for `argmax` one output of every
// row and the best of every row.
struct Scratch {
  float* weights;
  float* outputs;
  Best* best;
};

size_t RowsBytes(int32_t rows, int32_t cols) {
  return Align(static_cast<size_t>(rows) * static_cast<size_t>(cols) * sizeof(float));
}
size_t BestBytes(int32_t rows) { return Align(static_cast<size_t>(rows) * sizeof(Best)); }
size_t ScratchBytes(int32_t rows, int32_t cols) {
  return RowsBytes(2, cols) + RowsBytes(rows, 1) + BestBytes(rows);
}

Scratch ScratchOf(const PreparedInput& input, int worker) {
  std::byte* p = input.scratch + static_cast<size_t>(worker) * ScratchBytes(input.rows, input.cols);
  auto* const weights = reinterpret_cast<float*>(p);
  auto* const outputs = reinterpret_cast<float*>(p += RowsBytes(2, input.cols));
  return {weights, outputs, reinterpret_cast<Best*>(p + RowsBytes(input.rows, 1))};
}

// The buffer: the rows as fp32, then the threads' scratch.
size_t InputBytes(int32_t rows, int32_t cols, int threads) {
  return RowsBytes(rows, cols) + static_cast<size_t>(threads) * ScratchBytes(rows, cols);
}

void Normalise(const float* x, int32_t cols, const RmsNorm& norm, float* out) {
  double sum = 0;
  for (int32_t k = 0; k < cols; ++k) sum += static_cast<double>(x[k]) * static_cast<double>(x[k]);
  const auto mean = static_cast<float>(sum / cols);
  const float inverse_rms = 1.0f / std::sqrt(mean + norm.eps);
  for (int32_t k = 0; k < cols; ++k) out[k] = x[k] * inverse_rms * norm.weight[k];
}

PreparedInput Prepare(const InputRows& input, const MatrixGroup&, std::byte* buffer,
                      ThreadPool& pool) {
  auto* const rows = reinterpret_cast<float*>(buffer);
  pool.ForEach(input.rows, [&](int64_t i) {
    const float* x = input.x + (input.index ? input.index[i] : i) * input.stride;
    float* const out = rows + i * input.cols;
    if (input.norm.weight) {
      Normalise(x, input.cols, input.norm, out);
    } else {
      std::memcpy(out, x, static_cast<size_t>(input.cols) * sizeof(float));
    }
  });
  return {.rows = input.rows,
          .cols = input.cols,
          .fp32 = buffer,
          .scratch = buffer + RowsBytes(input.rows, input.cols)};
}

// Eight partial sums in a fixed order; the compiler may use any vector width that divides them.
float Dot(const float* a, const float* b, int32_t cols) {
  constexpr int kLanes = 8;
  float lanes[kLanes] = {};
  int32_t k = 0;
  for (; k + kLanes <= cols; k += kLanes) {
    for (int j = 0; j < kLanes; ++j) lanes[j] += a[k + j] * b[k + j];
  }
  for (int j = 0; k < cols; ++k, ++j) lanes[j] += a[k] * b[k];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

float Silu(float x) { return x / (1.0f + std::exp(-x)); }

float GeluTanh(float x) {
  constexpr float kSqrt2OverPi = 0.7978845608f;
  return 0.5f * x * (1.0f + std::tanh(kSqrt2OverPi * (x + 0.044715f * x * x * x)));
}

// Output `n` of every row i at out[i * out_stride]; `weights` is space for two expanded weight
// rows.
void Output(const MatrixGroup& group, const PreparedInput& input, Epilogue epilogue, int64_t n,
            float* weights, float* out, int64_t out_stride) {
  const auto* x = reinterpret_cast<const float*>(input.fp32);
  const int32_t cols = input.cols;
  const auto bias = [&](int64_t column) { return group.bias ? group.bias[column] : 0.0f; };
  if (epilogue == Epilogue::kStore || epilogue == Epilogue::kAdd) {
    int p = 0;
    int64_t row = n;
    while (row >= group.parts[p].rows) row -= group.parts[p++].rows;
    UnpackRow(group.parts[p], static_cast<int32_t>(row), weights);
    for (int64_t i = 0; i < input.rows; ++i) {
      const float y = Dot(weights, x + i * cols, cols) + bias(n);
      float& result = out[i * out_stride];
      result = epilogue == Epilogue::kAdd ? result + y : y;
    }
    return;
  }
  UnpackRow(group.parts[0], static_cast<int32_t>(n), weights);
  UnpackRow(group.parts[1], static_cast<int32_t>(n), weights + cols);
  for (int64_t i = 0; i < input.rows; ++i) {
    const float gate = Dot(weights, x + i * cols, cols) + bias(n);
    const float up = Dot(weights + cols, x + i * cols, cols) + bias(group.parts[0].rows + n);
    out[i * out_stride] = (epilogue == Epilogue::kSiluMul ? Silu(gate) : GeluTanh(gate)) * up;
  }
}

// Calls body(worker, n) for every output, in runs that whichever worker is free takes.
template <typename Body>
void ForEachOutput(int64_t outputs, ThreadPool& pool, Body body) {
  std::atomic<int64_t> next{0};
  pool.Run([&](int worker) {
    for (int64_t first; (first = next.fetch_add(kRowsPerItem)) < outputs;) {
      for (int64_t n = first; n < std::min(first + kRowsPerItem, outputs); ++n) body(worker, n);
    }
  });
}

void Multiply(const MatrixGroup& group, const PreparedInput& input, Epilogue epilogue, float* out,
              int64_t out_stride, ThreadPool& pool) {
  if (input.rows == 0) return;
  const bool pairs = epilogue == Epilogue::kSiluMul || epilogue == Epilogue::kGeluTanhMul;
  VIVACE_DCHECK(!pairs || (group.num_parts == 2 && group.parts[0].rows == group.parts[1].rows));
  int64_t outputs = 0;
  for (int p = 0; p < (pairs ? 1 : group.num_parts); ++p) outputs += group.parts[p].rows;
  ForEachOutput(outputs, pool, [&](int worker, int64_t n) {
    Output(group, input, epilogue, n, ScratchOf(input, worker).weights, out + n, out_stride);
  });
}

void MultiplyAll(std::span<const Product> products, Epilogue epilogue, ThreadPool& pool) {
  for (const Product& p : products) {
    Multiply(*p.group, p.input, epilogue, p.out, p.out_stride, pool);
  }
}

void Argmax(const MatrixGroup& group, const PreparedInput& input, TokenId* best, ThreadPool& pool) {
  if (input.rows == 0) return;
  for (int worker = 0; worker < pool.size(); ++worker) {
    std::fill_n(ScratchOf(input, worker).best, input.rows, Best{});
  }
  ForEachOutput(group.parts[0].rows, pool, [&](int worker, int64_t n) {
    const Scratch scratch = ScratchOf(input, worker);
    Output(group, input, Epilogue::kStore, n, scratch.weights, scratch.outputs, 1);
    for (int32_t i = 0; i < input.rows; ++i) {
      const Best candidate = AsBest(scratch.outputs[i], static_cast<int32_t>(n));
      if (candidate.BetterThan(scratch.best[i])) scratch.best[i] = candidate;
    }
  });
  for (int32_t i = 0; i < input.rows; ++i) {
    Best all;
    for (int worker = 0; worker < pool.size(); ++worker) {
      const Best& candidate = ScratchOf(input, worker).best[i];
      if (candidate.BetterThan(all)) all = candidate;
    }
    best[i] = all.id;
  }
}

void Embed(const EmbedArgs& args, ThreadPool& pool) {
  const int32_t cols = args.table->cols;
  pool.ForEach(static_cast<int64_t>(args.tokens.size()), [&](int64_t i) {
    float* const out = args.out + i * cols;
    UnpackRow(*args.table, args.tokens[static_cast<size_t>(i)], out);
    for (int32_t k = 0; k < cols; ++k) out[k] *= args.scale;
  });
}

}  // namespace

constinit const LinearOps kLinearOps = {
    .isa = Isa::kReference,
    .pack_version = 1,
    .can_pack = CanPack,
    .packed_bytes = PackedBytes,
    .pack = Pack,
    .input_bytes = InputBytes,
    .prepare = Prepare,
    .multiply = Multiply,
    .multiply_all = MultiplyAll,
    .argmax = Argmax,
    .embed = Embed,
};

}  // namespace vivace::kernels::reference
