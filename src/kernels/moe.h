// The mixture-of-experts block over any tier's linear ops: the router's products, the choice, each
// expert's products over the rows that chose it, and the weighted sum.
//
// Experts that are wanted are computed in chunks: all first products of a chunk are one call, and
// so are all second ones, so a step of few rows waits for its threads twice, not twice for each
// expert. A row's sum adds its experts by ascending id, then the shared one, whatever the chunks.
#pragma once

#include <cstddef>

#include "base/thread_pool.h"
#include "kernels/block_ops.h"
#include "kernels/linear.h"

namespace vivace::kernels {

size_t MoeWorkspaceBytes(const LinearOps& linear, const WorkspaceShape& shape);

void RunMoe(const LinearOps& linear, const MoeArgs& args, Workspace workspace, ThreadPool& pool);

}  // namespace vivace::kernels
