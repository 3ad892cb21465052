// Gemma 3, text: five local layers to a global one, each kind with its own RoPE; norms on heads of
// q and k.
#include "model/recipes/gemma_family.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  return BuildGemma(
      source, kGemma3.name,
      {.qk_norm = QkNorm::kPerHead, .period = 6, .wide_layers = 62, .local_rope = true});
}

constexpr std::string_view kGguf[] = {"gemma3"};
constexpr std::string_view kHf[] = {"Gemma3ForCausalLM"};
constexpr HfDefault kDefaults[] = {
    {"attention.sliding_window", 4096, /*null_is_none=*/true},
    {"attention.query_scale", 256},
};

}  // namespace

const Recipe kGemma3 = {"gemma3", kGguf, {kHf, kGemmaKeys, kGemmaTensors, kDefaults}, Build};

}  // namespace vivace::model
