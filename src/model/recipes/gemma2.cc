// Gemma 2: every other layer is local, scores and logits are capped.
#include "model/recipes/gemma_family.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  return BuildGemma(source, kGemma2.name, {.period = 2, .wide_layers = 46});
}

constexpr std::string_view kGguf[] = {"gemma2"};
constexpr std::string_view kHf[] = {"Gemma2ForCausalLM"};
constexpr HfDefault kDefaults[] = {
    {"attention.sliding_window", 4096, /*null_is_none=*/true},
    {"attention.query_scale", 256},
    {"attn_logit_softcapping", 50, /*null_is_none=*/true},
    {"final_logit_softcapping", 30, /*null_is_none=*/true},
};

}  // namespace

const Recipe kGemma2 = {"gemma2", kGguf, {kHf, kGemmaKeys, kGemmaTensors, kDefaults}, Build};

}  // namespace vivace::model
