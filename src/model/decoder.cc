#include "model/decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "formats/untrusted.h"
#include "model/rope_config.h"

namespace vivace::model {
namespace {

struct ActivationName {
  std::string_view name;
  kernels::Activation activation;
};
constexpr ActivationName kActivations[] = {
    {"silu", kernels::Activation::kSilu},
    {"swish", kernels::Activation::kSilu},
    {"gelu", kernels::Activation::kGelu},
    {"gelu_new", kernels::Activation::kGeluTanh},
    {"gelu_pytorch_tanh", kernels::Activation::kGeluTanh},
    {"relu2", kernels::Activation::kRelu2},
};

}  // namespace

Result<Decoder> Decoder::Open(const ModelSource& source, std::string_view recipe,
                              const FamilyTraits& traits) {
  Decoder d(source, traits);
  const bool layer_norm = traits.norm == kernels::NormKind::kLayer;
  VIVACE_ASSIGN(
      d.hparams_,
      ReadHparams(source, {.norm_eps_key = layer_norm ? "attention.layer_norm_epsilon"
                                                      : "attention.layer_norm_rms_epsilon",
                           .rope_theta = traits.rope_theta,
                           .rope_fraction = traits.rope_fraction,
                           .heads_are_latent = traits.latent}));
  VIVACE_RETURN_IF_ERROR(d.ReadActivation());
  VIVACE_RETURN_IF_ERROR(d.ReadBiasRules());
  VIVACE_RETURN_IF_ERROR(d.CheckCausal());
  const bool interleaved = d.is_gguf() ? traits.gguf_interleaved_rope : traits.hf_interleaved_rope;
  VIVACE_ASSIGN(d.rope_, ReadRope(source, d.hparams_, interleaved, &d.weights_));
  ModelSpec& spec = d.spec_;
  spec.architecture = recipe;
  spec.name = source.model_name();
  spec.vocab = static_cast<int32_t>(d.hparams_.vocab);
  spec.hidden = static_cast<int32_t>(d.hparams_.hidden);
  d.ReadContext();
  spec.notes = d.hparams_.notes;
  return d;
}

// A configuration of Hugging Face has the trained length, which the factor of its RoPE scaling
// makes longer; most with YaRN have both in one number. llama.cpp's converters write what is meant.
void Decoder::ReadContext() {
  const auto tokens = [](double count) {
    return static_cast<int32_t>(std::min<double>(count, INT32_MAX));
  };
  const auto trained = static_cast<double>(hparams_.context);
  spec_.context = tokens(trained);
  if (is_gguf() || traits_.hf_context_is_scaled) return;
  const double factor = rope_.factor;
  if (rope_.scaling == RopeScaling::kLinear) spec_.context = tokens(trained * factor);
  if (rope_.scaling == RopeScaling::kDynamic) spec_.longest_context = tokens(trained * factor);
  if (rope_.scaling == RopeScaling::kYarn) {
    spec_.context = tokens(std::max(trained, rope_.original_context * factor));
  }
}

Status Decoder::ReadActivation() {
  if (traits_.activation == kernels::Activation::kSwigluClamped) return {};
  if (!source_->Has("hidden_activation")) return {};
  VIVACE_ASSIGN(const std::string_view name, source_->GetString("hidden_activation"));
  const auto* found = std::ranges::find(kActivations, name, &ActivationName::name);
  if (found == std::end(kActivations)) {
    return source_->KeyFault(
        ErrorCode::kUnsupported, "unsupported", "hidden_activation",
        fmt::format("the activation {} is not supported", formats::Printable(name)));
  }
  traits_.activation = found->activation;
  return {};
}

// A file may say that attention or MLP have no biases.
Status Decoder::ReadBiasRules() {
  VIVACE_ASSIGN(const bool attention, ReadBoolOr(*source_, "attention.bias", true));
  if (!attention && traits_.qkv_bias == Bias::kOptional) traits_.qkv_bias = Bias::kNone;
  if (!attention) o_bias_ = Bias::kNone;
  VIVACE_ASSIGN(const bool mlp, ReadBoolOr(*source_, "feed_forward.bias", true));
  if (!mlp) mlp_bias_ = Bias::kNone;
  return {};
}

Status Decoder::CheckCausal() const {
  VIVACE_ASSIGN(const bool both, ReadBoolOr(*source_, "attention.bidirectional", false));
  if (!both) return {};
  return source_->KeyFault(ErrorCode::kUnsupported, "unsupported", "attention.bidirectional",
                           "attention to later tokens is not supported");
}

Result<ModelSpec> Decoder::Build(const LayerHook& adjust) {
  VIVACE_RETURN_IF_ERROR(BuildEnds());
  for (int64_t i = 0; i < hparams_.layers; ++i) {
    LayerSpec layer;
    layer.parallel = traits_.parallel;
    layer.mlp.activation = traits_.activation;
    VIVACE_RETURN_IF_ERROR(BuildNorms(i, &layer));
    if (has_attention(i)) VIVACE_RETURN_IF_ERROR(BuildAttention(i, &layer.attention));
    if (has_dense_mlp(i)) {
      VIVACE_ASSIGN(layer.mlp.dense, FeedForward(i, "", hparams_.ffn));
    }
    if (adjust) VIVACE_RETURN_IF_ERROR(adjust(i, &layer));
    spec_.layers.push_back(std::move(layer));
  }
  VIVACE_RETURN_IF_ERROR(weights_.CheckAllUsed());
  if (std::ranges::all_of(spec_.layers, [](const auto& layer) { return !!layer.recurrent; })) {
    return source_->KeyFault(ErrorCode::kUnsupported, "unsupported", kRecurrentLayers,
                             "has no layer with attention, which is not supported");
  }
  return std::move(spec_);
}

Result<NormSpec> Decoder::Norm(const std::string& name, int64_t length) {
  NormSpec norm{.kind = traits_.norm, .eps = static_cast<float>(hparams_.norm_eps)};
  VIVACE_ASSIGN(norm.weight, weights_.Vector(name + ".weight", length));
  if (!is_gguf()) norm.weight.offset = traits_.hf_norm_offset;
  if (traits_.norm_bias) {
    VIVACE_ASSIGN(norm.bias, weights_.Vector(name + ".bias", length));
  }
  return norm;
}

// Without an output matrix of its own the model's head is its embedding. A file that has both,
// equal or not, means what it says.
Status Decoder::BuildEnds() {
  const Hparams& h = hparams_;
  VIVACE_ASSIGN(spec_.embedding, weights_.Matrix("token_embd.weight", h.vocab, h.hidden));
  VIVACE_ASSIGN(NormSpec norm, Norm(std::string(traits_.final_norm), h.hidden));
  // The recipe may have set a scale of the logits.
  norm.weight.scale = spec_.final_norm.weight.scale;
  spec_.final_norm = std::move(norm);
  VIVACE_ASSIGN(const bool may_tie, ReadBoolOr(*source_, "tie_word_embeddings", true));
  spec_.tied_embeddings = may_tie && !weights_.Has("output.weight");
  if (spec_.tied_embeddings) {
    spec_.lm_head.weight = spec_.embedding;
    return {};
  }
  VIVACE_ASSIGN(spec_.lm_head.weight, weights_.Matrix("output.weight", h.vocab, h.hidden));
  return {};
}

Status Decoder::BuildNorms(int64_t layer, LayerSpec* spec) {
  const std::string blk = Block(layer);
  const int64_t hidden = hparams_.hidden;
  if (traits_.pre_norms) {
    VIVACE_ASSIGN(spec->attention.norm, Norm(blk + "attn_norm", hidden));
    spec->mlp.norm = spec->attention.norm;
    if (!traits_.parallel) {
      const std::string_view stem = is_gguf() ? traits_.gguf_mlp_norm : "ffn_norm";
      VIVACE_ASSIGN(spec->mlp.norm, Norm(fmt::format("{}{}", blk, stem), hidden));
    }
  }
  if (traits_.post_norms) {
    VIVACE_ASSIGN(spec->attention.post_norm, Norm(blk + "post_attention_norm", hidden));
    VIVACE_ASSIGN(spec->mlp.post_norm, Norm(blk + "post_ffw_norm", hidden));
  }
  return {};
}

Status Decoder::BuildQkv(int64_t layer, AttentionSpec* a) {
  const Hparams& h = hparams_;
  const std::string blk = Block(layer);
  const int64_t q_rows = h.heads * h.head_dim, kv_rows = h.kv_heads * h.head_dim;
  const Bias bias = traits_.qkv_bias;
  if (traits_.fused_qkv && weights_.Has(blk + "attn_qkv.weight")) {
    const std::string name = blk + "attn_qkv";
    const int64_t total = q_rows + 2 * kv_rows;
    VIVACE_ASSIGN(a->q, weights_.Rows(name, {total, 0, q_rows}, h.hidden, bias));
    VIVACE_ASSIGN(a->k, weights_.Rows(name, {total, q_rows, kv_rows}, h.hidden, bias));
    VIVACE_ASSIGN(a->v, weights_.Rows(name, {total, q_rows + kv_rows, kv_rows}, h.hidden, bias));
    return {};
  }
  if (traits_.output_gate) {
    const RowRange q = {2 * q_rows, 0, q_rows, static_cast<int32_t>(2 * h.head_dim),
                        static_cast<int32_t>(h.head_dim)};
    RowRange gate = q;
    gate.first = h.head_dim;
    VIVACE_ASSIGN(a->q, weights_.Rows(blk + "attn_q", q, h.hidden, bias));
    VIVACE_ASSIGN(a->gate, weights_.Rows(blk + "attn_q", gate, h.hidden, bias));
  } else {
    VIVACE_ASSIGN(a->q, weights_.Linear(blk + "attn_q", q_rows, h.hidden, bias));
  }
  VIVACE_ASSIGN(a->k, weights_.Linear(blk + "attn_k", kv_rows, h.hidden, bias));
  VIVACE_ASSIGN(a->v, weights_.Linear(blk + "attn_v", kv_rows, h.hidden, bias));
  return {};
}

Status Decoder::BuildAttention(int64_t layer, AttentionSpec* a) {
  const Hparams& h = hparams_;
  const std::string blk = Block(layer);
  a->heads = static_cast<int32_t>(h.heads);
  a->kv_heads = static_cast<int32_t>(h.kv_heads);
  a->head_dim = static_cast<int32_t>(h.head_dim);
  a->scale = static_cast<float>(h.attention_scale);
  if (!windows.empty()) a->window = windows[static_cast<size_t>(layer)];
  a->rope = rope_;
  VIVACE_RETURN_IF_ERROR(BuildQkv(layer, a));
  VIVACE_ASSIGN(a->o,
                weights_.Linear(blk + "attn_output", h.hidden, h.heads * h.head_dim, o_bias_));
  a->qk_norm = traits_.qk_norm;
  if (traits_.qk_norm == QkNorm::kNone) return {};
  const bool whole = traits_.qk_norm == QkNorm::kWhole;
  VIVACE_ASSIGN(a->q_norm, Norm(blk + "attn_q_norm", whole ? h.heads * h.head_dim : h.head_dim));
  VIVACE_ASSIGN(a->k_norm, Norm(blk + "attn_k_norm", whole ? h.kv_heads * h.head_dim : h.head_dim));
  return {};
}

Result<FeedForwardSpec> Decoder::FeedForward(int64_t layer, std::string_view stem, int64_t ffn) {
  const std::string blk = Block(layer);
  const int64_t hidden = hparams_.hidden;
  FeedForwardSpec spec;
  spec.ffn = static_cast<int32_t>(ffn);
  const std::string gate = fmt::format("{}ffn_gate{}", blk, stem);
  const std::string up = fmt::format("{}ffn_up{}", blk, stem);
  if (traits_.fused_gate_up) {
    VIVACE_ASSIGN(spec.gate, weights_.Rows(up, {2 * ffn, 0, ffn}, hidden, mlp_bias_));
    VIVACE_ASSIGN(spec.up, weights_.Rows(up, {2 * ffn, ffn, ffn}, hidden, mlp_bias_));
  } else {
    if (traits_.gated) {
      VIVACE_ASSIGN(spec.gate, weights_.Linear(gate, ffn, hidden, mlp_bias_));
    }
    VIVACE_ASSIGN(spec.up, weights_.Linear(up, ffn, hidden, mlp_bias_));
  }
  VIVACE_ASSIGN(spec.down,
                weights_.Linear(fmt::format("{}ffn_down{}", blk, stem), hidden, ffn, mlp_bias_));
  return spec;
}

Result<FeedForwardSpec> Decoder::Expert(int64_t layer, int64_t expert, int64_t experts,
                                        int64_t ffn) {
  const std::string blk = Block(layer);
  const int64_t hidden = hparams_.hidden;
  FeedForwardSpec spec;
  spec.ffn = static_cast<int32_t>(ffn);
  if (!weights_.Has(blk + "ffn_down_exps.weight")) {  // one tensor for each expert
    return FeedForward(layer, fmt::format(".{}", expert), ffn);
  }
  const std::string fused = blk + "ffn_gate_up_exps.weight";
  const RowRange all = {ffn, 0, ffn};
  if (weights_.Has(fused)) {
    VIVACE_ASSIGN(spec.gate.weight,
                  weights_.Slice(fused, expert, experts, {2 * ffn, 0, ffn}, hidden));
    VIVACE_ASSIGN(spec.up.weight,
                  weights_.Slice(fused, expert, experts, {2 * ffn, ffn, ffn}, hidden));
  } else {
    VIVACE_ASSIGN(spec.gate.weight,
                  weights_.Slice(blk + "ffn_gate_exps.weight", expert, experts, all, hidden));
    VIVACE_ASSIGN(spec.up.weight,
                  weights_.Slice(blk + "ffn_up_exps.weight", expert, experts, all, hidden));
  }
  VIVACE_ASSIGN(spec.down.weight, weights_.Slice(blk + "ffn_down_exps.weight", expert, experts,
                                                 {hidden, 0, hidden}, ffn));
  return spec;
}

Result<MoeSpec> Decoder::Router(int64_t layer, const MoeTraits& traits) {
  VIVACE_ASSIGN(const int64_t experts,
                ReadIntInRange(*source_, "expert_count", 1, limits::kMaxExperts));
  VIVACE_ASSIGN(const int64_t used, ReadIntInRange(*source_, "expert_used_count", 1, experts));
  MoeSpec moe;
  RouterSpec& router = moe.router;
  router.experts = static_cast<int32_t>(experts);
  router.top_k = static_cast<int32_t>(used);
  router.score = traits.score;
  VIVACE_ASSIGN(router.normalize, ReadBoolOr(*source_, "expert_weights_norm", traits.normalize));
  VIVACE_ASSIGN(router.weight, weights_.Linear(Block(layer) + "ffn_gate_inp", experts,
                                               hparams_.hidden, traits.router_bias));
  router.weight.weight.full = true;
  return moe;
}

Result<MoeSpec> Decoder::Moe(int64_t layer, int64_t ffn, const MoeTraits& traits) {
  VIVACE_ASSIGN(MoeSpec moe, Router(layer, traits));
  for (int64_t expert = 0; expert < moe.router.experts; ++expert) {
    VIVACE_ASSIGN(FeedForwardSpec one, Expert(layer, expert, moe.router.experts, ffn));
    moe.experts.push_back(std::move(one));
  }
  return moe;
}

Status Decoder::CheckNoWindows() const {
  if (is_gguf() || !source_->Has(kWindowLayers)) return {};
  VIVACE_ASSIGN(const std::vector<bool> flags,
                ReadLayerFlags(*source_, kWindowLayers, hparams_.layers));
  if (std::ranges::find(flags, true) == flags.end()) return {};
  return source_->KeyFault(
      ErrorCode::kCorruptData, "hparam_range", kWindowLayers,
      "gives layers a sliding window, but the file has no window, or turns it off");
}

Result<std::vector<int32_t>> Decoder::Windows(int64_t period) const {
  const auto layers = static_cast<size_t>(hparams_.layers);
  std::vector<int32_t> windows(layers, 0);
  constexpr std::string_view kWindow = "attention.sliding_window";
  constexpr std::string_view kPeriod = "attention.sliding_window_period";
  VIVACE_ASSIGN(const bool enabled, ReadBoolOr(*source_, "attention.use_sliding_window", true));
  VIVACE_ASSIGN(const int64_t window, ReadIntOr(*source_, kWindow, 0, UINT32_MAX, 0));
  if (!enabled || window == 0) {
    VIVACE_RETURN_IF_ERROR(CheckNoWindows());
    return windows;
  }
  const auto width = static_cast<int32_t>(std::min<int64_t>(window, INT32_MAX));
  if (source_->Has(kWindowLayers)) {
    VIVACE_ASSIGN(const std::vector<bool> flags,
                  ReadLayerFlags(*source_, kWindowLayers, hparams_.layers));
    for (size_t i = 0; i < layers; ++i) windows[i] = flags[i] ? width : 0;
    return windows;
  }
  VIVACE_ASSIGN(period, ReadIntOr(*source_, kPeriod, 0, limits::kMaxLayers, period));
  for (size_t i = 0; i < layers; ++i) {
    const bool full = period != 0 && (static_cast<int64_t>(i) + 1) % period == 0;
    windows[i] = full ? 0 : width;
  }
  return windows;
}

Result<ModelSpec> BuildDecoder(const ModelSource& source, std::string_view recipe,
                               const FamilyTraits& traits) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, recipe, traits));
  return d.Build();
}

}  // namespace vivace::model
