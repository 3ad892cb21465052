#include "engine/load_plan.h"

#include "base/cpu.h"
#include "engine/forward.h"
#include "engine/weights.h"
#include "kernels/fastest_isa.h"

namespace vivace {

size_t LoadPlan::bytes() const {
  return weight_bytes + Forward::ArenaBytes(memory) + memory.table_bytes;
}

Result<LoadPlan> PlanLoad(const EngineConfig& config, const model::ModelFile& file,
                          size_t available) {
  LoadPlan plan;
  plan.ops = &kernels::GetBlockOps(config.isa.value_or(kernels::FastestIsa()));
  plan.threads = config.threads > 0 ? config.threads : UsableCpus();
  VIVACE_ASSIGN(plan.weight_bytes, WeightArenaBytes(file, *plan.ops));
  VIVACE_ASSIGN(plan.memory, PlanMemory(config, file.spec(), *plan.ops, plan.weight_bytes,
                                        plan.threads, available));
  return plan;
}

}  // namespace vivace
