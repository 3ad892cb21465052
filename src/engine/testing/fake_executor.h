// An executor without a model, for tests of what stands above it. The next token is a hash of the
// sequence's tokens as the plans brought them, so a lost, doubled or foreign token changes every
// later one. Steps can be held to test what happens while one is in flight.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"
#include "engine/executor.h"
#include "sample/token_mask.h"

namespace vivace::testing {

class FakeExecutor final : public Executor {
 public:
  explicit FakeExecutor(const ExecutorLimits& limits)
      : limits_(limits), slots_(static_cast<size_t>(limits.max_sequences)) {}

  // The token after `tokens`, unless `next` overrides it.
  static TokenId NextToken(std::span<const TokenId> tokens, int32_t vocab) {
    uint64_t hash = 1469598103934665603ull;
    for (const TokenId token : tokens)
      hash = (hash ^ static_cast<uint64_t>(token)) * 1099511628211ull;
    return static_cast<TokenId>((hash >> 20) % static_cast<uint64_t>(vocab));
  }

  std::function<TokenId(std::span<const TokenId> tokens)> next;  // set before the first step
  std::atomic<bool> non_finite{false};                           // every sample is an error
  std::chrono::microseconds per_token{0};                        // a step takes this long, at least

  // Steps launched from now on wait in Await until Release.
  void Hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void Release() {
    {
      const std::lock_guard lock(mutex_);
      held_ = false;
    }
    changed_.notify_all();
  }
  void WaitInFlight() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return in_flight_; });
  }

  const ExecutorLimits& limits() const override { return limits_; }

  void BindSlot(SeqSlot slot, const SlotBinding& binding) override {
    Slot& s = At(slot);
    VIVACE_CHECK(!s.bound);
    s = {.bound = true,
         .logprobs = binding.params.logprobs,
         .prompt_logprobs = binding.params.prompt_logprobs,
         .constraint = binding.constraint,
         .most = binding.prompt_len + binding.params.max_tokens,
         .tokens = std::vector<TokenId>(binding.tokens.begin(), binding.tokens.end())};
    s.tokens.reserve(static_cast<size_t>(limits_.max_model_len));
  }
  void ReleaseSlot(SeqSlot slot) override {
    VIVACE_CHECK(At(slot).bound);
    At(slot).bound = false;
  }

  void Launch(const StepPlan& plan) override {
    plan_ = &plan;
    const std::lock_guard lock(mutex_);
    in_flight_ = true;
    changed_.notify_all();
  }

  void Await(StepResult* result) override {
    if (per_token.count() > 0) std::this_thread::sleep_for(per_token * plan_->tokens.size());
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !held_; });
    in_flight_ = false;
    result->Clear();
    result->step = plan_->step;
    for (size_t i = 0; i < plan_->items.size(); ++i) Compute(static_cast<int32_t>(i), result);
  }

 private:
  struct Slot {
    bool bound = false;
    int32_t logprobs = -1;
    int32_t prompt_logprobs = -1;
    TokenConstraint* constraint = nullptr;
    int32_t most = 0;  // tokens of the sequence
    std::vector<TokenId> tokens;
    std::vector<float> pooled = {};  // sum, then mean; or last
    int32_t positions = 0;
  };

  Slot& At(SeqSlot slot) { return slots_[static_cast<size_t>(slot.value)]; }

  // Log-probabilities are made up: -(token + 1) / 1000 for the token, descending alternatives.
  static int32_t AddRow(TokenId token, int32_t num_top, StepResult* result) {
    const auto first = static_cast<int32_t>(result->top_logprobs.size());
    for (int32_t k = 0; k < num_top; ++k) {
      result->top_logprobs.push_back({token + k, -0.001f * static_cast<float>(token + 1 + k)});
    }
    result->logprob_rows.push_back(
        {{token, -0.001f * static_cast<float>(token + 1)}, 1, first, num_top});
    return static_cast<int32_t>(result->logprob_rows.size()) - 1;
  }

  void Compute(int32_t index, StepResult* result) {
    const PlanItem& item = plan_->items[static_cast<size_t>(index)];
    Slot& slot = At(item.slot);
    VIVACE_CHECK(slot.bound);
    slot.tokens.resize(static_cast<size_t>(item.first_position + item.num_tokens));
    for (int32_t k = 0; k < item.num_tokens; ++k) {
      slot.tokens[static_cast<size_t>(item.first_position + k)] =
          plan_->tokens[static_cast<size_t>(item.first_token + k)];
    }
    if (item.logit_rows == LogitRows::kAll) AddPromptRows(index, item, slot, result);
    if (item.pools()) Pool(index, item, &slot, result);
    if (!item.sample) return;
    SampledToken sampled{.item = index};
    if (non_finite) {
      sampled.error = SampleError::kNonFiniteLogits;
    } else {
      sampled.token = next ? next(slot.tokens) : NextToken(slot.tokens, limits_.vocab);
      if (slot.constraint != nullptr) Constrain(slot, &sampled);
      if (slot.logprobs >= 0) sampled.logprob_row = AddRow(sampled.token, slot.logprobs, result);
    }
    result->sampled.push_back(sampled);
  }

  // The first allowed token from the one that would have come.
  void Constrain(const Slot& slot, SampledToken* sampled) const {
    std::vector<uint32_t> mask(MaskWords(limits_.vocab));
    const int32_t remaining = slot.most - static_cast<int32_t>(slot.tokens.size());
    if (slot.constraint->FillMask(remaining, mask)) {
      do {
        while (!InMask(mask, sampled->token)) sampled->token = (sampled->token + 1) % limits_.vocab;
      } while (!slot.constraint->Affords(sampled->token, remaining, mask));
    }
    if (!slot.constraint->Accept(sampled->token)) sampled->error = SampleError::kRefused;
    sampled->ends = slot.constraint->Done();
  }

  // A hidden state is made up: that of a token at its position is [token, position, 0, ...].
  void Pool(int32_t index, const PlanItem& item, Slot* slot, StepResult* result) const {
    if (item.first_position == 0 || item.logit_rows == LogitRows::kPoolLast) {
      slot->pooled.assign(static_cast<size_t>(limits_.hidden), 0.0f);
      slot->positions = 0;
    }
    const bool last = item.logit_rows == LogitRows::kPoolLast;
    for (int32_t k = last ? item.num_tokens - 1 : 0; k < item.num_tokens; ++k) {
      const int32_t position = item.first_position + k;
      slot->pooled[0] += static_cast<float>(slot->tokens[static_cast<size_t>(position)]);
      slot->pooled[1] += static_cast<float>(position);
      ++slot->positions;
    }
    if (!item.pool_ends) return;
    for (float& x : slot->pooled) x /= static_cast<float>(slot->positions);
    result->pooled.push_back({.item = index, .values = slot->pooled});
  }

  void AddPromptRows(int32_t index, const PlanItem& item, const Slot& slot, StepResult* result) {
    const auto first = static_cast<int32_t>(result->logprob_rows.size());
    for (int32_t k = 0; k < item.num_tokens; ++k) {
      const bool last = k + 1 == item.num_tokens;
      const TokenId token = last ? item.next_prompt_token
                                 : plan_->tokens[static_cast<size_t>(item.first_token + k + 1)];
      if (token >= 0) AddRow(token, slot.prompt_logprobs, result);
    }
    const auto count = static_cast<int32_t>(result->logprob_rows.size()) - first;
    result->prompt_rows.push_back({index, first, count});
  }

  const ExecutorLimits limits_;
  std::vector<Slot> slots_;
  const StepPlan* plan_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool in_flight_ = false;
};

}  // namespace vivace::testing
