// Every byte the executor will use, decided before the first is allocated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "engine/config.h"
#include "engine/executor.h"
#include "kernels/block_ops.h"
#include "model/spec.h"

namespace vivace {

struct MemoryPlan {
  ExecutorLimits limits;
  kernels::KvGeometry kv;     // of every layer
  size_t kv_block_bytes = 0;  // of one block of one layer
  size_t kv_bytes = 0;        // all layers, all blocks
  kernels::WorkspaceShape shape;
  size_t workspace_bytes = 0;   // of the block ops
  int32_t logit_rows = 0;       // rows of logits computed at once
  int64_t logits_stride = 0;    // floats
  size_t activation_bytes = 0;  // between the block ops
  size_t table_bytes = 0;       // RoPE tables and what sampling keeps, in memory of their own
};

// Memory this process could still take: what the system reports available, cut by the cgroup's
// limit. 0 if neither can be read.
size_t AvailableMemory();

// `available` as above, before the weights are loaded. Errors name the flag to change and both
// sizes.
Result<MemoryPlan> PlanMemory(const EngineConfig& config, const model::ModelSpec& spec,
                              const kernels::BlockOps& ops, size_t weight_bytes, int threads,
                              size_t available);

}  // namespace vivace
