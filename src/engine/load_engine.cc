#include "engine/load_engine.h"

#include "engine/cpu_executor.h"
#include "engine/model_text.h"
#include "model/loaded_model.h"

namespace vivace {

Result<model::ModelFile> OpenModel(const EngineConfig& config) {
  VIVACE_ASSIGN(model::ModelFile file, model::OpenModel(config.model));
  if (config.quantization) file.Quantize(*config.quantization);
  return file;
}

Result<LoadedEngine> LoadEngine(const EngineConfig& config, const LoadProgress& progress) {
  VIVACE_RETURN_IF_ERROR(Validate(config));
  VIVACE_ASSIGN(const model::ModelFile file, OpenModel(config));
  LoadedEngine loaded;
  VIVACE_ASSIGN(ModelText text, ReadModelText(file));
  loaded.tokenizer = std::move(text.tokenizer);
  loaded.eos_ids = std::move(text.eos_ids);
  loaded.chat_template_source = std::move(text.chat_template_source);
  loaded.model_name = file.spec().name;
  VIVACE_ASSIGN(auto executor, CreateCpuExecutor(config, file, loaded.eos_ids, progress));
  VIVACE_ASSIGN(loaded.engine, Engine::Start(config, std::move(executor), loaded.eos_ids));
  return loaded;
}

}  // namespace vivace
