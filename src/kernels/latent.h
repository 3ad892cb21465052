// Multi-head latent attention over any tier's linear ops: what stands before and behind attention
// in the latent space (block_ops.h). The products that take queries into the latent space, and
// outputs out of it, are one call for many heads.
#pragma once

#include <cstddef>

#include "base/thread_pool.h"
#include "kernels/block_ops.h"
#include "kernels/linear.h"

namespace vivace::kernels {

// Writes one key (and no value) of each of the step's rows into a cache of one kv head; row i's is
// at keys + i * stride.
using StoreLatents = void (*)(const KvCacheView& kv, const StepRows& step, const float* keys,
                              int64_t stride, ThreadPool& pool);

size_t LatentWorkspaceBytes(const LinearOps& linear, const WorkspaceShape& shape);

void LatentQkv(const LinearOps& linear, StoreLatents store, const LatentQkvArgs& args,
               Workspace workspace, ThreadPool& pool);
void LatentValues(const LinearOps& linear, const LatentValuesArgs& args, Workspace workspace,
                  ThreadPool& pool);

}  // namespace vivace::kernels
