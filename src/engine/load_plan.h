// What serving a model takes, decided from its file's headers and the configuration alone: the
// executor is made of exactly this, and `vivace plan` shows it. Reads no weight, takes no memory;
// any thread.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "engine/config.h"
#include "engine/memory_plan.h"
#include "kernels/block_ops.h"
#include "model/loaded_model.h"

namespace vivace {

struct LoadPlan {
  const kernels::BlockOps* ops = nullptr;  // of the tier that will compute
  int threads = 0;
  size_t weight_bytes = 0;  // packed
  MemoryPlan memory;

  // Arenas and tables together: what the engine has taken once every page of it was used.
  size_t bytes() const;
};

// `available`: bytes free before anything is loaded, 0 if unknown (AvailableMemory()). Fails where
// loading would: the error names what to change.
Result<LoadPlan> PlanLoad(const EngineConfig& config, const model::ModelFile& file,
                          size_t available);

}  // namespace vivace
