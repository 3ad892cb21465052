// Recurrent layers over any tier's linear ops: what RecurrentArgs (block_ops.h) asks for, in passes
// over the step. The products; the convolution, in place, dealt out by sequence and channels; the
// recurrence, by sequence and head. What a tier has of its own are the last two.
//
// A head's tokens are taken one after the other in runs counted from the step's first, and a run's
// cut never shows: all sums over keys are of one token and begin anew with it (design rule 1).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/block_ops.h"
#include "kernels/linear.h"

namespace vivace::kernels {

inline constexpr int32_t kRunTokens = 16;  // at most: a run's keys stay in first-level cache
inline constexpr int32_t kMaxConvChannels = 128;

// Neighbouring channels of one sequence's convolution. Pointers are to the first channel, and to
// the first row where there are rows.
struct ConvChannels {
  int32_t rows;
  int32_t channels;  // at most kMaxConvChannels
  int32_t width;
  int64_t stride;            // floats between rows of x, b and c
  int64_t tap_stride;        // of weight and state
  float* x;                  // becomes silu(conv(x)), or is used up if there is an `out`
  const float* b = nullptr;  // with `out`: it becomes c * conv(b * x)
  const float* c = nullptr;
  float* out = nullptr;
  int64_t out_stride = 0;
  const float* weight;
  const float* bias;  // or null
  float* state;       // the width - 1 inputs before the rows, the oldest first; then the last ones
};

// How a token changes what a head holds: S = decay S, and `input` is beta or dt.
struct TokenGates {
  float decay;
  float input;
};

// Some tokens of one sequence, in one value head. Pointers are to the first token's.
struct HeadRun {
  RecurrentKind kind;  // kMamba2 or kGatedDelta
  int32_t tokens;      // 1 to kRunTokens
  int32_t key_dim;
  int32_t value_dim;
  int64_t stride;  // floats between tokens of q, k, v and z
  const float* q;  // q, k, v are out of the convolution
  const float* k;
  const float* v;
  const float* z;
  const TokenGates* gates;  // [tokens]
  Norm norm;                // of kGatedDelta
  float skip;               // of kMamba2
  float* state;             // head_floats()
  float* out;               // kGatedDelta: norm(y) * silu(z); kMamba2: (y + skip v) * silu(z)
  int64_t out_stride;
};

struct RecurrentKernels {
  void (*convolve)(const ConvChannels&);
  void (*advance)(const HeadRun&);
};

namespace reference {
extern const RecurrentKernels kRecurrentKernels;
}
namespace avx2 {
extern const RecurrentKernels kRecurrentKernels;
}
namespace avx512 {
extern const RecurrentKernels kRecurrentKernels;
}

// Of q and k of kGatedDelta: x / sqrt(sum of squares + this).
inline constexpr float kKeyEps = 1e-6f;

size_t RecurrentWorkspaceBytes(const LinearOps& linear, const WorkspaceShape& shape);

void RunRecurrent(const LinearOps& linear, const RecurrentKernels& kernels,
                  const RecurrentArgs& args, Workspace workspace, ThreadPool& pool);

}  // namespace vivace::kernels
