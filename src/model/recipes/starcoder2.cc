// StarCoder 2: layer norms with biases, an MLP without a gate, biases everywhere, a window on every
// layer if the file has one.
#include "model/decoder.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kStarcoder2.name,
                                         {.norm = kernels::NormKind::kLayer,
                                          .norm_bias = true,
                                          .gated = false,
                                          .activation = kernels::Activation::kGeluTanh}));
  VIVACE_ASSIGN(d.windows, d.Windows(/*period=*/0));
  return d.Build();
}

constexpr std::string_view kGguf[] = {"starcoder2"};
constexpr std::string_view kHf[] = {"Starcoder2ForCausalLM"};
constexpr HfKey kKeys[] = {{"attention.layer_norm_epsilon", "norm_epsilon"}};
constexpr HfTensorName kTensors[] = {
    {"blk.{}.ffn_up", "model.layers.{}.mlp.c_fc"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.c_proj"},
};

}  // namespace

const Recipe kStarcoder2 = {"starcoder2", kGguf, {kHf, kKeys, kTensors}, Build};

}  // namespace vivace::model
