#include "engine/load_engine.h"

#include "engine/cpu_executor.h"
#include "model/loaded_model.h"
#include "text/tokenizer_gguf.h"

namespace vivace {
namespace {

constexpr const char* kTemplateKey = "tokenizer.chat_template";

}  // namespace

Result<LoadedEngine> LoadEngine(const EngineConfig& config,
                                const std::function<void(uint64_t, uint64_t)>& progress) {
  VIVACE_RETURN_IF_ERROR(Validate(config));
  VIVACE_ASSIGN(const model::ModelFile file, model::OpenModel(config.model));
  LoadedEngine loaded;
  VIVACE_ASSIGN(loaded.tokenizer, TokenizerOf(file.gguf()));
  loaded.eos_ids = loaded.tokenizer->eos_ids();
  loaded.model_name = file.spec().name;
  if (file.gguf().Find(kTemplateKey) != nullptr) {
    VIVACE_ASSIGN(const std::string_view source, file.gguf().GetString(kTemplateKey));
    loaded.chat_template_source = source;
  }
  VIVACE_ASSIGN(auto executor, CreateCpuExecutor(config, file, loaded.eos_ids, progress));
  VIVACE_ASSIGN(loaded.engine, Engine::Start(config, std::move(executor), loaded.eos_ids));
  return loaded;
}

}  // namespace vivace
