// A model's weights as the kernels read them: packed matrices and fp32 vectors in one arena.
// Immutable once loaded; owned by the executor.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/thread_pool.h"
#include "engine/arena.h"
#include "kernels/block_ops.h"
#include "model/loaded_model.h"

namespace vivace {

struct LayerWeights {
  const float* attention_norm = nullptr;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  kernels::MatrixGroup qkv;
  kernels::MatrixGroup o;
  const float* mlp_norm = nullptr;
  kernels::MatrixGroup gate_up;
  kernels::MatrixGroup down;
};

struct Weights {
  Arena arena;
  kernels::PackedMatrix embedding;
  const float* final_norm = nullptr;
  kernels::MatrixGroup lm_head;  // the embedding itself when tied: no second copy
  std::vector<LayerWeights> layers;
};

// Bytes LoadWeights will take; an error if the tier cannot pack one of them.
Result<size_t> WeightArenaBytes(const model::ModelFile& file, const kernels::BlockOps& ops);

// Packs all weights, in parallel over tiles, and gives the file's pages back as it goes.
// `progress(done, total)` in bytes of the arena.
Result<Weights> LoadWeights(const model::ModelFile& file, const kernels::BlockOps& ops,
                            ThreadPool& pool,
                            const std::function<void(uint64_t, uint64_t)>& progress);

}  // namespace vivace
