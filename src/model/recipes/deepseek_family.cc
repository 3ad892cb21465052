#include "model/recipes/deepseek_family.h"

#include <charconv>
#include <cmath>

#include "base/limits.h"
#include "formats/untrusted.h"
#include "model/rope.h"

namespace vivace::model {
namespace {

constexpr int64_t kMaxDim = 1 << 12;
// The norms of latents do not follow the file's epsilon, as transformers has them.
constexpr float kLatentEps = 1e-6f;

// Widths of a head's parts.
struct Widths {
  int64_t rank, nope, rope, value;
  int64_t q_rank;  // 0: queries have no latent
};

Result<Widths> ReadWidths(const ModelSource& source) {
  Widths w = {};
  VIVACE_ASSIGN(w.rope, ReadIntInRange(source, "rope.dimension_count", 2, 1 << 10));
  VIVACE_ASSIGN(w.rank, ReadIntInRange(source, "attention.kv_lora_rank", 1, kMaxDim));
  VIVACE_ASSIGN(w.q_rank, ReadIntOr(source, "attention.q_lora_rank", 1, 1 << 16, 0));
  // GGUF files have the width of a whole key; those from before the split of kv_b under another
  // name.
  const bool split = source.Has("attention.key_length_mla");
  if (source.Has("attention.nope_length")) {
    VIVACE_ASSIGN(w.nope, ReadIntInRange(source, "attention.nope_length", 1, kMaxDim));
  } else {
    const std::string_view key = split ? "attention.key_length_mla" : "attention.key_length";
    VIVACE_ASSIGN(const int64_t whole, ReadIntInRange(source, key, w.rope + 1, kMaxDim));
    w.nope = whole - w.rope;
  }
  const bool old = source.format() == SourceFormat::kGguf && !split;
  VIVACE_ASSIGN(
      w.value, ReadIntInRange(source, old ? "attention.value_length" : "attention.value_length_mla",
                              1, kMaxDim));
  if (w.rope % 2 == 0) return w;
  return source.KeyFault(ErrorCode::kCorruptData, "hparam_range", "rope.dimension_count",
                         fmt::format("is {}; an even number is needed", w.rope));
}

// YaRN's factor of the scores: twice that of keys and queries each.
Result<double> ScoreFactor(const ModelSource& source, const RopeSpec& rope) {
  if (rope.scaling == RopeScaling::kNone) return 1.0;
  double all = 0.0;
  if (source.Has("rope.scaling.yarn_log_multiplier")) {  // GGUF's is a tenth
    VIVACE_ASSIGN(const double tenth,
                  ReadFloatInRange(source, "rope.scaling.yarn_log_multiplier", 0.0, 1e3));
    all = tenth * 10.0;
  } else {
    VIVACE_ASSIGN(all, ReadFloatOr(source, "rope.scaling.mscale_all_dim", 0.0, 1e3, 0.0));
  }
  const double mscale = all == 0.0 ? 1.0 : YarnMscale(rope.factor, all);
  return mscale * mscale;
}

// kv_b holds for each head [nope, rank] of the key, then [value, rank]; newer GGUF files have the
// two apart, the key's turned.
Status BuildHeads(WeightTable& weights, const std::string& blk, const Widths& w, int64_t heads,
                  LatentSpec* latent) {
  const std::string k_b = blk + "attn_k_b.weight", v_b = blk + "attn_v_b.weight";
  const std::string kv_b = blk + "attn_kv_b.weight";
  const bool apart = weights.Has(k_b);
  const int64_t both = w.nope + w.value;
  for (int64_t head = 0; head < heads; ++head) {
    WeightSpec key, value;
    if (apart) {
      VIVACE_ASSIGN(key, weights.Slice(k_b, head, heads, {w.rank, 0, w.rank}, w.nope));
      VIVACE_ASSIGN(value, weights.Slice(v_b, head, heads, {w.value, 0, w.value}, w.rank));
    } else {
      WeightSpec turned;
      turned.rows = static_cast<int32_t>(w.rank);
      turned.cols = static_cast<int32_t>(w.nope);
      turned.slice = static_cast<int32_t>(head);
      turned.slices = static_cast<int32_t>(heads);
      turned.transposed = true;
      VIVACE_ASSIGN(key, weights.Placed(kv_b, {heads * both, w.rank}, std::move(turned)));
      VIVACE_ASSIGN(
          value, weights.Slice(kv_b, 0, 1, {heads * both, head * both + w.nope, w.value}, w.rank));
    }
    latent->k_b.push_back(std::move(key));
    latent->v_b.push_back(std::move(value));
  }
  return {};
}

Status BuildAttention(Decoder& d, int64_t layer, const Widths& w, double scale, AttentionSpec* a) {
  WeightTable& weights = d.weights();
  const std::string blk = Decoder::Block(layer);
  const int64_t heads = d.hparams().heads, hidden = d.hparams().hidden;
  a->heads = static_cast<int32_t>(heads);
  a->kv_heads = 1;
  a->head_dim = static_cast<int32_t>(w.rank + w.rope);
  a->scale = static_cast<float>(scale);
  a->rope = d.rope();
  LatentSpec latent;
  latent.rank = static_cast<int32_t>(w.rank);
  latent.nope_dims = static_cast<int32_t>(w.nope);
  latent.rope_dims = static_cast<int32_t>(w.rope);
  latent.value_dims = static_cast<int32_t>(w.value);
  const int64_t q_rows = heads * (w.nope + w.rope);
  if (w.q_rank > 0) {
    VIVACE_ASSIGN(latent.q_a, weights.Linear(blk + "attn_q_a", w.q_rank, hidden));
    VIVACE_ASSIGN(latent.q_norm, d.Norm(blk + "attn_q_a_norm", w.q_rank));
    latent.q_norm.eps = kLatentEps;
    VIVACE_ASSIGN(latent.q_b, weights.Linear(blk + "attn_q_b", q_rows, w.q_rank, Bias::kNone));
  } else {
    VIVACE_ASSIGN(latent.q_b, weights.Linear(blk + "attn_q", q_rows, hidden, Bias::kNone));
  }
  VIVACE_ASSIGN(latent.kv_a, weights.Linear(blk + "attn_kv_a_mqa", w.rank + w.rope, hidden));
  VIVACE_ASSIGN(latent.kv_norm, d.Norm(blk + "attn_kv_a_norm", w.rank));
  latent.kv_norm.eps = kLatentEps;
  VIVACE_RETURN_IF_ERROR(BuildHeads(weights, blk, w, heads, &latent));
  VIVACE_ASSIGN(a->o, weights.Linear(blk + "attn_output", hidden, heads * w.value));
  a->latent = std::move(latent);
  return {};
}

Status CheckGroups(const ModelSource& source, const RouterSpec& r) {
  const int32_t each = r.groups > 0 ? r.experts / r.groups : 0;
  const bool pairs = r.group_score == kernels::GroupScore::kSumOfTwo;
  if (r.groups >= 1 && r.experts % r.groups == 0 && r.top_groups >= 1 && r.top_groups <= r.groups &&
      (!pairs || r.groups == 1 || each >= 2) && r.top_k <= r.top_groups * each) {
    return {};
  }
  return source.KeyFault(
      ErrorCode::kCorruptData, "hparam_range", "expert_group_count",
      fmt::format("is {}, of which {} are chosen; that does not fit {} experts, {} for a token",
                  r.groups, r.top_groups, r.experts, r.top_k));
}

// Whether experts are chosen from the best groups. V2's lite model has groups it does not use.
Result<bool> UsesGroups(const ModelSource& source, bool sigmoid) {
  constexpr std::string_view kMethod = "expert_group_method";
  if (source.format() == SourceFormat::kGguf) return true;
  if (!source.Has(kMethod)) return sigmoid;
  VIVACE_ASSIGN(const std::string_view method, source.GetString(kMethod));
  if (method == (sigmoid ? "noaux_tc" : "group_limited_greedy")) return true;
  if (method == "greedy" && !sigmoid) return false;
  return source.KeyFault(
      ErrorCode::kUnsupported, "unsupported", kMethod,
      fmt::format("is {}, which this family does not have", formats::Printable(method)));
}

Status ReadGroups(const ModelSource& source, RouterSpec* router) {
  const bool sigmoid = router->score == kernels::RouterScore::kSigmoid;
  VIVACE_ASSIGN(const bool grouped, UsesGroups(source, sigmoid));
  if (!grouped) return {};
  VIVACE_ASSIGN(const int64_t groups, ReadIntOr(source, "expert_group_count", 1, 1 << 12, 1));
  VIVACE_ASSIGN(const int64_t chosen,
                ReadIntOr(source, "expert_group_used_count", 1, groups, groups));
  router->groups = static_cast<int32_t>(groups);
  router->top_groups = static_cast<int32_t>(chosen);
  return CheckGroups(source, *router);
}

struct Experts {
  int64_t dense_layers;  // in front
  int64_t ffn;
  int64_t shared;  // experts' worth of one every token uses
  bool sigmoid;
};

Result<Experts> ReadExperts(const Decoder& d, const DeepseekTraits& traits) {
  const ModelSource& source = d.source();
  Experts e = {};
  e.sigmoid = traits.sigmoid;
  VIVACE_ASSIGN(e.dense_layers, ReadIntOr(source, "leading_dense_block_count", 0, UINT32_MAX, 0));
  VIVACE_ASSIGN(e.ffn, ReadIntInRange(source, "expert_feed_forward_length", 1, limits::kMaxFfn));
  VIVACE_ASSIGN(e.shared, ReadIntOr(source, "expert_shared_count", 0, 1 << 10, 0));
  if (!d.is_gguf()) return e;
  constexpr int64_t kSigmoid = 2;  // llama.cpp's number of it
  VIVACE_ASSIGN(const int64_t gating, ReadIntOr(source, "expert_gating_func", 0, 2, 0));
  e.sigmoid = gating == kSigmoid;
  return e;
}

Result<MoeSpec> BuildMoe(Decoder& d, int64_t layer, const Experts& e) {
  const ModelSource& source = d.source();
  MoeTraits traits = {.normalize = e.sigmoid && !d.is_gguf()};
  if (e.sigmoid) traits.score = kernels::RouterScore::kSigmoid;
  VIVACE_ASSIGN(MoeSpec moe, d.Moe(layer, e.ffn, traits));
  RouterSpec& router = moe.router;
  // V2's own code does not normalise, whatever the configuration says; GGUF files mean it.
  if (!e.sigmoid && !d.is_gguf()) router.normalize = false;
  VIVACE_ASSIGN(const double scale, ReadFloatOr(source, "expert_weights_scale", 0.0, 1e6, 1.0));
  router.scale = scale == 0.0 ? 1.0f : static_cast<float>(scale);  // GGUF: 0 is none
  if (e.sigmoid) router.group_score = kernels::GroupScore::kSumOfTwo;
  VIVACE_RETURN_IF_ERROR(ReadGroups(source, &router));
  const std::string bias = Decoder::Block(layer) + "exp_probs_b.bias";
  if (e.sigmoid && (!d.is_gguf() || d.weights().Has(bias))) {
    VIVACE_ASSIGN(router.selection_bias, d.weights().Vector(bias, router.experts));
  }
  if (e.shared > 0) {
    VIVACE_ASSIGN(moe.shared, d.FeedForward(layer, "_shexp", e.shared * e.ffn));
  }
  return moe;
}

// Layers past the last are another head's (they guess a token further).
Status IgnoreExtraLayers(Decoder& d) {
  VIVACE_ASSIGN(const int64_t extra, ReadIntOr(d.source(), "extra_layers", 0, UINT32_MAX, 0));
  constexpr std::string_view kPrefix = "model.layers.";
  if (extra == 0) return {};
  for (const std::string_view name : d.source().TensorNames()) {
    if (!name.starts_with(kPrefix)) continue;
    int64_t layer = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
    if (layer >= d.hparams().layers && layer < d.hparams().layers + extra) {
      d.weights().Ignore(name);
    }
  }
  return {};
}

}  // namespace

Result<ModelSpec> BuildDeepseek(const ModelSource& source, std::string_view recipe,
                                const DeepseekTraits& traits) {
  VIVACE_ASSIGN(
      Decoder d,
      Decoder::Open(source, recipe,
                    {.gguf_interleaved_rope = true, .hf_interleaved_rope = true, .latent = true}));
  VIVACE_ASSIGN(const Widths widths, ReadWidths(source));
  VIVACE_ASSIGN(const Experts experts, ReadExperts(d, traits));
  VIVACE_ASSIGN(const double factor, ScoreFactor(source, d.rope()));
  VIVACE_ASSIGN(d.rope().interleaved, ReadBoolOr(source, "rope.interleaved", true));
  VIVACE_RETURN_IF_ERROR(IgnoreExtraLayers(d));
  const double scale = factor / std::sqrt(static_cast<double>(widths.nope + widths.rope));
  d.has_attention = [](int64_t) { return false; };
  d.has_dense_mlp = [&](int64_t i) { return i < experts.dense_layers; };
  return d.Build([&](int64_t i, LayerSpec* layer) -> Status {
    VIVACE_RETURN_IF_ERROR(BuildAttention(d, i, widths, scale, &layer->attention));
    if (i < experts.dense_layers) return {};
    VIVACE_ASSIGN(layer->mlp.moe, BuildMoe(d, i, experts));
    return {};
  });
}

}  // namespace vivace::model
