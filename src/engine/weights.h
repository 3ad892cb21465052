// A model's weights as the kernels read them: packed matrices and fp32 vectors in one arena.
// Immutable once loaded; owned by the executor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "engine/arena.h"
#include "engine/config.h"
#include "engine/weight_cache/weight_cache.h"
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
  std::unique_ptr<weight_cache::Writer> writer;  // keeps the arena for the next start; may be null
};

// Bytes LoadWeights will take; an error if the tier cannot pack one of them.
Result<size_t> WeightArenaBytes(const model::ModelFile& file, const kernels::BlockOps& ops);

// Reads all weights from the cache that `config` names, if it has them. Else packs them, in
// parallel over tiles, giving the file's pages back as it goes, and leaves a thread behind that
// writes them to the cache. `progress(done, total)` in bytes of the arena.
Result<Weights> LoadWeights(const EngineConfig& config, const model::ModelFile& file,
                            const kernels::BlockOps& ops, ThreadPool& pool,
                            const std::function<void(uint64_t, uint64_t)>& progress);

}  // namespace vivace
