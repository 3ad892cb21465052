// What no op can compute is refused by name; each case is a sound model but for one thing.
#include "engine/spec_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace vivace {
namespace {

using ::testing::HasSubstr;

model::LayerSpec Experts() {
  model::LayerSpec layer;
  layer.attention.heads = 4;
  layer.attention.kv_heads = 2;
  layer.attention.head_dim = 16;
  layer.attention.rope.dims = 16;
  model::MoeSpec& moe = layer.mlp.moe.emplace();
  moe.router.experts = 8;
  moe.router.top_k = 2;
  moe.experts.resize(8);
  for (model::FeedForwardSpec& expert : moe.experts) {
    expert.ffn = 32;
    expert.gate.weight.name = expert.up.weight.name = expert.down.weight.name = "expert";
  }
  return layer;
}

model::LayerSpec Latents() {
  model::LayerSpec layer;
  layer.attention.heads = 4;
  model::LatentSpec& latent = layer.attention.latent.emplace();
  latent.rank = 32;
  latent.rope_dims = layer.attention.rope.dims = 8;
  latent.kv_norm.weight.name = "kv_norm";
  latent.k_b.resize(4);
  latent.v_b.resize(4);
  layer.mlp.dense.gate.weight.name = layer.mlp.dense.up.weight.name = "dense";
  return layer;
}

model::LayerSpec Recurrent() {
  model::LayerSpec layer = Latents();
  layer.attention = {};
  model::RecurrentSpec& r = layer.recurrent.emplace();
  r.geometry = {.kind = kernels::RecurrentKind::kMamba2,
                .heads = 4,
                .key_heads = 2,
                .key_dim = 16,
                .value_dim = 16,
                .conv_width = 4};
  r.input.resize(1);
  r.conv_weight.name = r.decay.name = r.dt_bias.name = "vector";
  return layer;
}

Status Check(const model::LayerSpec& layer) {
  model::ModelSpec spec;
  spec.layers = {Latents(), layer};
  return CheckSpec(spec);
}

TEST(SpecCheck, SoundLayersPass) {
  EXPECT_TRUE(Check(Experts()).has_value());
  EXPECT_TRUE(Check(Latents()).has_value());
  EXPECT_TRUE(Check(Recurrent()).has_value());
}

TEST(SpecCheck, WhatNoOpHasIsNamed) {
  using Layer = model::LayerSpec;
  const struct {
    const char* named;
    Layer layer;
    std::function<void(Layer&)> change;
  } cases[] = {
      {"KV heads", Experts(), [](Layer& l) { l.attention.kv_heads = 3; }},
      {"rotation", Experts(), [](Layer& l) { l.attention.rope.dims = 18; }},
      {"other experts", Experts(), [](Layer& l) { l.mlp.moe->experts.pop_back(); }},
      {"chooses more", Experts(), [](Layer& l) { l.mlp.moe->router.top_k = 9; }},
      {"groups", Experts(), [](Layer& l) { l.mlp.moe->router.groups = 3; }},
      {"groups", Experts(), [](Layer& l) { l.mlp.moe->router.top_groups = 2; }},
      {"different shapes", Experts(), [](Layer& l) { l.mlp.moe->experts[3].ffn = 16; }},
      {"shared expert", Experts(), [](Layer& l) { l.mlp.moe->shared.up.weight.name = "up"; }},
      {"for each head", Latents(), [](Layer& l) { l.attention.latent->v_b.pop_back(); }},
      {"norm of the latent", Latents(), [](Layer& l) { l.attention.latent->kv_norm = {}; }},
      {"rotates a part", Latents(), [](Layer& l) { l.attention.rope.dims = 4; }},
      {"norms of its heads", Latents(),
       [](Layer& l) { l.attention.qk_norm = model::QkNorm::kPerHead; }},
      {"LayerNorm", Latents(),
       [](Layer& l) {
         l.attention.latent->q_norm.weight.name = "q_norm";
         l.attention.latent->q_norm.kind = kernels::NormKind::kLayer;
       }},
      {"output gate", Latents(), [](Layer& l) { l.attention.gate.weight.name = "gate"; }},
      {"more projections", Recurrent(), [](Layer& l) { l.recurrent->input.resize(4); }},
      {"without a convolution", Recurrent(), [](Layer& l) { l.recurrent->conv_weight = {}; }},
      {"multiple of its key heads", Recurrent(),
       [](Layer& l) { l.recurrent->geometry.key_heads = 3; }},
      {"without a decay", Recurrent(), [](Layer& l) { l.recurrent->dt_bias = {}; }},
      {"without a gate", Latents(), [](Layer& l) {
         l.mlp.activation = kernels::Activation::kSwigluClamped;
         l.mlp.dense.gate = {};
       }}};
  for (const auto& c : cases) {
    Layer layer = c.layer;
    c.change(layer);
    const Status status = Check(layer);
    ASSERT_FALSE(status.has_value()) << c.named;
    EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(status.error().message, HasSubstr(c.named));
    EXPECT_THAT(status.error().message, HasSubstr("layer 1:"));
  }
}

}  // namespace
}  // namespace vivace
