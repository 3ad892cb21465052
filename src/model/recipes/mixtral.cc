// Mixtral: mistral with experts in the MLP's place; the chosen ones' weights sum to 1. Its GGUF
// files are llama's.
#include "model/recipes/list.h"
#include "model/recipes/llama_family.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  return BuildLlamaFamily(source, kMixtral.name,
                          {.qkv_bias = Bias::kNone, .bias = Bias::kNone, .rope_theta = 1e6});
}

constexpr std::string_view kHf[] = {"MixtralForCausalLM"};
constexpr HfTensorName kTensors[] = {
    {"blk.{}.ffn_gate_inp", "model.layers.{}.block_sparse_moe.gate"},
    {"blk.{}.ffn_gate.{}", "model.layers.{}.block_sparse_moe.experts.{}.w1"},
    {"blk.{}.ffn_up.{}", "model.layers.{}.block_sparse_moe.experts.{}.w3"},
    {"blk.{}.ffn_down.{}", "model.layers.{}.block_sparse_moe.experts.{}.w2"},
};

}  // namespace

const Recipe kMixtral = {"mixtral", {}, {kHf, {}, kTensors}, Build};

}  // namespace vivace::model
