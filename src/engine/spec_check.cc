#include "engine/spec_check.h"

#include <algorithm>
#include <string>

namespace vivace {
namespace {

using model::AttentionSpec;
using model::FeedForwardSpec;
using model::LatentSpec;
using model::LayerSpec;
using model::MlpSpec;
using model::MoeSpec;
using model::RecurrentSpec;

Status Refuse(size_t layer, const std::string& what) {
  return Fail(ErrorCode::kUnsupported, "unsupported_layer", "",
              "layer {}: {} is not something this engine can compute", layer, what);
}

// Null: it can be computed.
const char* FaultOf(const LatentSpec& latent, const AttentionSpec& a) {
  const auto heads = static_cast<size_t>(a.heads);
  if (latent.k_b.size() != heads || latent.v_b.size() != heads) {
    return "latent attention without matrices for each head";
  }
  if (latent.q_norm.present() && latent.q_norm.kind != kernels::NormKind::kRms) {
    return "latent attention with a LayerNorm of its queries";
  }
  if (!latent.kv_norm.present()) return "latent attention without a norm of the latent";
  if (a.rope.dims != latent.rope_dims) return "latent attention that rotates a part of its part";
  return a.qk_norm != model::QkNorm::kNone ? "latent attention with norms of its heads" : nullptr;
}

const char* FaultOf(const RecurrentSpec& r) {
  const kernels::RecurrentGeometry& g = r.geometry;
  if (r.input.empty() || r.input.size() > kernels::MatrixGroup::kMaxParts) {
    return "a recurrence of more projections than one call takes";
  }
  if (g.conv_width < 2 || g.heads < 1 || !r.conv_weight.present()) {
    return "a recurrence without a convolution";
  }
  if (g.kind == kernels::RecurrentKind::kShortConv) return nullptr;
  if (g.key_heads < 1 || g.heads % g.key_heads != 0 || g.key_dim < 1) {
    return "a recurrence whose heads are not a multiple of its key heads";
  }
  return r.decay.present() && r.dt_bias.present() ? nullptr : "a recurrence without a decay";
}

const char* FaultOf(const AttentionSpec& a) {
  if (a.latent && a.gate.present()) return "latent attention with an output gate";
  if (a.latent) return FaultOf(*a.latent, a);
  if (a.kv_heads < 1 || a.heads % a.kv_heads != 0) {
    return "attention whose heads are not a multiple of its KV heads";
  }
  return a.rope.dims > a.head_dim ? "a rotation of more dims than a head has" : nullptr;
}

bool SameShape(const FeedForwardSpec& a, const FeedForwardSpec& b) {
  return a.ffn == b.ffn && a.gate.present() == b.gate.present();
}

const char* FaultOf(const MoeSpec& moe) {
  const model::RouterSpec& r = moe.router;
  if (r.experts < 1 || moe.experts.size() != static_cast<size_t>(r.experts)) {
    return "a router of other experts than there are";
  }
  if (r.top_k < 1 || r.top_k > r.experts) return "a router that chooses more than there are";
  if (r.groups < 1 || r.experts % r.groups != 0 || r.top_groups < 1 || r.top_groups > r.groups) {
    return "a router whose groups do not divide its experts";
  }
  const FeedForwardSpec& first = moe.experts.front();
  if (!std::ranges::all_of(moe.experts, [&](const auto& e) { return SameShape(e, first); })) {
    return "a mixture of experts of different shapes";
  }
  if (moe.shared.present() && moe.shared.gate.present() != first.gate.present()) {
    return "a shared expert of another kind than the others";
  }
  return nullptr;
}

const char* FaultOf(const MlpSpec& mlp) {
  if (mlp.moe) {
    if (const char* fault = FaultOf(*mlp.moe)) return fault;
  }
  const FeedForwardSpec& any = mlp.moe ? mlp.moe->experts.front() : mlp.dense;
  const bool clamped = mlp.activation == kernels::Activation::kSwigluClamped;
  return clamped && !any.gate.present() ? "a clamped SwiGLU without a gate" : nullptr;
}

}  // namespace

Status CheckSpec(const model::ModelSpec& spec) {
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    const char* fault = layer.recurrent ? FaultOf(*layer.recurrent) : FaultOf(layer.attention);
    if (fault != nullptr) return Refuse(i, fault);
    if (fault = FaultOf(layer.mlp); fault != nullptr) return Refuse(i, fault);
  }
  return {};
}

}  // namespace vivace
