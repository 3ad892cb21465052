// Granite 4: granite, most of whose layers are Mamba-2 (arXiv:2405.21060) in the attention's place.
// With experts, which weigh in by a softmax of those chosen, every token uses a shared one besides;
// without, the shared one is the MLP. Attention is rotated, or not at all.
#include "base/limits.h"
#include "model/recipes/granite_family.h"
#include "model/recipes/list.h"
#include "model/recipes/recurrent_family.h"

namespace vivace::model {
namespace {

// GGUF files have the width of all heads; in folders it is a multiple of the model's.
Result<int64_t> MambaWidth(const Decoder& d) {
  constexpr std::string_view kInner = "ssm.inner_size";
  if (d.is_gguf()) return ReadIntInRange(d.source(), kInner, 1, limits::kMaxFfn);
  VIVACE_ASSIGN(const int64_t factor, ReadIntInRange(d.source(), "ssm.expand", 1, 16));
  return factor * d.hparams().hidden;
}

// Bounds of a step's length, where a folder has them.
Status ReadStepLimits(const ModelSource& source, RecurrentSpec* spec) {
  constexpr std::string_view kLimits = "ssm.time_step_limit";
  if (!source.Has(kLimits)) return {};
  VIVACE_ASSIGN(const std::vector<double> bounds, source.GetFloats(kLimits));
  if (bounds.size() != 2 || !(bounds[0] >= 0 && bounds[0] <= bounds[1])) {
    return source.KeyFault(ErrorCode::kCorruptData, "hparam_range", kLimits,
                           "is not the least and the greatest length of a step");
  }
  spec->min_dt = static_cast<float>(bounds[0]);
  spec->max_dt = static_cast<float>(bounds[1]);
  return {};
}

Result<RecurrentSpec> Mamba(Decoder& d, int64_t layer, const RecurrentSpec& shared) {
  const std::string blk = Decoder::Block(layer);
  WeightTable& weights = d.weights();
  RecurrentSpec spec = shared;
  const kernels::RecurrentGeometry& g = spec.geometry;
  const int32_t keys = g.key_heads * g.key_dim;
  VIVACE_ASSIGN(
      spec.input.emplace_back(),
      weights.Linear(blk + "ssm_in", 2 * g.inner() + 2 * keys + g.heads, d.hparams().hidden));
  VIVACE_RETURN_IF_ERROR(NameStateParts(d, layer, &spec));
  const std::string bias = blk + "ssm_conv1d.bias";
  if (weights.Has(bias)) {
    VIVACE_ASSIGN(spec.conv_bias, weights.Vector(bias, g.conv_channels()));
  }
  VIVACE_ASSIGN(spec.skip, PerHead(d, blk + "ssm_d", spec));
  spec.out_norm.eps = static_cast<float>(d.hparams().norm_eps);
  // GGUF files have it by group.
  WeightSpec norm;
  norm.rows = d.is_gguf() ? g.key_heads : 1;
  norm.cols = g.inner() / norm.rows;
  VIVACE_ASSIGN(spec.out_norm.weight,
                weights.Placed(blk + "ssm_norm.weight", {norm.rows, norm.cols}, norm));
  return spec;
}

Result<RecurrentSpec> ReadMamba(const Decoder& d) {
  const ModelSource& source = d.source();
  RecurrentSpec spec;
  VIVACE_ASSIGN(const int64_t inner, MambaWidth(d));
  VIVACE_ASSIGN(spec.geometry, ReadStates(source, kernels::RecurrentKind::kMamba2, inner));
  VIVACE_RETURN_IF_ERROR(ReadStepLimits(source, &spec));
  // z, x, B, C and the steps, one after the other.
  const kernels::RecurrentGeometry& g = spec.geometry;
  const int32_t per_key = g.inner() / g.key_heads, keys = g.key_heads * g.key_dim;
  spec.z = {0, per_key};
  spec.v = {g.inner(), per_key};
  spec.k = {2 * g.inner(), g.key_dim};
  spec.q = {2 * g.inner() + keys, g.key_dim};
  spec.a = {2 * g.inner() + 2 * keys, g.heads / g.key_heads};
  return spec;
}

Result<bool> IsRotated(const ModelSource& source) {
  if (source.format() == SourceFormat::kGguf) {
    return ReadBoolOr(source, "rope.scaling.finetuned", true);  // which in these files says so
  }
  constexpr std::string_view kType = "position_embedding_type";
  if (!source.Has(kType)) return false;
  VIVACE_ASSIGN(const std::string_view type, source.GetString(kType));
  return type == "rope";
}

Result<ModelSpec> Build(const ModelSource& source) {
  // Folders keep gate and up of the shared MLP in one matrix.
  VIVACE_ASSIGN(Decoder d,
                Decoder::Open(source, kGraniteHybrid.name,
                              {.fused_gate_up = source.format() == SourceFormat::kHuggingFace,
                               .gguf_interleaved_rope = true}));
  VIVACE_RETURN_IF_ERROR(ReadGraniteScales(d));
  VIVACE_ASSIGN(const std::vector<bool> recurrent, RecurrentLayers(d));
  RecurrentSpec mamba;
  if (std::ranges::count(recurrent, true) > 0) {
    VIVACE_ASSIGN(mamba, ReadMamba(d));
  }
  VIVACE_ASSIGN(const bool rotated, IsRotated(source));
  if (!rotated) d.rope() = {};
  VIVACE_ASSIGN(const int64_t experts, ReadIntOr(source, "expert_count", 0, UINT32_MAX, 0));
  VIVACE_ASSIGN(const int64_t shared, ReadIntOr(source, "expert_shared_feed_forward_length", 1,
                                                limits::kMaxFfn, d.hparams().ffn));
  d.has_attention = [&](int64_t i) { return !recurrent[static_cast<size_t>(i)]; };
  d.has_dense_mlp = [](int64_t) { return false; };
  return d.Build([&](int64_t i, LayerSpec* layer) -> Status {
    if (recurrent[static_cast<size_t>(i)]) {
      VIVACE_ASSIGN(layer->recurrent, Mamba(d, i, mamba));
    }
    if (experts == 0) {
      VIVACE_ASSIGN(layer->mlp.dense, d.FeedForward(i, "", shared));
      return {};
    }
    VIVACE_ASSIGN(MoeSpec moe,
                  d.Moe(i, d.hparams().ffn, {.score = kernels::RouterScore::kSoftmaxOfChosen}));
    VIVACE_ASSIGN(moe.shared, d.FeedForward(i, "_shexp", shared));
    layer->mlp.moe = std::move(moe);
    return {};
  });
}

constexpr std::string_view kGguf[] = {"granitehybrid"};
constexpr std::string_view kHf[] = {"GraniteMoeHybridForCausalLM"};
constexpr HfKey kKeys[] = {
    {"expert_shared_feed_forward_length", "shared_intermediate_size"},
    {"position_embedding_type", "position_embedding_type"},
    {"ssm.conv_kernel", "mamba_d_conv"},
    {"ssm.expand", "mamba_expand"},
    {"ssm.group_count", "mamba_n_groups"},
    {"ssm.state_size", "mamba_d_state"},
    {"ssm.time_step_limit", "time_step_limit"},
    {"ssm.time_step_rank", "mamba_n_heads"},
};
constexpr HfTensorName kTensors[] = {
    {"blk.{}.ffn_up", "model.layers.{}.shared_mlp.input_linear"},
    {"blk.{}.ffn_down", "model.layers.{}.shared_mlp.output_linear"},
    {"blk.{}.ffn_up_shexp", "model.layers.{}.shared_mlp.input_linear"},
    {"blk.{}.ffn_down_shexp", "model.layers.{}.shared_mlp.output_linear"},
    {"blk.{}.ffn_gate_inp", "model.layers.{}.block_sparse_moe.router.layer"},
    {"blk.{}.ffn_gate_up_exps", "model.layers.{}.block_sparse_moe.input_linear"},
    {"blk.{}.ffn_down_exps", "model.layers.{}.block_sparse_moe.output_linear"},
    {"blk.{}.ssm_in", "model.layers.{}.mamba.in_proj"},
    {"blk.{}.ssm_conv1d", "model.layers.{}.mamba.conv1d"},
    {"blk.{}.ssm_a", "model.layers.{}.mamba.A_log!"},
    {"blk.{}.ssm_d", "model.layers.{}.mamba.D!"},
    {"blk.{}.ssm_dt.bias", "model.layers.{}.mamba.dt_bias!"},
    {"blk.{}.ssm_norm", "model.layers.{}.mamba.norm"},
    {"blk.{}.ssm_out", "model.layers.{}.mamba.out_proj"},
};

}  // namespace

const Recipe kGraniteHybrid = {
    "granitemoehybrid", kGguf, {kHf, kKeys, kTensors, kGraniteDefaults}, Build};

}  // namespace vivace::model
