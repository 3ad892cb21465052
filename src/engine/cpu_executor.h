// The Executor on this machine's processors: packed weights, a paged KV cache, and a walk over the
// model's layers with the tier's block ops.
//
// Depth 1, and the calling thread is worker 0 of the compute pool: Launch computes the step and
// returns when it is done; Await hands over what it made. Launch and Await allocate nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/config.h"
#include "engine/executor.h"
#include "engine/load_progress.h"
#include "model/loaded_model.h"

namespace vivace {

// Plans and takes all memory, packs the weights. `eos_ids` cannot be drawn before a request's
// min_tokens. `progress(done, total)` in bytes, from the calling thread; may be empty.
Result<std::unique_ptr<Executor>> CreateCpuExecutor(const EngineConfig& config,
                                                    const model::ModelFile& file,
                                                    std::vector<TokenId> eos_ids,
                                                    const LoadProgress& progress);

}  // namespace vivace
