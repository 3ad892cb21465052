#include "engine/engine.h"

#include "engine/step_loop.h"

namespace vivace {

Result<std::unique_ptr<Engine>> Engine::Start(const EngineConfig& config,
                                              std::unique_ptr<Executor> executor,
                                              std::vector<TokenId> eos_ids) {
  VIVACE_RETURN_IF_ERROR(Validate(config));
  return std::unique_ptr<Engine>(
      std::make_unique<StepLoop>(config, std::move(executor), std::move(eos_ids)));
}

}  // namespace vivace
