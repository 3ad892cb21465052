// EXAONE 4: norms stand after attention and MLP only, q and k are normalised by head. Of the models
// with sliding windows, layers that see everything are not rotated.
#include "model/decoder.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(
      Decoder d,
      Decoder::Open(source, kExaone4.name,
                    {.pre_norms = false, .post_norms = true, .qk_norm = QkNorm::kPerHead}));
  VIVACE_ASSIGN(d.windows, d.Windows(/*period=*/4));
  VIVACE_ASSIGN(const int64_t window,
                ReadIntOr(source, "attention.sliding_window", 0, UINT32_MAX, 0));
  return d.Build([&](int64_t, LayerSpec* layer) -> Status {
    if (window > 0 && layer->attention.window == 0) layer->attention.rope = {};
    return {};
  });
}

constexpr std::string_view kGguf[] = {"exaone4"};
constexpr std::string_view kHf[] = {"Exaone4ForCausalLM"};
constexpr HfTensorName kTensors[] = {
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"},
};
constexpr HfDefault kDefaults[] = {
    {"attention.sliding_window", 4096, /*null_is_none=*/true},
};

}  // namespace

const Recipe kExaone4 = {"exaone4", kGguf, {kHf, {}, kTensors, kDefaults}, Build};

}  // namespace vivace::model
