#include "engine/row_sampler.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>

#include "base/limits.h"
#include "sample/logprobs.h"

namespace vivace {

size_t RowSampler::Bytes(const ExecutorLimits& limits, int threads) {
  constexpr size_t kResults = 2;  // one is filled while the other is read
  constexpr size_t kRowBytes =
      sizeof(LogitRow) +
      kResults * (sizeof(LogprobRow) + limits::kMaxTopLogprobs * sizeof(TokenLogprob));
  return static_cast<size_t>(threads) * SampleScratch::Bytes(limits.vocab) +
         static_cast<size_t>(limits.max_batched_tokens) * kRowBytes;
}

RowSampler::RowSampler(const ExecutorLimits& limits, int32_t rows_at_once,
                       const kernels::VocabOps& ops, ThreadPool* pool, std::vector<TokenId> eos_ids)
    : limits_(limits),
      rows_at_once_(rows_at_once),
      ops_(ops),
      pool_(pool),
      eos_ids_(std::move(eos_ids)),
      slots_(static_cast<size_t>(limits.max_sequences)) {
  for (int i = 0; i < pool->size(); ++i) scratch_.emplace_back(limits.vocab);
  rows_.reserve(static_cast<size_t>(
      limits.max_batched_tokens));  // a step has at most one logit row per token
  indices_.reserve(static_cast<size_t>(rows_at_once));
  greedy_rows_.reserve(slots_.size());
  greedy_sampled_.reserve(slots_.size());
  best_.resize(slots_.size());
  Reserve(&result_);
}

void RowSampler::Reserve(StepResult* result) const {
  const auto rows = static_cast<size_t>(limits_.max_batched_tokens);
  result->sampled.reserve(static_cast<size_t>(limits_.max_sequences));
  result->prompt_rows.reserve(static_cast<size_t>(limits_.max_sequences));
  result->pooled.reserve(static_cast<size_t>(limits_.max_sequences));
  result->logprob_rows.reserve(rows);
  result->top_logprobs.reserve(rows * limits::kMaxTopLogprobs);
}

void RowSampler::Bind(SeqSlot slot, const SlotBinding& binding) {
  At(slot).constraint = binding.constraint;
  At(slot).state.Bind(binding.params, binding.choice, binding.tokens, binding.prompt_len, eos_ids_,
                      limits_.max_model_len);
}

void RowSampler::Begin(const StepPlan& plan) {
  plan_ = &plan;
  greedy_rows_.clear();
  greedy_sampled_.clear();
  rows_.clear();
  taken_ = 0;
  logit_rows_ = 0;
  batch_ = {};
  result_.Clear();
  result_.step = plan.step;
  for (size_t i = 0; i < plan.items.size(); ++i) ListItem(static_cast<int32_t>(i), plan.items[i]);
}

void RowSampler::ListItem(int32_t index, const PlanItem& item) {
  Slot& slot = At(item.slot);
  const SamplingParams& params = slot.state.params();
  slot.state.Follow(item.first_position, std::span(plan_->tokens)
                                             .subspan(static_cast<size_t>(item.first_token),
                                                      static_cast<size_t>(item.num_tokens)));
  const int32_t last = item.first_token + item.num_tokens - 1;
  const int32_t dropped = item.first_logit_row() - logit_rows_;  // of the plan's rows before those
  logit_rows_ += item.end_logit_row() - item.first_logit_row();
  if (item.logit_rows == LogitRows::kAll) {
    const auto first = static_cast<int32_t>(result_.logprob_rows.size());
    for (int32_t row = item.first_token; row <= last; ++row) {
      const TokenId next =
          row < last ? plan_->tokens[static_cast<size_t>(row + 1)] : item.next_prompt_token;
      if (next < 0) continue;  // the prompt's last row predicts the first output token
      LogitRow wanted{.row = row - dropped, .item = index, .prompt_token = next};
      AddLogprobRow(&wanted, params.prompt_logprobs);
      rows_.push_back(wanted);
    }
    result_.prompt_rows.push_back(
        {index, first, static_cast<int32_t>(result_.logprob_rows.size()) - first});
  }
  if (!item.sample) return;
  LogitRow wanted{.row = last - dropped,
                  .item = index,
                  .sampled = static_cast<int32_t>(result_.sampled.size())};
  if (params.logprobs < 0 && slot.constraint == nullptr && slot.state.TakesArgmax()) {
    greedy_rows_.push_back(wanted.row);
    greedy_sampled_.push_back(wanted.sampled);
    result_.sampled.push_back({.item = index});
    return;
  }
  if (params.logprobs >= 0) AddLogprobRow(&wanted, params.logprobs);
  result_.sampled.push_back({.item = index, .logprob_row = wanted.logprob_row});
  rows_.push_back(wanted);
}

void RowSampler::AddLogprobRow(LogitRow* row, int32_t wanted) {
  row->num_top = std::min(wanted, limits_.vocab);
  row->logprob_row = static_cast<int32_t>(result_.logprob_rows.size());
  result_.logprob_rows.emplace_back().first_top = static_cast<int32_t>(result_.top_logprobs.size());
  result_.top_logprobs.resize(result_.top_logprobs.size() + static_cast<size_t>(row->num_top));
}

std::span<const LogitRow> RowSampler::NextRows() {
  const size_t count = std::min(rows_.size() - taken_, static_cast<size_t>(rows_at_once_));
  batch_ = std::span<const LogitRow>(rows_).subspan(taken_, count);
  taken_ += count;
  indices_.clear();
  for (const LogitRow& row : batch_) indices_.push_back(row.row);
  return batch_;
}

void RowSampler::Take(float* logits, int64_t stride) {
  const auto vocab = static_cast<size_t>(limits_.vocab);
  // Rows differ in cost, so they are handed out one by one.
  std::atomic<size_t> next{0};
  const auto work = [&](int worker) {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < batch_.size();) {
      TakeRow(batch_[i], {logits + static_cast<int64_t>(i) * stride, vocab},
              &scratch_[static_cast<size_t>(worker)]);
    }
  };
  if (batch_.size() == 1) {
    work(0);
  } else {
    pool_->Run(work);
  }
}

void RowSampler::TakeBest() {
  for (size_t i = 0; i < greedy_rows_.size(); ++i) {
    SampledToken& sampled = result_.sampled[static_cast<size_t>(greedy_sampled_[i])];
    if (best_[i] < 0) {
      sampled.error = SampleError::kNonFiniteLogits;
      continue;
    }
    sampled.token = best_[i];
    const PlanItem& item = plan_->items[static_cast<size_t>(sampled.item)];
    At(item.slot).state.Accept(best_[i]);
  }
}

void RowSampler::Draw(const PlanItem& item, std::span<float> logits, SampleScratch* scratch,
                      SampledToken* sampled) {
  auto& [state, constraint] = At(item.slot);
  std::span<const uint32_t> allowed;
  if (constraint != nullptr && constraint->FillMask(state.remaining(), scratch->mask)) {
    allowed = scratch->mask;
  }
  const int32_t position = item.first_position + item.num_tokens;
  std::optional<TokenId> drawn;
  for (int32_t attempt = 0;; ++attempt) {
    drawn = state.Sample(ops_, logits, position, scratch, allowed, attempt);
    if (!drawn) {
      sampled->error = SampleError::kNonFiniteLogits;
      return;
    }
    if (allowed.empty() || constraint->Affords(*drawn, state.remaining(), scratch->mask)) break;
  }
  state.Accept(*drawn);
  sampled->token = *drawn;
  if (constraint == nullptr) return;
  if (!constraint->Accept(*drawn)) sampled->error = SampleError::kRefused;
  sampled->ends = constraint->Done() || std::ranges::find(eos_ids_, *drawn) != eos_ids_.end();
}

void RowSampler::TakeRow(const LogitRow& row, std::span<float> logits, SampleScratch* scratch) {
  const PlanItem& item = plan_->items[static_cast<size_t>(row.item)];
  TokenId token = row.prompt_token;
  if (row.sampled >= 0) {
    SampledToken& sampled = result_.sampled[static_cast<size_t>(row.sampled)];
    Draw(item, logits, scratch, &sampled);
    if (sampled.error != SampleError::kNone) return;
    token = sampled.token;
  }
  if (row.logprob_row < 0) return;
  LogprobRow& out = result_.logprob_rows[static_cast<size_t>(row.logprob_row)];
  const auto top =
      std::span(result_.top_logprobs)
          .subspan(static_cast<size_t>(out.first_top), static_cast<size_t>(row.num_top));
  if (!ComputeLogprobs(ops_, logits, token, top, &out)) {
    out.chosen = {token, std::numeric_limits<float>::quiet_NaN()};
    out.num_top = 0;
  }
}

void RowSampler::Finish(StepResult* result) {
  Reserve(result);  // allocates the first time this result is seen
  std::swap(*result, result_);
  plan_ = nullptr;
}

}  // namespace vivace
