#include "engine/forward.h"

#include <algorithm>
#include <cmath>

#include "kernels/row_ops.h"
#include "kernels/vocab_ops.h"

namespace vivace {
namespace {

float* TakeFloats(Arena* arena, int64_t rows, int64_t cols) {
  return reinterpret_cast<float*>(arena->Take(static_cast<size_t>(rows * cols) * sizeof(float)));
}

}  // namespace

size_t Forward::ArenaBytes(const MemoryPlan& plan) {
  return Arena::Rounded(plan.kv_bytes) + plan.state_bytes + plan.activation_bytes +
         Arena::Rounded(plan.workspace_bytes);
}

Forward::Forward(const MemoryPlan& plan, const model::ModelSpec& spec, const kernels::BlockOps& ops,
                 Weights weights, Arena memory, ThreadPool* pool)
    : ops_(ops),
      weights_(std::move(weights)),
      memory_(std::move(memory)),
      pool_(pool),
      hidden_(spec.hidden),
      embedding_scale_(spec.embedding_scale),
      residual_scale_(spec.residual_scale),
      logit_softcap_(spec.logit_softcap),
      vocab_(spec.vocab),
      logits_stride_(plan.logits_stride),
      logit_rows_(plan.logit_rows),
      layout_(plan.shape.max_rows, plan.shape.max_sequences, plan.limits.block_size,
              plan.limits.kv_windows.size()),
      prefault_({.data = memory_.Take(plan.kv_bytes),
                 .layers = static_cast<size_t>(plan.groups.layers_per_block),
                 .block_bytes = plan.kv_block_bytes,
                 .num_blocks = plan.limits.num_blocks}) {
  const kernels::WorkspaceShape& shape = plan.shape;
  x_ = TakeFloats(&memory_, shape.max_rows, shape.hidden);
  q_ = TakeFloats(&memory_, shape.max_rows, plan.query_cols);
  attended_ = TakeFloats(&memory_, shape.max_rows, plan.attended_cols);
  ffn_ = TakeFloats(&memory_, shape.max_rows, shape.ffn);
  experts_ = TakeFloats(&memory_, shape.experts > 0 ? shape.max_rows : 0, shape.hidden);
  logits_ = TakeFloats(&memory_, plan.logit_rows, plan.logits_stride);
  workspace_ = {memory_.Take(plan.workspace_bytes), plan.workspace_bytes};
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    layers_.push_back(PlanOf(spec.layers[i], weights_.layers[i], plan));
  }
  prompt_lens_.resize(static_cast<size_t>(shape.max_sequences));
  if (plan.limits.long_prompt > 0) row_prompts_.reserve(static_cast<size_t>(shape.max_rows));
  PlaceInCache(plan);
}

Forward::LayerPlan Forward::PlanOf(const model::LayerSpec& layer, const LayerWeights& weights,
                                   const MemoryPlan& plan) {
  const model::AttentionSpec& a = layer.attention;
  const model::MlpSpec& m = layer.mlp;
  LayerPlan out{.heads = a.heads,
                .mixer_cols = int64_t{a.heads} * plan.kv.head_dim,
                .scale = a.scale,
                .softcap = a.softcap,
                .window = a.window,
                .whole_norms = a.qk_norm == model::QkNorm::kWhole,
                .rope = 0,
                .group = 0,
                .activation = {m.activation, m.activation_alpha, m.activation_limit},
                .parallel = layer.parallel,
                .kv = {},
                .recurrent = {}};
  if (!layer.recurrent) {
    out.rope = RopeOf(a.rope, plan);
    return out;
  }
  const model::RecurrentSpec& r = *layer.recurrent;
  const RecurrentWeights& w = *weights.recurrent;
  out.mixer_cols = r.geometry.inner();
  out.recurrent = {
      .x = x_,
      .norm = weights.attention_norm,
      .input = &w.input,
      .geometry = r.geometry,
      .q = r.q,
      .k = r.k,
      .v = r.v,
      .z = r.z,
      .b = r.b,
      .a = r.a,
      .conv_weight = w.conv_weight,
      .conv_bias = w.conv_bias,
      .decay = w.decay,
      .dt_bias = w.dt_bias,
      .skip = w.skip,
      .min_dt = r.min_dt,
      .max_dt = r.max_dt,
      .out_norm = w.out_norm,
      .step = {},
      .states = TakeFloats(&memory_, plan.limits.max_sequences, r.geometry.state_floats()),
      .out = q_};
  return out;
}

// The k-th layers of all groups share an array of blocks, of which each has its own.
void Forward::PlaceInCache(const MemoryPlan& plan) {
  const size_t part_bytes = plan.kv_block_bytes * static_cast<size_t>(plan.limits.num_blocks);
  for (size_t g = 0; g < plan.groups.groups.size(); ++g) {
    std::byte* kv = memory_.bytes().data();
    for (const int32_t layer : plan.groups.groups[g].layers) {
      layers_[static_cast<size_t>(layer)].group = g;
      layers_[static_cast<size_t>(layer)].kv = {plan.kv, kv, plan.limits.num_blocks};
      kv += part_bytes;
    }
  }
}

size_t Forward::RopeOf(const model::RopeSpec& rope, const MemoryPlan& plan) {
  for (size_t i = 0; i < ropes_.size(); ++i) {
    if (ropes_[i].spec() == rope) return i;
  }
  ropes_.emplace_back(rope, plan.shape.max_rows, plan.limits.max_model_len);
  return ropes_.size() - 1;
}

void Forward::Prepare(const StepPlan& plan) {
  layout_.Fill(plan);
  row_prompts_.clear();
  if (row_prompts_.capacity() > 0) {
    for (const PlanItem& item : plan.items) {
      row_prompts_.insert(row_prompts_.end(), static_cast<size_t>(item.num_tokens),
                          prompt_lens_[static_cast<size_t>(item.slot.value)]);
    }
  }
  for (RopeTable& rope : ropes_) rope.Fill(layout_.positions(), row_prompts_);
  prefault_.Reach(layout_.end_block());
}

void Forward::Run(const StepPlan& plan) {
  ops_.embed(
      {.table = &weights_.embedding, .tokens = plan.tokens, .scale = embedding_scale_, .out = x_},
      *pool_);
  const size_t last = layers_.size() - 1;
  for (size_t i = 0; i <= last; ++i) {
    StartMixer(layers_[i], weights_.layers[i]);
    if (i == last) KeepLogitRows(layers_[i].mixer_cols);
    const size_t group = layers_[i].group;
    FinishLayer(layers_[i], weights_.layers[i],
                i == last ? layout_.logit_rows(group) : layout_.all(group));
  }
}

// The layer's part that every row needs: K and V into the cache, and the queries; or the states of
// sequences, and what is read from them. It leaves queries or readings in q_.
void Forward::StartMixer(const LayerPlan& layer, const LayerWeights& weights) {
  if (weights.recurrent) return Recur(layer);
  if (weights.latent) return FillLatents(layer, weights);
  FillCache(layer, weights);
}

void Forward::Recur(const LayerPlan& layer) {
  kernels::RecurrentArgs args = layer.recurrent;
  args.step = layout_.all();
  ops_.recurrent(args, workspace_, *pool_);
}

void Forward::FillCache(const LayerPlan& layer, const LayerWeights& weights) {
  ops_.norm_qkv({.x = x_,
                 .norm = weights.attention_norm,
                 .qkv = &weights.qkv,
                 .q_norm = weights.q_norm,
                 .k_norm = weights.k_norm,
                 .whole_norms = layer.whole_norms,
                 .hidden = hidden_,
                 .heads = layer.heads,
                 .rope = ropes_[layer.rope].rows(),
                 .step = layout_.all(layer.group),
                 .kv = layer.kv,
                 .q = q_},
                workspace_, *pool_);
}

void Forward::FillLatents(const LayerPlan& layer, const LayerWeights& weights) {
  const LatentWeights& latent = *weights.latent;
  ops_.latent_qkv({.x = x_,
                   .norm = weights.attention_norm,
                   .input = &latent.input,
                   .q_norm = latent.q_norm,
                   .q_b = latent.q_b.num_parts > 0 ? &latent.q_b : nullptr,
                   .kv_norm = latent.kv_norm,
                   .k_b = latent.k_b,
                   .rope = ropes_[layer.rope].rows(),
                   .step = layout_.all(layer.group),
                   .kv = layer.kv,
                   .q = q_},
                  workspace_, *pool_);
}

// Moves them to the front.
void Forward::KeepLogitRows(int64_t mixer_cols) {
  const auto move = [](float* rows, int64_t cols, int64_t from, int64_t to) {
    std::copy_n(rows + from * cols, cols, rows + to * cols);
  };
  int64_t to = 0;
  for (const int32_t from : layout_.kept()) {
    if (from != to) {
      move(x_, hidden_, from, to);
      move(q_, mixer_cols, from, to);
    }
    ++to;
  }
}

void Forward::FinishLayer(const LayerPlan& layer, const LayerWeights& weights,
                          const kernels::StepRows& step) {
  const int32_t rows = step.num_rows;
  if (rows == 0) return;
  const float* mixed = FinishMixer(layer, weights, step);
  // In a parallel layer the MLP reads what the mixer read.
  if (layer.parallel) StartMlp(layer, weights, rows);
  Project(mixed, weights.o, weights.attention_post_norm, rows);
  if (!layer.parallel) StartMlp(layer, weights, rows);
  FinishMlp(weights, rows);
}

// What the output projection reads.
const float* Forward::FinishMixer(const LayerPlan& layer, const LayerWeights& weights,
                                  const kernels::StepRows& step) {
  if (weights.recurrent) return q_;
  ops_.attention({.q = q_,
                  .heads = layer.heads,
                  .scale = layer.scale,
                  .softcap = layer.softcap,
                  .window = layer.window,
                  .sinks = weights.sinks,
                  .step = step,
                  .kv = layer.kv,
                  .out = attended_},
                 workspace_, *pool_);
  if (weights.gate.num_parts > 0) {
    ops_.gate({.x = x_,
               .norm = weights.attention_norm,
               .gate = &weights.gate,
               .num_rows = step.num_rows,
               .y = attended_},
              workspace_, *pool_);
  }
  if (!weights.latent) return attended_;
  ops_.latent_values(
      {.y = attended_, .v_b = weights.latent->v_b, .num_rows = step.num_rows, .out = q_},
      workspace_, *pool_);
  return q_;
}

void Forward::Project(const float* y, const kernels::MatrixGroup& weight, const kernels::Norm& norm,
                      int32_t rows) {
  ops_.project_residual({.y = y,
                         .weight = &weight,
                         .norm = norm,
                         .scale = residual_scale_,
                         .num_rows = rows,
                         .x = x_},
                        workspace_, *pool_);
}

// The part of the MLP that reads x.
void Forward::StartMlp(const LayerPlan& layer, const LayerWeights& weights, int32_t rows) {
  if (!weights.moe) {
    ops_.norm_gate_up({.x = x_,
                       .norm = weights.mlp_norm,
                       .gate_up = &weights.dense.gate_up,
                       .activation = layer.activation,
                       .num_rows = rows,
                       .out = ffn_},
                      workspace_, *pool_);
    return;
  }
  const MoeWeights& moe = *weights.moe;
  ops_.moe({.x = x_,
            .norm = weights.mlp_norm,
            .router = &moe.router,
            .experts = moe.experts,
            .shared = moe.shared.present() ? &moe.shared : nullptr,
            .shared_gate = moe.shared_gate.num_parts > 0 ? &moe.shared_gate : nullptr,
            .activation = layer.activation,
            .num_rows = rows,
            .out = experts_},
           workspace_, *pool_);
}

// The part that adds to x.
void Forward::FinishMlp(const LayerWeights& weights, int32_t rows) {
  if (!weights.moe) return Project(ffn_, weights.dense.down, weights.mlp_post_norm, rows);
  ops_.add_rows({.y = experts_,
                 .norm = weights.mlp_post_norm,
                 .scale = residual_scale_,
                 .num_rows = rows,
                 .cols = hidden_,
                 .x = x_},
                *pool_);
}

float* Forward::Logits(std::span<const int32_t> rows) {
  ops_.lm_head({.x = x_,
                .rows = rows,
                .norm = weights_.final_norm,
                .head = &weights_.lm_head,
                .softcap = logit_softcap_,
                .logits = logits_,
                .logits_stride = logits_stride_},
               workspace_, *pool_);
  return logits_;
}

std::span<const float> Forward::NormedHidden(int32_t row) {
  float* x = x_ + int64_t{row} * hidden_;
  if (weights_.final_norm.present()) kernels::NormRow(weights_.final_norm, x, hidden_, x);
  return {x, static_cast<size_t>(hidden_)};
}

void Forward::Argmax(std::span<const int32_t> rows, TokenId* best) {
  if (logit_softcap_ == 0) {
    ops_.lm_head_argmax({.x = x_,
                         .rows = rows,
                         .norm = weights_.final_norm,
                         .head = &weights_.lm_head,
                         .best = best},
                        workspace_, *pool_);
    return;
  }
  // A cap makes equals of what was not: the first of them counts.
  const kernels::VocabOps& vocab = kernels::GetVocabOps(ops_.isa);
  for (size_t first = 0; first < rows.size(); first += static_cast<size_t>(logit_rows_)) {
    const auto some =
        rows.subspan(first, std::min(rows.size() - first, static_cast<size_t>(logit_rows_)));
    const float* logits = Logits(some);
    for (size_t i = 0; i < some.size(); ++i, logits += logits_stride_) {
      const float most = vocab.max(logits, vocab_);
      best[first + i] = std::isfinite(most) ? vocab.find(logits, vocab_, most) : -1;
    }
  }
}

}  // namespace vivace
