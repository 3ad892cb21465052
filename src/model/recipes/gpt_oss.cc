// gpt-oss: a sink in each head's softmax, experts with biases and a clamped activation, a router
// that weighs only the experts it chose, YaRN. Experts may be MXFP4, which Hugging Face keeps in
// two tensors each; there gate and up take turns.
#include "base/limits.h"
#include "model/decoder.h"
#include "model/recipes/list.h"

namespace vivace::model {
namespace {

// Of one expert, as a Hugging Face folder has them.
struct Stacked {
  std::string name;  // "blk.0.ffn_gate_up_exps", without suffix
  int64_t expert;
  int64_t experts;
};

// Floats are stored [experts, inputs, outputs], MXFP4 is [experts, outputs, inputs].
Result<LinearSpec> HfLinear(WeightTable& weights, const Stacked& at, const RowRange& rows,
                            int64_t cols) {
  LinearSpec linear;
  const std::string blocks = at.name + ".blocks";
  if (weights.Has(blocks)) {
    VIVACE_ASSIGN(linear.weight,
                  weights.MxSlice(blocks, at.name + ".scales", at.expert, at.experts, rows, cols));
  } else {
    VIVACE_ASSIGN(linear.weight,
                  weights.TransposedSlice(at.name + ".weight", at.expert, at.experts, rows, cols));
  }
  VIVACE_ASSIGN(linear.bias, weights.VectorSlice(at.name + ".bias", at.expert, at.experts, rows));
  return linear;
}

Result<LinearSpec> GgufLinear(WeightTable& weights, const Stacked& at, const RowRange& rows,
                              int64_t cols) {
  LinearSpec linear;
  VIVACE_ASSIGN(linear.weight,
                weights.Slice(at.name + ".weight", at.expert, at.experts, rows, cols));
  VIVACE_ASSIGN(linear.bias, weights.VectorSlice(at.name + ".bias", at.expert, at.experts, rows));
  return linear;
}

Result<FeedForwardSpec> Expert(Decoder& d, int64_t layer, int64_t expert, int64_t experts,
                               int64_t ffn) {
  WeightTable& weights = d.weights();
  const std::string blk = Decoder::Block(layer);
  const int64_t hidden = d.hparams().hidden;
  FeedForwardSpec spec;
  spec.ffn = static_cast<int32_t>(ffn);
  const RowRange all = {ffn, 0, ffn}, back = {hidden, 0, hidden};
  const auto at = [&](const char* stem) { return Stacked{blk + stem, expert, experts}; };
  if (d.is_gguf()) {
    VIVACE_ASSIGN(spec.gate, GgufLinear(weights, at("ffn_gate_exps"), all, hidden));
    VIVACE_ASSIGN(spec.up, GgufLinear(weights, at("ffn_up_exps"), all, hidden));
    VIVACE_ASSIGN(spec.down, GgufLinear(weights, at("ffn_down_exps"), back, ffn));
    return spec;
  }
  const Stacked gate_up = at("ffn_gate_up_exps");
  VIVACE_ASSIGN(spec.gate, HfLinear(weights, gate_up, {2 * ffn, 0, ffn, 2}, hidden));
  VIVACE_ASSIGN(spec.up, HfLinear(weights, gate_up, {2 * ffn, 1, ffn, 2}, hidden));
  VIVACE_ASSIGN(spec.down, HfLinear(weights, at("ffn_down_exps"), back, ffn));
  return spec;
}

Status BuildLayer(Decoder& d, int64_t i, int64_t ffn, LayerSpec* layer) {
  const std::string blk = Decoder::Block(i);
  VIVACE_ASSIGN(layer->attention.sinks,
                d.weights().Vector(blk + "attn_sinks.weight", d.hparams().heads));
  VIVACE_ASSIGN(MoeSpec moe, d.Router(i, {.score = kernels::RouterScore::kSoftmaxOfChosen,
                                          .router_bias = Bias::kNeeded}));
  for (int64_t expert = 0; expert < moe.router.experts; ++expert) {
    VIVACE_ASSIGN(FeedForwardSpec one, Expert(d, i, expert, moe.router.experts, ffn));
    moe.experts.push_back(std::move(one));
  }
  layer->mlp.moe = std::move(moe);
  return {};
}

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kGptOss.name,
                                         {.gguf_mlp_norm = "post_attention_norm",
                                          .activation = kernels::Activation::kSwigluClamped,
                                          .rope_theta = 150000.0}));
  // The ramp between turning and stretched pairs ends inside a pair; GGUF files do not say it.
  if (d.is_gguf()) d.rope().truncate = false;
  VIVACE_ASSIGN(d.windows, d.Windows(/*period=*/2));
  VIVACE_ASSIGN(const int64_t ffn, ReadIntOr(source, "expert_feed_forward_length", 1,
                                             limits::kMaxFfn, d.hparams().ffn));
  VIVACE_ASSIGN(const double alpha, ReadFloatOr(source, "swiglu_alpha", 1e-3, 1e3, 1.702));
  VIVACE_ASSIGN(const double limit, ReadFloatOr(source, "swiglu_limit", 1e-3, 1e6, 7.0));
  d.has_dense_mlp = [](int64_t) { return false; };
  return d.Build([&](int64_t i, LayerSpec* layer) -> Status {
    layer->mlp.activation_alpha = static_cast<float>(alpha);
    layer->mlp.activation_limit = static_cast<float>(limit);
    return BuildLayer(d, i, ffn, layer);
  });
}

constexpr std::string_view kGguf[] = {"gpt-oss"};
constexpr std::string_view kHf[] = {"GptOssForCausalLM"};
constexpr HfKey kKeys[] = {{"swiglu_alpha", "swiglu_alpha"}, {"swiglu_limit", "swiglu_limit"}};
constexpr HfTensorName kTensors[] = {
    {"blk.{}.attn_sinks.weight", "model.layers.{}.self_attn.sinks!"},
    {"blk.{}.ffn_gate_inp", "model.layers.{}.mlp.router"},
    {"blk.{}.ffn_gate_up_exps.weight", "model.layers.{}.mlp.experts.gate_up_proj!"},
    {"blk.{}.ffn_gate_up_exps.bias", "model.layers.{}.mlp.experts.gate_up_proj_bias!"},
    {"blk.{}.ffn_gate_up_exps.blocks", "model.layers.{}.mlp.experts.gate_up_proj_blocks!"},
    {"blk.{}.ffn_gate_up_exps.scales", "model.layers.{}.mlp.experts.gate_up_proj_scales!"},
    {"blk.{}.ffn_down_exps.weight", "model.layers.{}.mlp.experts.down_proj!"},
    {"blk.{}.ffn_down_exps.bias", "model.layers.{}.mlp.experts.down_proj_bias!"},
    {"blk.{}.ffn_down_exps.blocks", "model.layers.{}.mlp.experts.down_proj_blocks!"},
    {"blk.{}.ffn_down_exps.scales", "model.layers.{}.mlp.experts.down_proj_scales!"},
};
constexpr HfDefault kDefaults[] = {
    {"attention.sliding_window", 128, /*null_is_none=*/true},
};

}  // namespace

const Recipe kGptOss = {"gpt_oss", kGguf, {kHf, kKeys, kTensors, kDefaults}, Build};

}  // namespace vivace::model
