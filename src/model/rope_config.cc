#include "model/rope_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/rope.h"

namespace vivace::model {
namespace {

constexpr double kMaxFactor = 1e6;

struct Kind {
  std::string_view name;
  RopeScaling scaling;
};
constexpr Kind kKinds[] = {
    {"none", RopeScaling::kNone},
    {"linear", RopeScaling::kLinear},
    {"llama3", RopeScaling::kLlama3},
    {"yarn", RopeScaling::kYarn},
};

Result<double> FloatOr(const ModelSource& source, std::string_view key, double min, double max,
                       double fallback) {
  if (!source.Has(key)) return fallback;
  return ReadFloatInRange(source, key, min, max);
}

// Without a type, a factor means linear scaling; rope.scale_linear is its name in early files.
Result<RopeScaling> ReadKind(const ModelSource& source) {
  if (!source.Has("rope.scaling.type")) {
    const bool scaled = source.Has("rope.scaling.factor") || source.Has("rope.scale_linear");
    return scaled ? RopeScaling::kLinear : RopeScaling::kNone;
  }
  VIVACE_ASSIGN(const std::string_view name, source.GetString("rope.scaling.type"));
  const auto* kind = std::ranges::find(kKinds, name, &Kind::name);
  if (kind != std::end(kKinds)) return kind->scaling;
  return source.KeyFault(ErrorCode::kUnsupported, "unsupported", "rope.scaling.type",
                         "is neither none, linear, llama3 nor yarn");
}

Status ReadYarn(const ModelSource& source, RopeSpec& rope) {
  VIVACE_ASSIGN(const double fast,
                FloatOr(source, "rope.scaling.yarn_beta_fast", 1e-3, kMaxFactor, 32.0));
  VIVACE_ASSIGN(const double slow,
                FloatOr(source, "rope.scaling.yarn_beta_slow", 1e-3, kMaxFactor, 1.0));
  if (slow >= fast) {
    return source.KeyFault(ErrorCode::kCorruptData, "hparam_range", "rope.scaling.yarn_beta_slow",
                           fmt::format("is {}, not below beta_fast, {}", slow, fast));
  }
  // GGUF's factor multiplies yarn's own; RopeSpec holds the product.
  const std::string_view key = source.Has("rope.scaling.yarn_attn_factor")
                                   ? "rope.scaling.yarn_attn_factor"
                                   : "rope.scaling.attn_factor";
  VIVACE_ASSIGN(const double attention, FloatOr(source, key, 1e-3, 1e3, 1.0));
  rope.beta_fast = static_cast<float>(fast);
  rope.beta_slow = static_cast<float>(slow);
  rope.attention_factor = static_cast<float>(attention * YarnMscale(rope.factor));
  return {};
}

Status ReadLlama3(const ModelSource& source, RopeSpec& rope) {
  VIVACE_ASSIGN(const double low,
                FloatOr(source, "rope.scaling.low_freq_factor", 1e-3, kMaxFactor, 1.0));
  VIVACE_ASSIGN(const double high,
                FloatOr(source, "rope.scaling.high_freq_factor", 1e-3, kMaxFactor, 4.0));
  if (low >= high) {
    return source.KeyFault(ErrorCode::kCorruptData, "hparam_range", "rope.scaling.low_freq_factor",
                           fmt::format("is {}, not below high_freq_factor, {}", low, high));
  }
  rope.low_freq_factor = static_cast<float>(low);
  rope.high_freq_factor = static_cast<float>(high);
  return {};
}

}  // namespace

Result<RopeSpec> ReadRope(const ModelSource& source, const Hparams& hparams, bool interleaved) {
  RopeSpec rope;
  rope.dims = static_cast<int32_t>(hparams.rope_dims);
  rope.theta = static_cast<float>(hparams.rope_theta);
  rope.interleaved = interleaved;
  VIVACE_ASSIGN(rope.scaling, ReadKind(source));
  if (rope.scaling == RopeScaling::kNone) return rope;

  const std::string_view factor_key =
      source.Has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  VIVACE_ASSIGN(const double factor, FloatOr(source, factor_key, 1.0, kMaxFactor, 1.0));
  rope.factor = static_cast<float>(factor);
  if (rope.scaling == RopeScaling::kLinear) return rope;

  int64_t original = hparams.context;
  if (source.Has("rope.scaling.original_context_length")) {
    VIVACE_ASSIGN(original,
                  ReadIntInRange(source, "rope.scaling.original_context_length", 1, UINT32_MAX));
  }
  rope.original_context = static_cast<int32_t>(std::min<int64_t>(original, INT32_MAX));
  VIVACE_RETURN_IF_ERROR(rope.scaling == RopeScaling::kYarn ? ReadYarn(source, rope)
                                                            : ReadLlama3(source, rope));
  return rope;
}

}  // namespace vivace::model
