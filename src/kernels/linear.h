// The linear algebra under the block ops: packed weights times rows, per tier, with fused
// epilogues. Block ops are made of two steps: `prepare` turns fp32 rows (RMS-normalised on the way,
// if asked) into the tier's activation format, once per input; `multiply` runs a group of matrices
// over them.
//
//   reference   fp32 rows, weights dequantised row by row.
//   x86 tiers   int8 rows with one scale per 32 values for block-quantised weights; fp32 rows for
//               F32, F16 and BF16 weights, but bf16 rows for BF16 in avx512bf16. A group that mixes
//               kinds gets every form.
//
// Rule 1 holds for both steps: a row's values never depend on the other rows, the thread count or
// the order in which tiles are computed. A NaN or infinity in a row makes that row's outputs NaN.
// Neither step allocates. Thread: called by the engine thread, one at a time, they run on `pool`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "kernels/block_ops.h"
#include "tensor/dtype.h"

namespace vivace::kernels {

// y = x / sqrt(mean(x^2) + eps) * weight, before the conversion. `weight` null: rows as they are.
struct RmsNorm {
  const float* weight = nullptr;  // [cols]
  float eps = 0;
};

// Rows to prepare: row i starts at x + (index ? index[i] : i) * stride.
struct InputRows {
  const float* x = nullptr;
  int64_t stride = 0;  // floats between rows; usually cols
  int32_t rows = 0;
  int32_t cols = 0;
  const int32_t* index = nullptr;
  RmsNorm norm = {};
};

// What `prepare` left in the caller's buffer. Valid as long as the buffer is.
struct PreparedInput {
  int32_t rows = 0;
  int32_t cols = 0;
  const std::byte* int8 = nullptr;  // the tier's own layouts; null: no weight of the group needs it
  const std::byte* fp32 = nullptr;
  const std::byte* bf16 = nullptr;
  std::byte* scratch = nullptr;  // space of `multiply` and `argmax`
};

// What becomes of W y + bias.
enum class Epilogue : uint8_t {
  kStore,        // out  = Wy                          outputs of the parts concatenate
  kAdd,          // out += Wy
  kSiluMul,      // out  = silu(W0 y) * (W1 y)         two parts of equal rows
  kGeluTanhMul,  // out  = gelu_tanh(W0 y) * (W1 y)
};

// What products of gate and up end in, for an activation that is Fused() with them.
constexpr Epilogue MulEpilogue(Activation kind) {
  return kind == Activation::kSilu ? Epilogue::kSiluMul : Epilogue::kGeluTanhMul;
}

// One of several multiplications that share a call.
struct Product {
  const MatrixGroup* group = nullptr;
  PreparedInput input = {};
  float* out = nullptr;
  int64_t out_stride = 0;
};

inline constexpr int kMaxProducts = 32;  // of a call

struct LinearOps {
  Isa isa;

  // Changes with any change of a packed layout or of how values are rounded into it. All x86 tiers
  // share one.
  uint32_t pack_version;

  bool (*can_pack)(DType dtype, int32_t rows, int32_t cols);
  size_t (*packed_bytes)(DType dtype, int32_t rows, int32_t cols);
  void (*pack)(const WeightView& source, int32_t first_tile, int32_t last_tile, std::byte* out);

  // Size of the buffer `prepare` needs, for any group and any count of rows up to `rows`. Grows
  // with each argument. A multiple of 64.
  size_t (*input_bytes)(int32_t rows, int32_t cols, int threads);

  // Converts the rows for the matrices of `group`. `buffer` is 64-byte aligned. Zero rows are fine.
  PreparedInput (*prepare)(const InputRows& input, const MatrixGroup& group, std::byte* buffer,
                           ThreadPool& pool);

  // out[i * out_stride + n], 0 <= i < input.rows, n over the outputs of the group (one part's for
  // the Mul epilogues). `out` needs no alignment; nothing past the last output of a row is written.
  void (*multiply)(const MatrixGroup& group, const PreparedInput& input, Epilogue epilogue,
                   float* out, int64_t out_stride, ThreadPool& pool);

  // What `multiply` does for each of up to kMaxProducts, whose outputs do not overlap; their work
  // is dealt out together. All end in the same epilogue.
  void (*multiply_all)(std::span<const Product> products, Epilogue epilogue, ThreadPool& pool);

  // best[i] = the first output that is greatest in row i, of those `multiply` would store; -1 if an
  // output of the row is NaN or +infinity, or none is above -infinity. One part.
  void (*argmax)(const MatrixGroup& group, const PreparedInput& input, TokenId* best,
                 ThreadPool& pool);

  // out[i] = table[tokens[i]] * scale
  void (*embed)(const EmbedArgs& args, ThreadPool& pool);
};

// Whether there is a norm that `prepare` cannot do.
bool NeedsPass(const Norm& norm);

// `input` normalised on its way, by `prepare` or, where the norm needs it, by a pass of its own
// into `scratch` [rows, cols].
InputRows WithNorm(InputRows input, const Norm& norm, float* scratch, ThreadPool& pool);

// Bytes of the prepared inputs of a multiply_all over `rows` rows in all.
size_t ProductInputBytes(const LinearOps& linear, int32_t rows, int32_t cols, int threads);

// The tier's linear ops. Static storage. The machine must support the tier.
const LinearOps& GetLinearOps(Isa isa);

}  // namespace vivace::kernels
