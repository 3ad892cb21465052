#include "engine/forward.h"

#include <algorithm>

#include "base/check.h"

namespace vivace {
namespace {

float* TakeFloats(Arena* arena, int64_t rows, int64_t cols) {
  return reinterpret_cast<float*>(arena->Take(static_cast<size_t>(rows * cols) * sizeof(float)));
}

}  // namespace

size_t Forward::ArenaBytes(const MemoryPlan& plan) {
  return Arena::Rounded(plan.kv_bytes) + plan.activation_bytes +
         Arena::Rounded(plan.workspace_bytes);
}

Forward::Forward(const MemoryPlan& plan, const model::ModelSpec& spec, const kernels::BlockOps& ops,
                 Weights weights, Arena memory, ThreadPool* pool)
    : ops_(ops),
      weights_(std::move(weights)),
      memory_(std::move(memory)),
      pool_(pool),
      hidden_(spec.hidden),
      norm_eps_(spec.norm_eps),
      embedding_scale_(spec.embedding_scale),
      logits_stride_(plan.logits_stride),
      block_size_(plan.limits.block_size),
      prefix_groups_(plan.shape.max_sequences),
      prefault_({.data = memory_.Take(plan.kv_bytes),
                 .layers = spec.layers.size(),
                 .block_bytes = plan.kv_block_bytes,
                 .num_blocks = plan.limits.num_blocks}) {
  std::byte* kv = memory_.bytes().data();
  const kernels::WorkspaceShape& shape = plan.shape;
  const int64_t wide = int64_t{shape.heads} * shape.head_dim;
  x_ = TakeFloats(&memory_, shape.max_rows, shape.hidden);
  q_ = TakeFloats(&memory_, shape.max_rows, wide);
  attended_ = TakeFloats(&memory_, shape.max_rows, wide);
  ffn_ = TakeFloats(&memory_, shape.max_rows, shape.ffn);
  logits_ = TakeFloats(&memory_, plan.logit_rows, plan.logits_stride);
  workspace_ = {memory_.Take(plan.workspace_bytes), plan.workspace_bytes};
  const size_t layer_bytes = plan.kv_block_bytes * static_cast<size_t>(plan.limits.num_blocks);
  for (const model::LayerSpec& layer : spec.layers) {
    layers_.push_back({.heads = layer.attention.heads,
                       .scale = layer.attention.scale,
                       .window = layer.attention.window,
                       .rope = RopeOf(layer.attention.rope, plan),
                       .activation = layer.mlp.activation,
                       .kv = {plan.kv, kv, plan.limits.num_blocks}});
    kv += layer_bytes;
  }
  sequences_.reserve(static_cast<size_t>(shape.max_sequences));
  positions_.reserve(static_cast<size_t>(shape.max_rows));
}

size_t Forward::RopeOf(const model::RopeSpec& rope, const MemoryPlan& plan) {
  for (size_t i = 0; i < ropes_.size(); ++i) {
    if (ropes_[i].spec() == rope) return i;
  }
  ropes_.emplace_back(rope, plan.shape.max_rows, plan.limits.max_model_len);
  return ropes_.size() - 1;
}

void Forward::Prepare(const StepPlan& plan) {
  sequences_.clear();
  positions_.clear();
  int64_t end_block = 0;
  for (const PlanItem& item : plan.items) {
    const auto blocks =
        std::span(plan.block_ids)
            .subspan(static_cast<size_t>(item.first_block), static_cast<size_t>(item.num_blocks));
    for (const BlockId block :
         blocks.subspan(static_cast<size_t>(item.first_position / block_size_))) {
      end_block = std::max<int64_t>(end_block, block.value + 1);
    }
    sequences_.push_back({.first_row = item.first_token,
                          .num_rows = item.num_tokens,
                          .first_position = item.first_position,
                          .blocks = blocks.data()});
    for (int32_t i = 0; i < item.num_tokens; ++i) positions_.push_back(item.first_position + i);
  }
  VIVACE_DCHECK(positions_.size() == plan.tokens.size());
  rows_ = {static_cast<int32_t>(plan.tokens.size()), sequences_,
           prefix_groups_.Find(sequences_, block_size_)};
  for (RopeTable& rope : ropes_) rope.Fill(positions_);
  prefault_.Reach(end_block);
}

void Forward::Run(const StepPlan& plan) {
  ops_.embed(
      {.table = &weights_.embedding, .tokens = plan.tokens, .scale = embedding_scale_, .out = x_},
      *pool_);
  for (size_t i = 0; i < layers_.size(); ++i) RunLayer(layers_[i], weights_.layers[i]);
}

void Forward::RunLayer(const LayerPlan& layer, const LayerWeights& weights) {
  ops_.norm_qkv({.x = x_,
                 .norm_weight = weights.attention_norm,
                 .norm_eps = norm_eps_,
                 .qkv = &weights.qkv,
                 .q_norm = weights.q_norm,
                 .k_norm = weights.k_norm,
                 .hidden = hidden_,
                 .heads = layer.heads,
                 .rope = ropes_[layer.rope].rows(),
                 .step = rows_,
                 .kv = layer.kv,
                 .q = q_},
                workspace_, *pool_);
  ops_.attention({.q = q_,
                  .heads = layer.heads,
                  .scale = layer.scale,
                  .window = layer.window,
                  .step = rows_,
                  .kv = layer.kv,
                  .out = attended_},
                 workspace_, *pool_);
  ops_.project_residual({.y = attended_, .weight = &weights.o, .num_rows = rows_.num_rows, .x = x_},
                        workspace_, *pool_);
  ops_.norm_gate_up({.x = x_,
                     .norm_weight = weights.mlp_norm,
                     .norm_eps = norm_eps_,
                     .gate_up = &weights.gate_up,
                     .activation = layer.activation,
                     .num_rows = rows_.num_rows,
                     .out = ffn_},
                    workspace_, *pool_);
  ops_.project_residual({.y = ffn_, .weight = &weights.down, .num_rows = rows_.num_rows, .x = x_},
                        workspace_, *pool_);
}

float* Forward::Logits(std::span<const int32_t> rows) {
  ops_.lm_head({.x = x_,
                .rows = rows,
                .norm_weight = weights_.final_norm,
                .norm_eps = norm_eps_,
                .head = &weights_.lm_head,
                .logits = logits_,
                .logits_stride = logits_stride_},
               workspace_, *pool_);
  return logits_;
}

void Forward::Argmax(std::span<const int32_t> rows, TokenId* best) {
  ops_.lm_head_argmax({.x = x_,
                       .rows = rows,
                       .norm_weight = weights_.final_norm,
                       .norm_eps = norm_eps_,
                       .head = &weights_.lm_head,
                       .best = best},
                      workspace_, *pool_);
}

}  // namespace vivace
