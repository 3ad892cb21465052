#include "model/rope_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/untrusted.h"
#include "model/rope.h"

namespace vivace::model {
namespace {

constexpr double kMaxFactor = 1e6;

struct Kind {
  std::string_view name;
  RopeScaling scaling;
};
constexpr Kind kKinds[] = {
    {"none", RopeScaling::kNone},         {"default", RopeScaling::kNone},
    {"linear", RopeScaling::kLinear},     {"dynamic", RopeScaling::kDynamic},
    {"llama3", RopeScaling::kLlama3},     {"yarn", RopeScaling::kYarn},
    {"longrope", RopeScaling::kLongrope}, {"su", RopeScaling::kLongrope},
};

// GGUF files keep what multiplies frequencies as tensors: Llama 3.1's scaling as one divisor for
// each pair, longrope's two sets likewise.
constexpr std::string_view kRopeFreqs = "rope_freqs.weight";
constexpr std::string_view kShortFactors = "rope_factors_short.weight";
constexpr std::string_view kLongFactors = "rope_factors_long.weight";

// What transformers demands of a configuration that names a kind. GGUF files may lack them.
struct NeededKey {
  RopeScaling scaling;
  std::string_view key;
};
constexpr NeededKey kNeededKeys[] = {
    {RopeScaling::kLinear, "rope.scaling.factor"},
    {RopeScaling::kDynamic, "rope.scaling.factor"},
    {RopeScaling::kLlama3, "rope.scaling.factor"},
    {RopeScaling::kLlama3, "rope.scaling.low_freq_factor"},
    {RopeScaling::kLlama3, "rope.scaling.high_freq_factor"},
    {RopeScaling::kLlama3, "rope.scaling.original_context_length"},
};

Status CheckNeededKeys(const ModelSource& source, RopeScaling scaling) {
  if (source.format() == SourceFormat::kGguf) return {};
  for (const NeededKey& row : kNeededKeys) {
    if (row.scaling == scaling) VIVACE_RETURN_IF_ERROR(source.GetFloat(row.key));
  }
  // Yarn's factor may follow from the context that was before.
  const bool follows = source.Has("rope.scaling.original_context_length");
  if (scaling == RopeScaling::kYarn && !follows) {
    VIVACE_RETURN_IF_ERROR(source.GetFloat("rope.scaling.factor"));
  }
  return {};
}

// In GGUF files without a type a factor means linear scaling; rope.scale_linear is its name in
// early ones.
Result<RopeScaling> ReadKind(const ModelSource& source) {
  // Early Phi-3 files call it yarn.
  if (source.Has("rope.scaling.short_factor") || source.Has("rope.scaling.long_factor")) {
    return RopeScaling::kLongrope;
  }
  if (!source.Has("rope.scaling.type")) {
    const bool scaled = source.Has("rope.scaling.factor") || source.Has("rope.scale_linear");
    if (scaled && source.format() == SourceFormat::kHuggingFace) {
      return source.KeyFault(ErrorCode::kCorruptData, "missing_key", "rope.scaling.type",
                             "there is a factor, but no kind of scaling");
    }
    return scaled ? RopeScaling::kLinear : RopeScaling::kNone;
  }
  VIVACE_ASSIGN(const std::string_view name, source.GetString("rope.scaling.type"));
  const auto* kind = std::ranges::find(kKinds, name, &Kind::name);
  if (kind != std::end(kKinds)) return kind->scaling;
  return source.KeyFault(ErrorCode::kUnsupported, "unsupported", "rope.scaling.type",
                         fmt::format("is {}; none, linear, dynamic, llama3, yarn and longrope are "
                                     "supported",
                                     formats::Printable(name)));
}

// GGUF's factor multiplies yarn's own; RopeSpec holds the product. DeepSeek's files have a
// yarn_log_multiplier: there the factor belongs to the scores, which the recipe scales.
Result<double> GgufYarnFactor(const ModelSource& source, const RopeSpec& rope) {
  if (source.Has("rope.scaling.yarn_log_multiplier")) return 1.0;
  const std::string_view key = source.Has("rope.scaling.yarn_attn_factor")
                                   ? "rope.scaling.yarn_attn_factor"
                                   : "rope.scaling.attn_factor";
  VIVACE_ASSIGN(const double attention, ReadFloatOr(source, key, 1e-3, 1e3, 1.0));
  return attention * YarnMscale(rope.factor);
}

Result<double> HfYarnFactor(const ModelSource& source, const RopeSpec& rope) {
  VIVACE_ASSIGN(const double given,
                ReadFloatOr(source, "rope.scaling.attention_factor", 1e-3, 1e3, 0.0));
  if (given != 0.0) return given;
  VIVACE_ASSIGN(const double mscale, ReadFloatOr(source, "rope.scaling.mscale", 0.0, 1e3, 0.0));
  VIVACE_ASSIGN(const double all,
                ReadFloatOr(source, "rope.scaling.mscale_all_dim", 0.0, 1e3, 0.0));
  if (mscale == 0.0 || all == 0.0) return YarnMscale(rope.factor);
  return YarnMscale(rope.factor, mscale) / YarnMscale(rope.factor, all);
}

Status ReadYarn(const ModelSource& source, RopeSpec& rope) {
  VIVACE_ASSIGN(const double fast,
                ReadFloatOr(source, "rope.scaling.yarn_beta_fast", 1e-3, kMaxFactor, 32.0));
  VIVACE_ASSIGN(const double slow,
                ReadFloatOr(source, "rope.scaling.yarn_beta_slow", 1e-3, kMaxFactor, 1.0));
  if (slow >= fast) {
    return source.KeyFault(ErrorCode::kCorruptData, "hparam_range", "rope.scaling.yarn_beta_slow",
                           fmt::format("is {}, not below beta_fast, {}", slow, fast));
  }
  VIVACE_ASSIGN(rope.truncate, ReadBoolOr(source, "rope.scaling.truncate", true));
  VIVACE_ASSIGN(const double attention, source.format() == SourceFormat::kGguf
                                            ? GgufYarnFactor(source, rope)
                                            : HfYarnFactor(source, rope));
  rope.beta_fast = static_cast<float>(fast);
  rope.beta_slow = static_cast<float>(slow);
  rope.attention_factor = static_cast<float>(attention);
  return {};
}

Status ReadLlama3(const ModelSource& source, RopeSpec& rope) {
  VIVACE_ASSIGN(const double low,
                ReadFloatOr(source, "rope.scaling.low_freq_factor", 1e-3, kMaxFactor, 1.0));
  VIVACE_ASSIGN(const double high,
                ReadFloatOr(source, "rope.scaling.high_freq_factor", 1e-3, kMaxFactor, 4.0));
  if (low >= high) {
    return source.KeyFault(ErrorCode::kCorruptData, "hparam_range", "rope.scaling.low_freq_factor",
                           fmt::format("is {}, not below high_freq_factor, {}", low, high));
  }
  rope.low_freq_factor = static_cast<float>(low);
  rope.high_freq_factor = static_cast<float>(high);
  return {};
}

// What is wrong with a set of divisors; empty: nothing.
std::string DivisorsFault(const std::vector<float>& divisors, const RopeSpec& rope) {
  if (divisors.size() != static_cast<size_t>(rope.dims / 2)) {
    return fmt::format("has {} numbers for {} rotated pairs", divisors.size(), rope.dims / 2);
  }
  const auto bad = std::ranges::find_if(
      divisors, [](float divisor) { return !(divisor > 0.0f && std::isfinite(divisor)); });
  return bad == divisors.end() ? "" : fmt::format("a divisor is {}; all must be positive", *bad);
}

// A set of divisors: a tensor of a GGUF file, a list in a configuration.
Result<std::vector<float>> ReadDivisors(const ModelSource& source, std::string_view tensor,
                                        std::string_view key, const RopeSpec& rope,
                                        WeightTable* weights) {
  std::vector<float> divisors;
  if (weights->Has(tensor)) {
    VIVACE_ASSIGN(divisors, weights->ReadFloats(tensor, rope.dims / 2));
    std::string fault = DivisorsFault(divisors, rope);
    if (fault.empty()) return divisors;
    return source.TensorFault(ErrorCode::kCorruptData, "hparam_range", tensor, std::move(fault));
  }
  VIVACE_ASSIGN(const std::vector<double> values, source.GetFloats(key));
  for (const double value : values) divisors.push_back(static_cast<float>(value));
  std::string fault = DivisorsFault(divisors, rope);
  if (fault.empty()) return divisors;
  return source.KeyFault(ErrorCode::kCorruptData, "hparam_range", key, std::move(fault));
}

Status ReadLongrope(const ModelSource& source, const Hparams& hparams, WeightTable* weights,
                    RopeSpec& rope) {
  VIVACE_ASSIGN(rope.short_divisors,
                ReadDivisors(source, kShortFactors, "rope.scaling.short_factor", rope, weights));
  VIVACE_ASSIGN(rope.long_divisors,
                ReadDivisors(source, kLongFactors, "rope.scaling.long_factor", rope, weights));
  // Without a factor it is how much longer the context became.
  const double longer = std::max(static_cast<double>(hparams.context) / rope.original_context, 1.0);
  VIVACE_ASSIGN(const double factor,
                ReadFloatOr(source, "rope.scaling.factor", 1.0, kMaxFactor, longer));
  const std::string_view key = source.format() == SourceFormat::kGguf
                                   ? "rope.scaling.attn_factor"
                                   : "rope.scaling.attention_factor";
  VIVACE_ASSIGN(const double attention, ReadFloatOr(source, key, 1e-3, 1e3, 0.0));
  rope.factor = static_cast<float>(factor);
  rope.attention_factor = static_cast<float>(attention);
  return {};
}

Result<double> ReadFactor(const ModelSource& source, const RopeSpec& rope, const Hparams& hparams) {
  const std::string_view key =
      source.Has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  double fallback = 1.0;
  if (rope.scaling == RopeScaling::kYarn && source.format() == SourceFormat::kHuggingFace) {
    fallback = std::max(static_cast<double>(hparams.context) / rope.original_context, 1.0);
  }
  return ReadFloatOr(source, key, 1.0, kMaxFactor, fallback);
}

}  // namespace

Result<RopeSpec> ReadRope(const ModelSource& source, const Hparams& hparams, bool interleaved,
                          WeightTable* weights) {
  RopeSpec rope;
  rope.dims = static_cast<int32_t>(hparams.rope_dims);
  rope.theta = static_cast<float>(hparams.rope_theta);
  rope.interleaved = interleaved;
  VIVACE_ASSIGN(rope.scaling, ReadKind(source));
  if (weights->Has(kShortFactors) || weights->Has(kLongFactors)) {
    rope.scaling = RopeScaling::kLongrope;
  }
  if (weights->Has(kRopeFreqs)) {
    VIVACE_ASSIGN(rope.freq_divisors, ReadDivisors(source, kRopeFreqs, "", rope, weights));
  }
  if (rope.scaling == RopeScaling::kNone) return rope;
  VIVACE_RETURN_IF_ERROR(CheckNeededKeys(source, rope.scaling));

  VIVACE_ASSIGN(const int64_t original, ReadIntOr(source, "rope.scaling.original_context_length", 1,
                                                  UINT32_MAX, hparams.context));
  const bool from_context = rope.scaling == RopeScaling::kDynamic;  // as transformers has it
  rope.original_context =
      static_cast<int32_t>(std::min<int64_t>(from_context ? hparams.context : original, INT32_MAX));
  if (rope.scaling == RopeScaling::kLongrope) {
    VIVACE_RETURN_IF_ERROR(ReadLongrope(source, hparams, weights, rope));
    return rope;
  }
  VIVACE_ASSIGN(const double factor, ReadFactor(source, rope, hparams));
  rope.factor = static_cast<float>(factor);
  if (rope.scaling == RopeScaling::kYarn) VIVACE_RETURN_IF_ERROR(ReadYarn(source, rope));
  if (rope.scaling == RopeScaling::kLlama3) VIVACE_RETURN_IF_ERROR(ReadLlama3(source, rope));
  return rope;
}

}  // namespace vivace::model
