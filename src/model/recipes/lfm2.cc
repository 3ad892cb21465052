// LFM2: most layers are short convolutions between two gates; those of attention have norms on each
// head of q and k.
#include "base/limits.h"
#include "model/recipes/list.h"
#include "model/recipes/recurrent_family.h"

namespace vivace::model {
namespace {

// A list of the layers with attention is how early folders say it.
Result<std::vector<bool>> ConvLayers(const Decoder& d) {
  constexpr std::string_view kAttentionLayers = "attention.layers";
  const ModelSource& source = d.source();
  if (source.Has(kRecurrentLayers) || !source.Has(kAttentionLayers)) return RecurrentLayers(d);
  VIVACE_ASSIGN(std::vector<bool> layers,
                ReadLayerList(source, kAttentionLayers, d.hparams().layers));
  layers.flip();
  return layers;
}

// Folders may say a width that is yet to be cut to two thirds and rounded up.
Result<int64_t> MlpWidth(const Decoder& d) {
  const ModelSource& source = d.source();
  const int64_t ffn = d.hparams().ffn;
  VIVACE_ASSIGN(const bool adjust, ReadBoolOr(source, "feed_forward.adjust", !d.is_gguf()));
  if (!adjust) return ffn;
  VIVACE_ASSIGN(const double factor, ReadFloatOr(source, "feed_forward.factor", 1e-3, 1e3, 1.0));
  VIVACE_ASSIGN(const int64_t multiple,
                ReadIntOr(source, "feed_forward.multiple", 1, limits::kMaxFfn, 256));
  const auto cut = static_cast<int64_t>(factor * static_cast<double>(2 * ffn / 3));
  const int64_t width = (cut + multiple - 1) / multiple * multiple;
  if (width >= 1 && width <= limits::kMaxFfn) return width;
  return source.KeyFault(ErrorCode::kCorruptData, "hparam_range", "feed_forward_length",
                         fmt::format("is {}, which is adjusted to {}; 1 to {} is allowed", ffn,
                                     width, limits::kMaxFfn));
}

Result<RecurrentSpec> Conv(Decoder& d, int64_t layer, int64_t width) {
  const std::string blk = Decoder::Block(layer);
  const int64_t hidden = d.hparams().hidden;
  WeightTable& weights = d.weights();
  RecurrentSpec spec;
  const auto inner = static_cast<int32_t>(hidden);
  spec.geometry = {.kind = kernels::RecurrentKind::kShortConv,
                   .value_dim = inner,
                   .conv_width = static_cast<int32_t>(width)};
  // b, c and x, one after the other.
  VIVACE_ASSIGN(spec.input.emplace_back(),
                weights.Linear(blk + "shortconv.in_proj", 3 * hidden, hidden));
  spec.z.first = inner;
  spec.v.first = 2 * inner;
  VIVACE_ASSIGN(spec.conv_weight, ConvTaps(d, blk + "shortconv.conv.weight", hidden, width));
  if (weights.Has(blk + "shortconv.conv.bias")) {
    VIVACE_ASSIGN(spec.conv_bias, weights.Vector(blk + "shortconv.conv.bias", hidden));
  }
  VIVACE_ASSIGN(spec.o, weights.Linear(blk + "shortconv.out_proj", hidden, hidden));
  return spec;
}

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kLfm2.name,
                                         {.final_norm = "token_embd_norm",
                                          .qk_norm = QkNorm::kPerHead,
                                          .qkv_bias = Bias::kNone,
                                          .bias = Bias::kNone,
                                          .rope_theta = 1e6}));
  VIVACE_ASSIGN(const std::vector<bool> conv, ConvLayers(d));
  VIVACE_ASSIGN(const int64_t width, ReadConvWidth(source, "shortconv.l_cache"));
  VIVACE_ASSIGN(const int64_t ffn, MlpWidth(d));
  d.has_attention = [&](int64_t i) { return !conv[static_cast<size_t>(i)]; };
  d.has_dense_mlp = [](int64_t) { return false; };
  return d.Build([&](int64_t i, LayerSpec* layer) -> Status {
    VIVACE_ASSIGN(layer->mlp.dense, d.FeedForward(i, "", ffn));
    if (!conv[static_cast<size_t>(i)]) return {};
    VIVACE_ASSIGN(layer->recurrent, Conv(d, i, width));
    return {};
  });
}

constexpr std::string_view kGguf[] = {"lfm2"};
constexpr std::string_view kHf[] = {"Lfm2ForCausalLM", "LFM2ForCausalLM"};
constexpr HfKey kKeys[] = {
    {"attention.layer_norm_rms_epsilon", "norm_eps"},
    {"attention.layers", "full_attn_idxs"},
    {"feed_forward_length", "block_ff_dim"},
    {"feed_forward.adjust", "block_auto_adjust_ff_dim"},
    {"feed_forward.factor", "block_ffn_dim_multiplier"},
    {"feed_forward.multiple", "block_multiple_of"},
    {"shortconv.l_cache", "conv_L_cache"},
};
constexpr HfTensorName kTensors[] = {
    {"token_embd_norm", "model.embedding_norm"},
    {"blk.{}.attn_norm", "model.layers.{}.operator_norm"},
    {"blk.{}.ffn_norm", "model.layers.{}.ffn_norm"},
    {"blk.{}.attn_output", "model.layers.{}.self_attn.out_proj"},
    {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_layernorm"},
    {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_layernorm"},
    {"blk.{}.ffn_gate", "model.layers.{}.feed_forward.w1"},
    {"blk.{}.ffn_down", "model.layers.{}.feed_forward.w2"},
    {"blk.{}.ffn_up", "model.layers.{}.feed_forward.w3"},
    {"blk.{}.shortconv.in_proj", "model.layers.{}.conv.in_proj"},
    {"blk.{}.shortconv.conv", "model.layers.{}.conv.conv"},
    {"blk.{}.shortconv.out_proj", "model.layers.{}.conv.out_proj"},
};

}  // namespace

const Recipe kLfm2 = {"lfm2", kGguf, {kHf, kKeys, kTensors}, Build};

}  // namespace vivace::model
