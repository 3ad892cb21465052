// A model's weights as the kernels read them: packed matrices and fp32 vectors in one arena.
// Immutable once loaded; owned by the executor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "engine/arena.h"
#include "engine/config.h"
#include "engine/load_progress.h"
#include "engine/weight_cache/weight_cache.h"
#include "kernels/block_ops.h"
#include "model/loaded_model.h"

namespace vivace {

// Of latent attention, as LatentQkvArgs and LatentValuesArgs take them.
struct LatentWeights {
  kernels::MatrixGroup input;
  kernels::Norm q_norm;
  kernels::MatrixGroup q_b;  // no parts: `input` has it
  kernels::Norm kv_norm;
  std::vector<kernels::MatrixGroup> k_b, v_b;  // [heads]
};

// Of a recurrent layer, as RecurrentArgs takes them. Vectors that a kind lacks are null.
struct RecurrentWeights {
  kernels::MatrixGroup input;
  const float* conv_weight = nullptr;
  const float* conv_bias = nullptr;
  const float* decay = nullptr;
  const float* dt_bias = nullptr;
  const float* skip = nullptr;
  kernels::Norm out_norm;
};

struct MoeWeights {
  kernels::Router router;
  std::vector<kernels::FeedForward> experts;
  kernels::FeedForward shared;
  kernels::MatrixGroup shared_gate;  // no parts: none
};

struct LayerWeights {
  kernels::Norm attention_norm, attention_post_norm;  // of the mixer, whatever it is
  kernels::Norm q_norm, k_norm;
  kernels::MatrixGroup qkv;  // no parts where there is `latent` or `recurrent`
  std::optional<LatentWeights> latent;
  std::optional<RecurrentWeights> recurrent;
  kernels::MatrixGroup gate;  // no parts: none
  const float* sinks = nullptr;
  kernels::MatrixGroup o;
  kernels::Norm mlp_norm, mlp_post_norm;
  kernels::FeedForward dense;  // not present where there is `moe`
  std::optional<MoeWeights> moe;
};

struct Weights {
  Arena arena;
  kernels::PackedMatrix embedding;
  kernels::Norm final_norm;
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
                            const LoadProgress& progress);

}  // namespace vivace
