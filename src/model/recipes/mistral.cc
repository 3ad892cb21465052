// Mistral: llama with a sliding window on every layer, if the file has one. Its GGUF files are
// llama's.
#include "model/recipes/list.h"
#include "model/recipes/llama_family.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  return BuildLlamaFamily(source, kMistral.name, {.qkv_bias = Bias::kNone, .bias = Bias::kNone});
}

constexpr std::string_view kHf[] = {"MistralForCausalLM"};
// Windows are the same for all layers, whatever a list says.
constexpr HfKey kKeys[] = {{kWindowLayers, ""}};
constexpr HfDefault kDefaults[] = {
    {"attention.sliding_window", 4096, /*null_is_none=*/true},
};

}  // namespace

const Recipe kMistral = {"mistral", {}, {kHf, kKeys, {}, kDefaults}, Build};

}  // namespace vivace::model
