#include "model/recipes/recurrent_family.h"

#include "base/limits.h"

namespace vivace::model {

using kernels::RecurrentGeometry;
using kernels::RecurrentKind;

Result<std::vector<bool>> RecurrentLayers(const Decoder& d) {
  constexpr std::string_view kKvHeads = "attention.head_count_kv";
  const ModelSource& source = d.source();
  const int64_t layers = d.hparams().layers;
  if (source.Has(kRecurrentLayers) || !d.is_gguf()) {
    return ReadLayerFlags(source, kRecurrentLayers, layers);
  }
  VIVACE_ASSIGN(std::vector<bool> flags, ReadLayerFlags(source, kKvHeads, layers));
  flags.flip();
  return flags;
}

Result<int64_t> ReadConvWidth(const ModelSource& source, std::string_view key) {
  return ReadIntInRange(source, key, 2, RecurrentGeometry::kMaxConvWidth);
}

Result<RecurrentGeometry> ReadStates(const ModelSource& source, RecurrentKind kind, int64_t inner) {
  using limits::kMaxRecurrentHeads;
  const auto read = [&](std::string_view key, int64_t most) {
    return ReadIntInRange(source, key, 1, most);
  };
  VIVACE_ASSIGN(const int64_t heads, read("ssm.time_step_rank", kMaxRecurrentHeads));
  VIVACE_ASSIGN(const int64_t groups, read("ssm.group_count", kMaxRecurrentHeads));
  VIVACE_ASSIGN(const int64_t state, read("ssm.state_size", RecurrentGeometry::kMaxKeyDim));
  VIVACE_ASSIGN(const int64_t width, ReadConvWidth(source, "ssm.conv_kernel"));
  if (inner % heads != 0 || inner / heads > limits::kMaxRecurrentValueDim || heads % groups != 0) {
    return source.KeyFault(
        ErrorCode::kCorruptData, "hparam_range", "ssm.time_step_rank",
        fmt::format("is {}, which {} groups and a width of {} do not fit", heads, groups, inner));
  }
  return RecurrentGeometry{.kind = kind,
                           .heads = static_cast<int32_t>(heads),
                           .key_heads = static_cast<int32_t>(groups),
                           .key_dim = static_cast<int32_t>(state),
                           .value_dim = static_cast<int32_t>(inner / heads),
                           .conv_width = static_cast<int32_t>(width)};
}

Result<WeightSpec> ConvTaps(Decoder& d, const std::string& name, int64_t channels, int64_t width) {
  WeightSpec turned;
  turned.rows = static_cast<int32_t>(width);
  turned.cols = static_cast<int32_t>(channels);
  turned.transposed = true;
  if (d.is_gguf()) return d.weights().Placed(name, {channels, width}, std::move(turned));
  return d.weights().Placed(name, {channels, 1, width}, std::move(turned));
}

Result<WeightSpec> PerHead(Decoder& d, const std::string& name, const RecurrentSpec& spec) {
  const int32_t heads = spec.geometry.heads;
  if (!d.is_gguf() || spec.geometry.kind != RecurrentKind::kMamba2) {
    return d.weights().Vector(name, heads);
  }
  return d.weights().Matrix(name, heads, 1);
}

Status NameStateParts(Decoder& d, int64_t layer, RecurrentSpec* spec) {
  const std::string blk = Decoder::Block(layer);
  const RecurrentGeometry& g = spec->geometry;
  WeightTable& weights = d.weights();
  VIVACE_ASSIGN(spec->conv_weight,
                ConvTaps(d, blk + "ssm_conv1d.weight", g.conv_channels(), g.conv_width));
  VIVACE_ASSIGN(spec->decay, PerHead(d, blk + "ssm_a", *spec));
  spec->decay.neg_exp = !d.is_gguf();
  VIVACE_ASSIGN(spec->dt_bias, weights.Vector(blk + "ssm_dt.bias", g.heads));
  VIVACE_ASSIGN(spec->o, weights.Linear(blk + "ssm_out", d.hparams().hidden, g.inner()));
  return {};
}

}  // namespace vivace::model
