// What Gemma 2 and 3 share: four norms a layer whose weights Hugging Face stores less 1, a scaled
// embedding, local layers between global ones.
#pragma once

#include "model/decoder.h"
#include "model/hf_names.h"

namespace vivace::model {

struct GemmaTraits {
  QkNorm qk_norm = QkNorm::kNone;
  int64_t period = 0;       // every period-th layer is global
  int64_t wide_layers = 0;  // GGUF files do not say that the model of this depth scales otherwise
  bool local_rope = false;  // local layers have a RoPE of their own
};

Result<ModelSpec> BuildGemma(const ModelSource& source, std::string_view recipe,
                             const GemmaTraits& traits);

inline constexpr HfKey kGemmaKeys[] = {{"attention.query_scale", "query_pre_attn_scalar"}};

inline constexpr HfTensorName kGemmaTensors[] = {
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm"},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"},
};

}  // namespace vivace::model
