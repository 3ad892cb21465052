// GLM-4 (0414): norms before and after attention and MLP, half of a head rotated in adjacent pairs,
// gate and up in one matrix.
#include "model/decoder.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

Result<ModelSpec> Build(const ModelSource& source) {
  return BuildDecoder(source, kGlm4.name,
                      {.post_norms = true,
                       .fused_qkv = true,
                       .fused_gate_up = true,
                       .gguf_interleaved_rope = true,
                       .hf_interleaved_rope = true,
                       .rope_fraction = 0.5});
}

constexpr std::string_view kGguf[] = {"glm4"};
constexpr std::string_view kHf[] = {"Glm4ForCausalLM"};
constexpr HfTensorName kTensors[] = {
    {"blk.{}.post_attention_norm", "model.layers.{}.post_self_attn_layernorm"},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_mlp_layernorm"},
    {"blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"},
};

}  // namespace

const Recipe kGlm4 = {"glm4", kGguf, {kHf, {}, kTensors}, Build};

}  // namespace vivace::model
