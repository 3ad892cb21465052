// Recipes: how an architecture's configuration becomes a ModelSpec. One file per family.
// A recipe is data plus one pure function; it knows no kernels, no quantisation and no file format.
// Static table, any thread.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "model/hf_names.h"
#include "model/source.h"
#include "model/spec.h"

namespace vivace::model {

struct Recipe {
  std::string_view name;                            // "llama"
  std::span<const std::string_view> architectures;  // what GGUF files call it; may be empty
  HfNames hf;                                       // and Hugging Face folders
  // Reads and range-checks the hyper-parameters, names every weight with its exact shape. The
  // optional weights it names are those the source has. Reads no weight but the divisors of RoPE's
  // frequencies.
  Result<ModelSpec> (*build)(const ModelSource& source);
};

// Unknown: unknown_architecture, naming it and listing the known ones. Known but of a kind we do
// not compute (other recurrent layers): unsupported_architecture.
Result<const Recipe*> FindRecipe(const ModelSource& source);
Result<const Recipe*> FindHfRecipe(std::string_view architecture, std::string_view config_path);

}  // namespace vivace::model
