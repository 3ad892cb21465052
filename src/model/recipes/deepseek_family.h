// What DeepSeek V2 and V3 share: multi-head latent attention, leading dense layers, shared experts.
#pragma once

#include "model/decoder.h"
#include "model/hf_names.h"

namespace vivace::model {

// V3 scores by a sigmoid, chooses with a bias, and a group of experts counts as its two best.
struct DeepseekTraits {
  bool sigmoid = false;
};

Result<ModelSpec> BuildDeepseek(const ModelSource& source, std::string_view recipe,
                                const DeepseekTraits& traits);

inline constexpr HfKey kDeepseekKeys[] = {
    {"attention.key_length", ""},  // what is called head_dim there is another thing
    {"attention.q_lora_rank", "q_lora_rank"},
    {"attention.kv_lora_rank", "kv_lora_rank"},
    {"attention.nope_length", "qk_nope_head_dim"},
    {"attention.value_length_mla", "v_head_dim"},
    {"rope.dimension_count", "qk_rope_head_dim"},
    {"rope.interleaved", "rope_interleave"},
    {"expert_group_method", "topk_method"},
    {"extra_layers", "num_nextn_predict_layers"},
};

inline constexpr HfTensorName kDeepseekTensors[] = {
    {"blk.{}.attn_q_a", "model.layers.{}.self_attn.q_a_proj"},
    {"blk.{}.attn_q_a_norm", "model.layers.{}.self_attn.q_a_layernorm"},
    {"blk.{}.attn_q_b", "model.layers.{}.self_attn.q_b_proj"},
    {"blk.{}.attn_kv_a_mqa", "model.layers.{}.self_attn.kv_a_proj_with_mqa"},
    {"blk.{}.attn_kv_a_norm", "model.layers.{}.self_attn.kv_a_layernorm"},
    {"blk.{}.attn_kv_b", "model.layers.{}.self_attn.kv_b_proj"},
    {"blk.{}.exp_probs_b.bias", "model.layers.{}.mlp.gate.e_score_correction_bias!"},
    {"blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_experts.gate_proj"},
    {"blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_experts.up_proj"},
    {"blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_experts.down_proj"},
};

}  // namespace vivace::model
