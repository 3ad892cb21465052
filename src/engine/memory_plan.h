// Every byte the executor will use, decided before the first is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/config.h"
#include "engine/executor.h"
#include "kernels/block_ops.h"
#include "kv/kv_groups.h"
#include "model/spec.h"

namespace vivace {

struct MemoryPlan {
  ExecutorLimits limits;
  kernels::KvGeometry kv;     // of every layer
  size_t kv_block_bytes = 0;  // of one block of one layer
  KvGroups groups;            // layers_per_block of these make a block of the pool
  size_t kv_bytes = 0;        // all blocks of the pool
  size_t state_bytes = 0;     // of recurrent layers, for all sequences that run at once
  kernels::WorkspaceShape shape;
  size_t workspace_bytes = 0;   // of the block ops
  int32_t logit_rows = 0;       // rows of logits computed at once
  int64_t logits_stride = 0;    // floats
  int32_t query_cols = 0;       // floats of a row's queries, or of what a recurrent layer reads;
  int32_t attended_cols = 0;    // and of what attention makes of queries
  size_t activation_bytes = 0;  // between the block ops
  size_t table_bytes = 0;  // RoPE tables, what sampling and pooling keep, in memory of their own
  std::vector<std::string> notes;  // what the model does not let the configuration have, for people
};

// Memory this process could still take: what the system reports available, cut by the cgroup's
// limit. 0 if neither can be read.
size_t AvailableMemory();

// Of a layer's cache, but for the element type and the block size.
kernels::KvGeometry LayerGeometry(const model::AttentionSpec& attention);

// Bytes that recurrent layers keep of `sequences` sequences.
size_t StateBytes(const model::ModelSpec& spec, int32_t sequences);

// How the layers with attention share the cache's blocks, for sequences of up to `max_model_len`
// tokens: a window that none of them outgrows is none.
KvGroups GroupsOf(const model::ModelSpec& spec, int32_t max_model_len);

// `available` as above, before the weights are loaded. Errors name the flag to change and both
// sizes.
Result<MemoryPlan> PlanMemory(const EngineConfig& config, const model::ModelSpec& spec,
                              const kernels::BlockOps& ops, size_t weight_bytes, int threads,
                              size_t available);

}  // namespace vivace
