#include "model/recipes/gemma_family.h"

#include <cmath>

namespace vivace::model {
namespace {

constexpr double kMaxCap = 1e6;
constexpr double kLocalTheta = 10000.0;

// q.k is divided by the root of a number that is a head's width but in the largest model.
Result<double> AttentionScale(const Decoder& d, const GemmaTraits& traits) {
  const Hparams& h = d.hparams();
  if (d.source().Has("attention.scale")) return h.attention_scale;
  double width = static_cast<double>(h.head_dim);
  if (d.is_gguf() && h.layers == traits.wide_layers) {
    width = static_cast<double>(h.hidden) / static_cast<double>(h.heads);
  }
  VIVACE_ASSIGN(width, ReadFloatOr(d.source(), "attention.query_scale", 1e-3, 1e6, width));
  return 1.0 / std::sqrt(width);
}

Result<RopeSpec> LocalRope(Decoder& d) {
  const ModelSource& source = d.source();
  if (source.Has("rope.scaling.type_swa")) {
    VIVACE_ASSIGN(const std::string_view type, source.GetString("rope.scaling.type_swa"));
    if (type != "default") {
      return source.KeyFault(ErrorCode::kUnsupported, "unsupported", "rope.scaling.type_swa",
                             "scaled RoPE in local layers is not supported");
    }
  }
  VIVACE_ASSIGN(const double theta,
                ReadFloatOr(source, "rope.freq_base_swa", 2.0, 1e15, kLocalTheta));
  RopeSpec rope;
  rope.dims = d.rope().dims;
  rope.interleaved = d.rope().interleaved;
  rope.theta = static_cast<float>(theta);
  return rope;
}

}  // namespace

Result<ModelSpec> BuildGemma(const ModelSource& source, std::string_view recipe,
                             const GemmaTraits& traits) {
  VIVACE_ASSIGN(Decoder d, Decoder::Open(source, recipe,
                                         {.hf_norm_offset = 1.0f,
                                          .post_norms = true,
                                          .qk_norm = traits.qk_norm,
                                          .activation = kernels::Activation::kGeluTanh,
                                          .rope_theta = traits.local_rope ? 1e6 : 10000.0,
                                          .hf_context_is_scaled = traits.local_rope}));
  VIVACE_ASSIGN(d.windows, d.Windows(traits.period));
  VIVACE_ASSIGN(const double scale, AttentionScale(d, traits));
  VIVACE_ASSIGN(const double cap, ReadFloatOr(source, "attn_logit_softcapping", 0.0, kMaxCap, 0.0));
  VIVACE_ASSIGN(const double final_cap,
                ReadFloatOr(source, "final_logit_softcapping", 0.0, kMaxCap, 0.0));
  VIVACE_ASSIGN(const RopeSpec local, traits.local_rope ? LocalRope(d) : d.rope());
  d.spec().logit_softcap = static_cast<float>(final_cap);
  d.spec().embedding_scale = std::sqrt(static_cast<float>(d.hparams().hidden));
  return d.Build([&](int64_t, LayerSpec* layer) -> Status {
    AttentionSpec& a = layer->attention;
    if (a.window > 0) a.rope = local;
    a.scale = static_cast<float>(scale);
    a.softcap = static_cast<float>(cap);
    return {};
  });
}

}  // namespace vivace::model
