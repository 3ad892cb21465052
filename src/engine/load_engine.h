// From a configuration to a running engine: opens the model file, checks all of it, packs its
// weights and starts the step loop. What `vivace serve` and `vivace chat` stand on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/config.h"
#include "engine/engine.h"
#include "engine/load_progress.h"
#include "model/loaded_model.h"
#include "text/tokenizer.h"

namespace vivace {

// The configuration's model, opened and checked, to be packed as it says.
Result<model::ModelFile> OpenModel(const EngineConfig& config);

struct LoadedEngine {
  std::unique_ptr<Engine> engine;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<TokenId> eos_ids;
  std::string model_name;            // the file's own name for itself, for people; may be empty
  std::string chat_template_source;  // empty: the file has none
};

// `progress(done, total)` in bytes of weights, from the calling thread. Errors are one line a
// person can act on. Takes as long as reading and packing the weights.
Result<LoadedEngine> LoadEngine(const EngineConfig& config, const LoadProgress& progress);

}  // namespace vivace
