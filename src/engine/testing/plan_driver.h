// Drives an executor without a scheduler, for tests of what stands below it: sequences with blocks
// of their own, steps that say how many tokens each computes. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/executor.h"

namespace vivace::testing {

class PlanDriver {
 public:
  struct Sequence {
    SamplingParams params;
    std::vector<TokenId> tokens;  // prompt, then what was drawn
    int32_t prompt_len = 0;
    int32_t computed = 0;
    std::vector<BlockId> blocks;
    std::vector<SampleError> errors;   // one for each draw
    bool ended = false;                // by its constraint
    Pooling pooling = Pooling::kNone;  // of the prompt, instead of drawing
    std::vector<float> pooled;
    std::vector<LogprobRow> logprobs;         // of drawn tokens
    std::vector<LogprobRow> prompt_logprobs;  // of prompt tokens 1, 2, ...
    std::vector<std::vector<TokenLogprob>> top, prompt_top;

    std::vector<TokenId> output() const { return {tokens.begin() + prompt_len, tokens.end()}; }
  };

  // `reverse_blocks`: block ids from the end of the pool.
  explicit PlanDriver(Executor* executor, bool reverse_blocks = false)
      : executor_(*executor), reverse_blocks_(reverse_blocks) {}

  int32_t Add(std::vector<TokenId> prompt, const SamplingParams& params, int32_t choice = 0,
              TokenConstraint* constraint = nullptr) {
    const auto slot = static_cast<int32_t>(sequences_.size());
    VIVACE_CHECK(slot < executor_.limits().max_sequences);
    executor_.BindSlot(SeqSlot(slot), {.params = params,
                                       .choice = choice,
                                       .tokens = prompt,
                                       .prompt_len = static_cast<int32_t>(prompt.size()),
                                       .constraint = constraint});
    Sequence sequence;
    sequence.params = params;
    sequence.prompt_len = static_cast<int32_t>(prompt.size());
    sequence.tokens = std::move(prompt);
    sequences_.push_back(std::move(sequence));
    return slot;
  }

  const Sequence& operator[](int32_t i) const { return sequences_[static_cast<size_t>(i)]; }

  // A prompt to pool.
  int32_t AddPooled(std::vector<TokenId> prompt, Pooling pooling) {
    const int32_t slot = Add(std::move(prompt), {});
    sequences_.back().pooling = pooling;
    return slot;
  }

  // Computes pooled sequence `i` alone, in chunks.
  void Pool(int32_t i, int32_t chunk = 1 << 20) {
    while (sequences_[static_cast<size_t>(i)].pooled.empty()) Step({{i, Next(i, chunk)}});
  }

  // Output that was not sampled.
  void Append(int32_t i, const std::vector<TokenId>& tokens) {
    Sequence& s = sequences_[static_cast<size_t>(i)];
    s.tokens.insert(s.tokens.end(), tokens.begin(), tokens.end());
  }

  // One step: `count` tokens of each named sequence, no more than it has uncomputed.
  void Step(const std::vector<std::pair<int32_t, int32_t>>& parts) {
    plan_.Clear();
    plan_.step++;
    for (const auto& [sequence, count] : parts) AddItem(sequence, count);
    executor_.Launch(plan_);
    executor_.Await(&result_);
    Take();
  }

  // Computes sequence `i` alone until `output` tokens were drawn, prompt in chunks of `chunk`.
  void Finish(int32_t i, int32_t output, int32_t chunk = 1 << 20) {
    const Sequence& s = sequences_[static_cast<size_t>(i)];
    while (static_cast<int32_t>(s.tokens.size()) - s.prompt_len < output)
      Step({{i, Next(i, chunk)}});
  }

  // Tokens sequence `i` can compute now, at most `chunk` and at most what a step holds.
  int32_t Next(int32_t i, int32_t chunk) const {
    const Sequence& s = sequences_[static_cast<size_t>(i)];
    const auto left = static_cast<int32_t>(s.tokens.size()) - s.computed;
    return std::min({left, chunk, executor_.limits().max_batched_tokens});
  }

  StepPlan& plan() { return plan_; }
  StepResult& result() { return result_; }

 private:
  void AddItem(int32_t index, int32_t count) {
    Sequence& s = sequences_[static_cast<size_t>(index)];
    const auto total = static_cast<int32_t>(s.tokens.size());
    const int32_t end = s.computed + count;
    VIVACE_CHECK(count > 0 && end <= total);
    const int32_t block_size = executor_.limits().block_size;
    while (static_cast<int32_t>(s.blocks.size()) * block_size < end)
      s.blocks.push_back(TakeBlock());
    PlanItem item{.slot = SeqSlot(index),
                  .first_token = static_cast<int32_t>(plan_.tokens.size()),
                  .num_tokens = count,
                  .first_position = s.computed,
                  .first_block = static_cast<int32_t>(plan_.block_ids.size()),
                  .num_blocks = static_cast<int32_t>(s.blocks.size()),
                  .sample = end == total && s.pooling == Pooling::kNone};
    const bool prompt = s.computed < s.prompt_len && s.params.prompt_logprobs >= 0;
    item.logit_rows = prompt ? LogitRows::kAll : item.sample ? LogitRows::kLast : LogitRows::kNone;
    if (s.pooling == Pooling::kMean) item.logit_rows = LogitRows::kPoolAll;
    if (s.pooling == Pooling::kLast && end == total) item.logit_rows = LogitRows::kPoolLast;
    item.pool_ends = s.pooling != Pooling::kNone && end == total;
    if (prompt && end < s.prompt_len) item.next_prompt_token = s.tokens[static_cast<size_t>(end)];
    plan_.tokens.insert(plan_.tokens.end(), s.tokens.begin() + s.computed, s.tokens.begin() + end);
    plan_.block_ids.insert(plan_.block_ids.end(), s.blocks.begin(), s.blocks.end());
    plan_.items.push_back(item);
    s.computed = end;
  }

  BlockId TakeBlock() {
    VIVACE_CHECK(next_block_ < executor_.limits().num_blocks);
    const int32_t id = next_block_++;
    return BlockId(reverse_blocks_ ? executor_.limits().num_blocks - 1 - id : id);
  }

  Sequence& Of(int32_t item) {
    return sequences_[static_cast<size_t>(plan_.items[static_cast<size_t>(item)].slot.value)];
  }

  std::vector<TokenLogprob> Top(const LogprobRow& row) const {
    const auto first = result_.top_logprobs.begin() + row.first_top;
    return {first, first + row.num_top};
  }

  void Take() {
    VIVACE_CHECK(result_.step == plan_.step);
    for (const SampledToken& sampled : result_.sampled) {
      Sequence& s = Of(sampled.item);
      s.tokens.push_back(sampled.token);
      s.errors.push_back(sampled.error);
      s.ended |= sampled.ends;
      if (sampled.logprob_row < 0) continue;
      s.logprobs.push_back(result_.logprob_rows[static_cast<size_t>(sampled.logprob_row)]);
      s.top.push_back(Top(s.logprobs.back()));
    }
    for (const PooledRow& row : result_.pooled) {
      Of(row.item).pooled.assign(row.values.begin(), row.values.end());
    }
    for (const StepResult::PromptRows& rows : result_.prompt_rows) {
      Sequence& s = Of(rows.item);
      for (int32_t i = 0; i < rows.count; ++i) {
        s.prompt_logprobs.push_back(result_.logprob_rows[static_cast<size_t>(rows.first + i)]);
        s.prompt_top.push_back(Top(s.prompt_logprobs.back()));
      }
    }
  }

  Executor& executor_;
  const bool reverse_blocks_;
  std::vector<Sequence> sequences_;
  int32_t next_block_ = 0;
  StepPlan plan_;
  StepResult result_;
};

}  // namespace vivace::testing
