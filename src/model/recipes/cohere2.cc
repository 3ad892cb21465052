// Command R7B (Cohere 2): attention and MLP side by side behind one layer norm without bias, every
// fourth layer sees everything and is not rotated, scaled logits.
#include "model/decoder.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kCohere2.name,
                                         {.norm = kernels::NormKind::kLayer,
                                          .parallel = true,
                                          .gguf_interleaved_rope = true,
                                          .hf_interleaved_rope = true}));
  VIVACE_ASSIGN(d.windows, d.Windows(/*period=*/4));
  VIVACE_ASSIGN(const double scale, ReadFloatOr(source, "logit_scale", 1e-6, 1e6, 0.0625));
  d.spec().final_norm.weight.scale = static_cast<float>(scale);
  return d.Build([&](int64_t, LayerSpec* layer) -> Status {
    if (layer->attention.window == 0) layer->attention.rope = {};
    return {};
  });
}

constexpr std::string_view kGguf[] = {"cohere2"};
constexpr std::string_view kHf[] = {"Cohere2ForCausalLM"};
constexpr HfKey kKeys[] = {{"logit_scale", "logit_scale"}};
constexpr HfDefault kDefaults[] = {
    {"attention.sliding_window", 4096, /*null_is_none=*/true},
};

}  // namespace

const Recipe kCohere2 = {"cohere2", kGguf, {kHf, kKeys, {}, kDefaults}, Build};

}  // namespace vivace::model
