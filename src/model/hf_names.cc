#include "model/hf_names.h"

#include <algorithm>
#include <array>

#include "model/source.h"

namespace vivace::model {
namespace {

constexpr HfKey kStandardKeys[] = {
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"vocab_size", "vocab_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.layer_norm_epsilon", "layer_norm_eps"},
    {"attention.sliding_window", "sliding_window"},
    {kWindowLayers, "layer_types"},
    {kRecurrentLayers, "layer_types"},
    {"attention.sliding_window_period", "sliding_window_pattern"},
    {"attention.use_sliding_window", "use_sliding_window"},
    {"attention.bias", "attention_bias"},
    {"attention.scale", "attention_multiplier"},
    {"attention.bidirectional", "use_bidirectional_attention"},
    {"feed_forward.bias", "mlp_bias"},
    {"hidden_activation", "hidden_activation"},
    {"hidden_activation", "hidden_act"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
    {"expert_count", "num_experts"},
    {"expert_count", "num_local_experts"},
    {"expert_count", "n_routed_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
    {"expert_weights_scale", "routed_scaling_factor"},
    {"expert_weights_norm", "norm_topk_prob"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"moe.dense_layers", "mlp_only_layers"},
    {"moe.layer_step", "decoder_sparse_step"},
    {"embedding_scale", "embedding_multiplier"},
    {"residual_scale", "residual_multiplier"},
    {"logit_scale", "logits_scaling"},
    {"rope.freq_base", "rope_theta", KeyPlace::kRope},
    {"rope.freq_base_swa", "rope_theta", KeyPlace::kLocalRope},
    {"rope.freq_base_swa", "rope_local_base_freq"},
    {"rope.dimension_fraction", "partial_rotary_factor", KeyPlace::kRope},
    {"rope.scaling.type", "rope_type", KeyPlace::kRope},
    {"rope.scaling.type", "type", KeyPlace::kRope},
    {"rope.scaling.type_swa", "rope_type", KeyPlace::kLocalRope},
    {"rope.scaling.factor", "factor", KeyPlace::kRope},
    {"rope.scaling.original_context_length", "original_max_position_embeddings"},
    {"rope.scaling.original_context_length", "original_max_position_embeddings", KeyPlace::kRope},
    {"rope.scaling.low_freq_factor", "low_freq_factor", KeyPlace::kRope},
    {"rope.scaling.high_freq_factor", "high_freq_factor", KeyPlace::kRope},
    {"rope.scaling.yarn_beta_fast", "beta_fast", KeyPlace::kRope},
    {"rope.scaling.yarn_beta_slow", "beta_slow", KeyPlace::kRope},
    {"rope.scaling.attention_factor", "attention_factor", KeyPlace::kRope},
    {"rope.scaling.mscale", "mscale", KeyPlace::kRope},
    {"rope.scaling.mscale_all_dim", "mscale_all_dim", KeyPlace::kRope},
    {"rope.scaling.truncate", "truncate", KeyPlace::kRope},
    {"rope.scaling.short_factor", "short_factor", KeyPlace::kRope},
    {"rope.scaling.long_factor", "long_factor", KeyPlace::kRope},
    {"tie_word_embeddings", "tie_word_embeddings"},
};

constexpr HfTensorName kStandardTensors[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
    {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
    {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
    {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
    {"blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
    {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    {"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
    {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
    {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
    {"blk.{}.ffn_gate_inp", "model.layers.{}.mlp.gate"},
    {"blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_expert.gate_proj"},
    {"blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_expert.up_proj"},
    {"blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_expert.down_proj"},
    {"blk.{}.ffn_gate_inp_shexp", "model.layers.{}.mlp.shared_expert_gate"},
    {"blk.{}.ffn_gate.{}", "model.layers.{}.mlp.experts.{}.gate_proj"},
    {"blk.{}.ffn_up.{}", "model.layers.{}.mlp.experts.{}.up_proj"},
    {"blk.{}.ffn_down.{}", "model.layers.{}.mlp.experts.{}.down_proj"},
    {"blk.{}.ffn_gate_up_exps", "model.layers.{}.mlp.experts.gate_up_proj!"},
    {"blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.down_proj!"},
};

constexpr size_t kMaxHoles = 2;

struct Stem {
  std::string text;                                 // numbers as {}
  std::array<std::string_view, kMaxHoles> numbers;  // in order
  std::string_view suffix;                          // ".weight"
};

// Parts of a name that are numbers become holes; the last part is the suffix.
Stem Split(std::string_view name) {
  Stem stem;
  const size_t dot = name.rfind('.');
  stem.suffix = dot == name.npos ? "" : name.substr(dot);
  std::string_view rest = name.substr(0, dot);
  size_t holes = 0;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, end);
    const bool number = std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    if (number && !part.empty() && holes < kMaxHoles) {
      stem.numbers[holes++] = part;
      stem.text += "{}";
    } else {
      stem.text += part;
    }
    if (end < rest.size()) stem.text += '.';
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return stem;
}

std::string Fill(std::string_view pattern, const Stem& stem) {
  std::string out;
  size_t holes = 0;
  while (!pattern.empty()) {
    if (pattern.starts_with("{}")) {
      out += stem.numbers[std::min(holes++, kMaxHoles - 1)];
      pattern.remove_prefix(2);
    } else {
      out += pattern.front();
      pattern.remove_prefix(1);
    }
  }
  if (out.ends_with('!')) {
    out.pop_back();
  } else {
    out += stem.suffix;
  }
  return out;
}

// With the suffix or without: a table may give "blk.{}.attn_sinks.weight" a name of its own.
const HfTensorName* Find(std::span<const HfTensorName> table, const Stem& stem) {
  const auto found = std::ranges::find_if(table, [&](const HfTensorName& row) {
    if (!row.stem.starts_with(stem.text)) return false;
    const std::string_view more = row.stem.substr(stem.text.size());
    return more.empty() || more == stem.suffix;
  });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

std::span<const HfKey> StandardKeys() { return kStandardKeys; }

std::string HfTensor(const HfNames& names, std::string_view canonical) {
  const Stem stem = Split(canonical);
  const HfTensorName* row = Find(names.tensors, stem);
  if (row == nullptr) row = Find(kStandardTensors, stem);
  return row == nullptr ? std::string(canonical) : Fill(row->name, stem);
}

}  // namespace vivace::model
