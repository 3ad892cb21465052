#include "model/hparams.h"

#include <fmt/format.h>

#include <cmath>

#include "base/limits.h"

namespace vivace::model {
namespace {

enum class Presence { kNeeded, kOptional };

struct IntRule {
  std::string_view key;
  int64_t Hparams::*field;
  int64_t min;
  int64_t max;
  Presence presence;
};

// Upper ends: far above any model there is, and small enough that products of two fit int64_t and
// every matrix size fits int32_t.
constexpr IntRule kIntRules[] = {
    {"block_count", &Hparams::layers, 1, limits::kMaxLayers, Presence::kNeeded},
    {"embedding_length", &Hparams::hidden, 1, 1 << 18, Presence::kNeeded},
    {"attention.head_count", &Hparams::heads, 1, 1 << 10, Presence::kNeeded},
    {"attention.head_count_kv", &Hparams::kv_heads, 1, 1 << 10, Presence::kOptional},
    {"feed_forward_length", &Hparams::ffn, 1, limits::kMaxFfn, Presence::kNeeded},
    {"context_length", &Hparams::context, 1, UINT32_MAX, Presence::kNeeded},
    {"attention.key_length", &Hparams::head_dim, 2, 1 << 10, Presence::kOptional},
    {"attention.value_length", &Hparams::value_dim, 2, 1 << 10, Presence::kOptional},
    {"rope.dimension_count", &Hparams::rope_dims, 2, 1 << 10, Presence::kOptional},
};

struct FloatRule {
  std::string_view key;
  double Hparams::*field;
  double min;
  double max;
};

// All may be absent.
constexpr FloatRule kFloatRules[] = {
    {"rope.freq_base", &Hparams::rope_theta, 2.0, 1e15},
    {"attention.scale", &Hparams::attention_scale, 1e-6, 1e3},
};

tl::unexpected<Error> OutOfRange(const ModelSource& source, std::string_view key,
                                 std::string text) {
  return source.KeyFault(ErrorCode::kCorruptData, "hparam_range", key, std::move(text));
}

Status CheckHeads(const ModelSource& source, bool latent, Hparams& h) {
  if (latent) {
    h.kv_heads = h.heads;
    return {};
  }
  if (h.head_dim == 0) {
    if (h.hidden % h.heads != 0) {
      return OutOfRange(source, "attention.head_count",
                        fmt::format("{} heads do not divide the width of {}", h.heads, h.hidden));
    }
    h.head_dim = h.hidden / h.heads;
  }
  if (h.head_dim % 2 != 0 || h.head_dim > 1 << 10) {
    return OutOfRange(
        source, "attention.head_count",
        fmt::format("{} heads are {} wide; an even width to 1024 is needed", h.heads, h.head_dim));
  }
  if (h.value_dim == 0) h.value_dim = h.head_dim;
  if (h.value_dim != h.head_dim) {
    return source.KeyFault(ErrorCode::kUnsupported, "unsupported", "attention.value_length",
                           fmt::format("values {} wide beside keys {} wide are not supported",
                                       h.value_dim, h.head_dim));
  }
  if (h.kv_heads == 0) h.kv_heads = h.heads;
  if (h.heads % h.kv_heads != 0) {
    return OutOfRange(source, "attention.head_count_kv",
                      fmt::format("{} does not divide the {} heads", h.kv_heads, h.heads));
  }
  return {};
}

Status CheckRope(const ModelSource& source, const HparamRules& rules, Hparams& h) {
  if (h.rope_dims == 0) {
    VIVACE_ASSIGN(const double fraction,
                  ReadFloatOr(source, "rope.dimension_fraction", 1e-3, 1.0, rules.rope_fraction));
    h.rope_dims = static_cast<int64_t>(static_cast<double>(h.head_dim) * fraction);
  }
  if (h.rope_dims < 2 || h.rope_dims % 2 != 0 || h.rope_dims > h.head_dim) {
    return OutOfRange(source, "rope.dimension_count",
                      fmt::format("is {}; an even number up to the head width {} is needed",
                                  h.rope_dims, h.head_dim));
  }
  if (h.attention_scale == 0) h.attention_scale = 1.0 / std::sqrt(static_cast<double>(h.head_dim));
  return {};
}

Status CheckVocabulary(const ModelSource& source, Hparams& h) {
  VIVACE_ASSIGN(h.vocab, source.VocabularySize());
  if (!source.Has("vocab_size")) return {};
  VIVACE_ASSIGN(const int64_t claimed, source.GetInt("vocab_size"));
  if (claimed == h.vocab) return {};
  return source.KeyFault(ErrorCode::kCorruptData, "vocab_mismatch", "vocab_size",
                         fmt::format("is {}, but the vocabulary has {} tokens", claimed, h.vocab));
}

}  // namespace

Result<int64_t> ReadIntInRange(const ModelSource& source, std::string_view key, int64_t min,
                               int64_t max) {
  VIVACE_ASSIGN(const int64_t value, source.GetInt(key));
  if (value >= min && value <= max) return value;
  return OutOfRange(source, key, fmt::format("is {}; {} to {} is allowed", value, min, max));
}

Result<double> ReadFloatInRange(const ModelSource& source, std::string_view key, double min,
                                double max) {
  VIVACE_ASSIGN(const double value, source.GetFloat(key));
  if (value >= min && value <= max) return value;
  return OutOfRange(source, key, fmt::format("is {}; {} to {} is allowed", value, min, max));
}

Result<std::vector<bool>> ReadLayerFlags(const ModelSource& source, std::string_view key,
                                         int64_t layers) {
  VIVACE_ASSIGN(std::vector<bool> flags, source.GetFlags(key));
  if (flags.size() == static_cast<size_t>(layers)) return flags;
  return OutOfRange(source, key, fmt::format("has {} items for {} layers", flags.size(), layers));
}

Result<std::vector<bool>> ReadLayerList(const ModelSource& source, std::string_view key,
                                        int64_t layers) {
  VIVACE_ASSIGN(const std::vector<double> listed, source.GetFloats(key));
  std::vector<bool> flags(static_cast<size_t>(layers), false);
  for (const double layer : listed) {
    if (!(layer >= 0 && layer < static_cast<double>(layers))) {
      return OutOfRange(source, key, fmt::format("names layer {} of {}", layer, layers));
    }
    flags[static_cast<size_t>(layer)] = true;
  }
  return flags;
}

Result<double> ReadFloatOr(const ModelSource& source, std::string_view key, double min, double max,
                           double fallback) {
  if (!source.Has(key)) return fallback;
  return ReadFloatInRange(source, key, min, max);
}

Result<int64_t> ReadIntOr(const ModelSource& source, std::string_view key, int64_t min, int64_t max,
                          int64_t fallback) {
  if (!source.Has(key)) return fallback;
  return ReadIntInRange(source, key, min, max);
}

Result<bool> ReadBoolOr(const ModelSource& source, std::string_view key, bool fallback) {
  if (!source.Has(key)) return fallback;
  return source.GetBool(key);
}

Result<Hparams> ReadHparams(const ModelSource& source, const HparamRules& rules) {
  Hparams h;
  for (const IntRule& rule : kIntRules) {
    if (rule.presence == Presence::kOptional && !source.Has(rule.key)) continue;
    VIVACE_ASSIGN(h.*rule.field, ReadIntInRange(source, rule.key, rule.min, rule.max));
  }
  for (const FloatRule& rule : kFloatRules) {
    if (!source.Has(rule.key)) continue;
    VIVACE_ASSIGN(h.*rule.field, ReadFloatInRange(source, rule.key, rule.min, rule.max));
  }
  VIVACE_ASSIGN(h.norm_eps, ReadFloatInRange(source, rules.norm_eps_key, 1e-12, 1.0));
  VIVACE_RETURN_IF_ERROR(CheckHeads(source, rules.heads_are_latent, h));
  if (h.rope_theta == 0) {
    h.rope_theta = rules.rope_theta;
    h.notes.push_back(fmt::format("the file has no rope.freq_base: {} is assumed", h.rope_theta));
  }
  if (!rules.heads_are_latent) VIVACE_RETURN_IF_ERROR(CheckRope(source, rules, h));
  VIVACE_RETURN_IF_ERROR(CheckVocabulary(source, h));
  return h;
}

}  // namespace vivace::model
