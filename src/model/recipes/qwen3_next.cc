// Qwen 3 Next: three of four layers are a gated delta rule (arXiv:2412.06464) in the attention's
// place; attention has an output gate beside each query. Norms but those of the delta rule are
// stored less one; experts are those of Qwen 2 with a shared one.
#include "base/limits.h"
#include "model/recipes/list.h"
#include "model/recipes/qwen_family.h"
#include "model/recipes/recurrent_family.h"

namespace vivace::model {
namespace {

// GGUF files, and folders without a list, have every n-th layer attend.
Result<std::vector<bool>> DeltaLayers(const Decoder& d) {
  if (d.source().Has(kRecurrentLayers)) return RecurrentLayers(d);
  VIVACE_ASSIGN(const int64_t interval,
                ReadIntOr(d.source(), "full_attention_interval", 1, limits::kMaxLayers, 4));
  std::vector<bool> layers(static_cast<size_t>(d.hparams().layers));
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i] = (static_cast<int64_t>(i) + 1) % interval != 0;
  }
  return layers;
}

Result<int64_t> ValueWidth(const ModelSource& source) {
  if (source.format() == SourceFormat::kGguf) {
    return ReadIntInRange(source, "ssm.inner_size", 1, limits::kMaxFfn);
  }
  VIVACE_ASSIGN(const int64_t dim,
                ReadIntInRange(source, "ssm.value_dim", 1, limits::kMaxRecurrentValueDim));
  VIVACE_ASSIGN(const int64_t heads,
                ReadIntInRange(source, "ssm.time_step_rank", 1, limits::kMaxRecurrentHeads));
  return dim * heads;
}

// Of each key head q and k, then v and z of its value heads; newer GGUF files have all of q, k and
// v in one matrix and z in another. b and a of each key head's value heads are a matrix in all.
Status NameInput(Decoder& d, const std::string& blk, RecurrentSpec* spec) {
  const kernels::RecurrentGeometry& g = spec->geometry;
  const int32_t keys = g.key_heads * g.key_dim;
  const int32_t per_key = g.heads / g.key_heads, values = per_key * g.value_dim;
  const int64_t hidden = d.hparams().hidden;
  WeightTable& weights = d.weights();
  if (weights.Has(blk + "ssm_in.weight")) {
    const int32_t stride = 2 * g.key_dim + 2 * values;
    VIVACE_ASSIGN(spec->input.emplace_back(),
                  weights.Linear(blk + "ssm_in", 2 * keys + 2 * g.inner(), hidden, Bias::kNone));
    spec->q = {0, stride};
    spec->k = {g.key_dim, stride};
    spec->v = {2 * g.key_dim, stride};
    spec->z = {2 * g.key_dim + values, stride};
  } else {
    VIVACE_ASSIGN(spec->input.emplace_back(),
                  weights.Linear(blk + "attn_qkv", 2 * keys + g.inner(), hidden, Bias::kNone));
    VIVACE_ASSIGN(spec->input.emplace_back(),
                  weights.Linear(blk + "attn_gate", g.inner(), hidden, Bias::kNone));
    spec->q = {0, g.key_dim};
    spec->k = {keys, g.key_dim};
    spec->v = {2 * keys, values};
    spec->z = {2 * keys + g.inner(), values};
  }
  const int32_t first = 2 * keys + 2 * g.inner();
  VIVACE_ASSIGN(spec->input.emplace_back(),
                weights.Linear(blk + "ssm_ba", 2 * g.heads, hidden, Bias::kNone));
  spec->input.back().weight.full = true;  // small, and exponents are made of it
  spec->b = {first, 2 * per_key};
  spec->a = {first + per_key, 2 * per_key};
  return {};
}

Result<RecurrentSpec> Delta(Decoder& d, int64_t layer, const kernels::RecurrentGeometry& geometry) {
  const std::string blk = Decoder::Block(layer);
  RecurrentSpec spec;
  spec.geometry = geometry;
  VIVACE_RETURN_IF_ERROR(NameInput(d, blk, &spec));
  VIVACE_RETURN_IF_ERROR(NameStateParts(d, layer, &spec));
  spec.out_norm.eps = static_cast<float>(d.hparams().norm_eps);
  VIVACE_ASSIGN(spec.out_norm.weight,
                d.weights().Vector(blk + "ssm_norm.weight", geometry.value_dim));
  return spec;
}

// Heads that guess further tokens, which nothing here asks.
void IgnoreExtraHeads(Decoder& d) {
  for (const std::string_view name : d.source().TensorNames()) {
    if (name.starts_with("mtp.")) d.weights().Ignore(name);
  }
}

Result<ModelSpec> Build(const ModelSource& source) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, kQwen3Next.name,
                                         {.hf_norm_offset = 1.0f,
                                          .gguf_mlp_norm = "post_attention_norm",
                                          .qk_norm = QkNorm::kPerHead,
                                          .output_gate = true,
                                          .rope_fraction = 0.25}));
  VIVACE_ASSIGN(const std::vector<bool> delta, DeltaLayers(d));
  VIVACE_ASSIGN(const int64_t inner, ValueWidth(source));
  VIVACE_ASSIGN(const kernels::RecurrentGeometry geometry,
                ReadStates(source, kernels::RecurrentKind::kGatedDelta, inner));
  VIVACE_ASSIGN(const std::vector<bool> dense, QwenDenseLayers(d));
  VIVACE_ASSIGN(const QwenExperts experts, ReadQwenExperts(d));
  IgnoreExtraHeads(d);
  d.has_attention = [&](int64_t i) { return !delta[static_cast<size_t>(i)]; };
  d.has_dense_mlp = [&](int64_t i) { return dense[static_cast<size_t>(i)]; };
  return d.Build([&](int64_t i, LayerSpec* layer) -> Status {
    if (delta[static_cast<size_t>(i)]) {
      VIVACE_ASSIGN(layer->recurrent, Delta(d, i, geometry));
    }
    if (dense[static_cast<size_t>(i)]) return {};
    VIVACE_ASSIGN(layer->mlp.moe, QwenSharedMoe(d, i, experts, {.normalize = true}));
    return {};
  });
}

constexpr std::string_view kGguf[] = {"qwen3next"};
constexpr std::string_view kHf[] = {"Qwen3NextForCausalLM"};
constexpr HfKey kKeys[] = {
    {"full_attention_interval", "full_attention_interval"},
    {"ssm.conv_kernel", "linear_conv_kernel_dim"},
    {"ssm.group_count", "linear_num_key_heads"},
    {"ssm.state_size", "linear_key_head_dim"},
    {"ssm.time_step_rank", "linear_num_value_heads"},
    {"ssm.value_dim", "linear_value_head_dim"},
};
constexpr HfTensorName kTensors[] = {
    {"blk.{}.ssm_in", "model.layers.{}.linear_attn.in_proj_qkvz"},
    {"blk.{}.ssm_ba", "model.layers.{}.linear_attn.in_proj_ba"},
    {"blk.{}.ssm_conv1d", "model.layers.{}.linear_attn.conv1d"},
    {"blk.{}.ssm_a", "model.layers.{}.linear_attn.A_log!"},
    {"blk.{}.ssm_dt.bias", "model.layers.{}.linear_attn.dt_bias!"},
    {"blk.{}.ssm_norm", "model.layers.{}.linear_attn.norm"},
    {"blk.{}.ssm_out", "model.layers.{}.linear_attn.out_proj"},
};

}  // namespace

const Recipe kQwen3Next = {"qwen3_next", kGguf, {kHf, kKeys, kTensors}, Build};

}  // namespace vivace::model
