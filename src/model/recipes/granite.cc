// Granite 3: llama with four multipliers.
#include "model/decoder.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

constexpr double kMaxScale = 1e6;

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kGranite.name, {.gguf_interleaved_rope = true}));
  const auto read = [&](std::string_view key) {
    return ReadFloatOr(source, key, 1.0 / kMaxScale, kMaxScale, 1.0);
  };
  VIVACE_ASSIGN(const double embedding, read("embedding_scale"));
  VIVACE_ASSIGN(const double residual, read("residual_scale"));
  VIVACE_ASSIGN(const double logits, read("logit_scale"));
  d.spec().embedding_scale = static_cast<float>(embedding);
  d.spec().residual_scale = static_cast<float>(residual);
  d.spec().final_norm.weight.scale = static_cast<float>(1.0 / logits);  // logits are divided by it
  return d.Build();
}

constexpr std::string_view kGguf[] = {"granite"};
constexpr std::string_view kHf[] = {"GraniteForCausalLM"};
constexpr HfKey kKeys[] = {
    {"attention.scale", "attention_multiplier"},
    {"embedding_scale", "embedding_multiplier"},
    {"residual_scale", "residual_multiplier"},
    {"logit_scale", "logits_scaling"},
};
constexpr HfDefault kDefaults[] = {
    {"attention.scale", 1},
};

}  // namespace

const Recipe kGranite = {"granite", kGguf, {kHf, kKeys, {}, kDefaults}, Build};

}  // namespace vivace::model
