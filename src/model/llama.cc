// The llama family: pre-norm decoder, grouped-query attention, RoPE, gated SiLU MLP. Biases, head
// width, tied embeddings and RoPE scaling are options of the file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/hparams.h"
#include "model/recipe.h"
#include "model/rope_config.h"
#include "model/weight_table.h"

namespace vivace::model {
namespace {

// GGUF converters permute llama's q and k rows so that a rotated pair lies side by side.
constexpr bool kInterleavedRope = true;

// Llama 3.1 files carry their frequency scaling as one divisor for each pair.
constexpr std::string_view kRopeFreqs = "rope_freqs.weight";

Status ReadFreqDivisors(const ModelSource& source, WeightTable& weights, RopeSpec& rope) {
  if (!weights.Has(kRopeFreqs)) return {};
  VIVACE_ASSIGN(rope.freq_divisors, weights.ReadFloats(kRopeFreqs, rope.dims / 2));
  for (const float divisor : rope.freq_divisors) {
    if (!(divisor > 0.0f && std::isfinite(divisor))) {
      return source.TensorFault(ErrorCode::kCorruptData, "hparam_range", kRopeFreqs,
                                fmt::format("a divisor is {}; all must be positive", divisor));
    }
  }
  return {};
}

Result<AttentionSpec> BuildAttention(WeightTable& weights, const Hparams& h, const RopeSpec& rope,
                                     const std::string& blk) {
  AttentionSpec a;
  a.heads = static_cast<int32_t>(h.heads);
  a.kv_heads = static_cast<int32_t>(h.kv_heads);
  a.head_dim = static_cast<int32_t>(h.head_dim);
  a.scale = static_cast<float>(h.attention_scale);
  a.rope = rope;
  const int64_t q_rows = h.heads * h.head_dim;
  const int64_t kv_rows = h.kv_heads * h.head_dim;
  VIVACE_ASSIGN(a.norm, weights.Vector(blk + "attn_norm.weight", h.hidden));
  VIVACE_ASSIGN(a.q, weights.Matrix(blk + "attn_q.weight", q_rows, h.hidden));
  VIVACE_ASSIGN(a.k, weights.Matrix(blk + "attn_k.weight", kv_rows, h.hidden));
  VIVACE_ASSIGN(a.v, weights.Matrix(blk + "attn_v.weight", kv_rows, h.hidden));
  VIVACE_ASSIGN(a.o, weights.Matrix(blk + "attn_output.weight", h.hidden, q_rows));
  VIVACE_ASSIGN(a.q_bias, weights.OptionalVector(blk + "attn_q.bias", q_rows));
  VIVACE_ASSIGN(a.k_bias, weights.OptionalVector(blk + "attn_k.bias", kv_rows));
  VIVACE_ASSIGN(a.v_bias, weights.OptionalVector(blk + "attn_v.bias", kv_rows));
  VIVACE_ASSIGN(a.o_bias, weights.OptionalVector(blk + "attn_output.bias", h.hidden));
  return a;
}

Result<MlpSpec> BuildMlp(WeightTable& weights, const Hparams& h, const std::string& blk) {
  MlpSpec m;
  m.ffn = static_cast<int32_t>(h.ffn);
  m.activation = kernels::Activation::kSilu;
  VIVACE_ASSIGN(m.norm, weights.Vector(blk + "ffn_norm.weight", h.hidden));
  VIVACE_ASSIGN(m.gate, weights.Matrix(blk + "ffn_gate.weight", h.ffn, h.hidden));
  VIVACE_ASSIGN(m.up, weights.Matrix(blk + "ffn_up.weight", h.ffn, h.hidden));
  VIVACE_ASSIGN(m.down, weights.Matrix(blk + "ffn_down.weight", h.hidden, h.ffn));
  VIVACE_ASSIGN(m.gate_bias, weights.OptionalVector(blk + "ffn_gate.bias", h.ffn));
  VIVACE_ASSIGN(m.up_bias, weights.OptionalVector(blk + "ffn_up.bias", h.ffn));
  VIVACE_ASSIGN(m.down_bias, weights.OptionalVector(blk + "ffn_down.bias", h.hidden));
  return m;
}

// Without an output matrix of its own the model's head is its embedding. A file that has both,
// equal or not, means what it says.
Status BuildEnds(WeightTable& weights, const Hparams& h, ModelSpec& spec) {
  VIVACE_ASSIGN(spec.embedding, weights.Matrix("token_embd.weight", h.vocab, h.hidden));
  VIVACE_ASSIGN(spec.final_norm, weights.Vector("output_norm.weight", h.hidden));
  spec.tied_embeddings = !weights.Has("output.weight");
  if (spec.tied_embeddings) {
    spec.lm_head = spec.embedding;
    return {};
  }
  VIVACE_ASSIGN(spec.lm_head, weights.Matrix("output.weight", h.vocab, h.hidden));
  return {};
}

Result<ModelSpec> BuildLlama(const ModelSource& source) {
  VIVACE_ASSIGN(const Hparams h, ReadHparams(source));
  if (h.experts > 0) {
    return source.KeyFault(ErrorCode::kUnsupported, "unsupported", "expert_count",
                           fmt::format("is {}: mixtures of experts are not supported", h.experts));
  }
  ModelSpec spec;
  spec.architecture = kLlamaRecipe.name;
  spec.name = source.model_name();
  spec.vocab = static_cast<int32_t>(h.vocab);
  spec.hidden = static_cast<int32_t>(h.hidden);
  spec.context = static_cast<int32_t>(std::min<int64_t>(h.context, INT32_MAX));
  spec.norm_eps = static_cast<float>(h.norm_eps);
  spec.notes = h.notes;

  WeightTable weights(source);
  VIVACE_RETURN_IF_ERROR(BuildEnds(weights, h, spec));
  VIVACE_ASSIGN(RopeSpec rope, ReadRope(source, h, kInterleavedRope));
  VIVACE_RETURN_IF_ERROR(ReadFreqDivisors(source, weights, rope));
  for (int64_t i = 0; i < h.layers; ++i) {
    const std::string blk = fmt::format("blk.{}.", i);
    LayerSpec layer;
    VIVACE_ASSIGN(layer.attention, BuildAttention(weights, h, rope, blk));
    VIVACE_ASSIGN(layer.mlp, BuildMlp(weights, h, blk));
    spec.layers.push_back(std::move(layer));
  }
  VIVACE_RETURN_IF_ERROR(weights.CheckAllUsed());
  return spec;
}

constexpr std::string_view kArchitectures[] = {"llama"};

}  // namespace

const Recipe kLlamaRecipe = {"llama", kArchitectures, BuildLlama};

}  // namespace vivace::model
