// What one step computes, and what came of it: flat arrays only. The plan is the executor's input,
// the broadcast to other ranks and the log a replay reads; the result is the scheduler's input.
// Both are reused from step to step and never allocate once reserved.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace vivace {

// Which of an item's rows need logits, or a hidden state of their own: the others end in the cache.
enum class LogitRows : uint8_t {
  kNone,      // a prompt chunk that is not the last
  kLast,      // a decode, or the chunk that ends the prompt: one token is sampled
  kAll,       // prompt log-probabilities are wanted; `sample` says if the last row is sampled too
  kPoolLast,  // the chunk that ends a prompt whose last hidden state is wanted
  kPoolAll,   // a chunk of a prompt whose hidden states' mean is wanted
};

// What is wanted of a prompt's hidden states.
enum class Pooling : uint8_t { kNone, kLast, kMean };

// One sequence's share of the step: tokens [first_token, first_token + num_tokens) of the plan at
// positions [first_position, ...). Its block table in group g of the cache (kv/kv_groups.h) is
// block_ids[first_block + g * num_blocks .. + num_blocks). In a window group the ids of blocks that
// none of its tokens sees are invalid.
struct PlanItem {
  SeqSlot slot;
  int32_t first_token = 0;
  int32_t num_tokens = 0;
  int32_t first_position = 0;
  int32_t first_block = 0;
  int32_t num_blocks = 0;  // of one group
  LogitRows logit_rows = LogitRows::kNone;
  bool sample = false;             // draw one token after the last row
  TokenId next_prompt_token = -1;  // kAll: the prompt token after this chunk, -1 at its end
  bool pool_ends = false;          // a pooled prompt is complete with it

  bool pools() const {
    return logit_rows == LogitRows::kPoolLast || logit_rows == LogitRows::kPoolAll;
  }
  // Its rows whose logits are needed: the plan's [first_logit_row(), end_logit_row()).
  int32_t first_logit_row() const {
    switch (logit_rows) {
      case LogitRows::kAll:
      case LogitRows::kPoolAll:
        return first_token;
      case LogitRows::kNone:
        return end_logit_row();
      case LogitRows::kLast:
      case LogitRows::kPoolLast:
        break;
    }
    return end_logit_row() - 1;
  }
  int32_t end_logit_row() const {
    // A prompt's last row predicts no token of the prompt.
    const bool skips_last = logit_rows == LogitRows::kAll && !sample && next_prompt_token < 0;
    return first_token + num_tokens - (skips_last ? 1 : 0);
  }
};

struct StepPlan {
  uint64_t step = 0;
  std::vector<PlanItem> items;  // decodes, then appended output, then prompts
  std::vector<TokenId> tokens;
  std::vector<BlockId> block_ids;
  int32_t prefill_tokens = 0;
  int32_t decode_tokens = 0;
  int32_t appended_tokens = 0;  // of items that feed output which was not sampled

  bool empty() const { return items.empty(); }
  void Clear() {
    items.clear();
    tokens.clear();
    block_ids.clear();
    prefill_tokens = decode_tokens = appended_tokens = 0;
  }
};

struct TokenLogprob {
  TokenId token = -1;
  float logprob = 0.0f;  // natural log, raw model distribution
};

// Log-probabilities of one position: the token that stands there and the most likely ones, best
// first, as a range of StepResult::top_logprobs.
struct LogprobRow {
  TokenLogprob chosen;
  int32_t rank = 0;  // of `chosen`, 1 = most likely
  int32_t first_top = 0;
  int32_t num_top = 0;
};

enum class SampleError : uint8_t {
  kNone,
  kNonFiniteLogits,
  kRefused,  // by the constraint: too costly, or it had allowed the token, a fault of ours
};

struct SampledToken {
  int32_t item = 0;  // index into StepPlan::items
  TokenId token = -1;
  SampleError error = SampleError::kNone;
  int32_t logprob_row = -1;  // index into logprob_rows, or -1
  bool ends = false;         // a constraint's output is complete with it
};

// A pooled prompt's vector, [hidden]. Valid until the next launch.
struct PooledRow {
  int32_t item = 0;
  std::span<const float> values;
};

struct StepResult {
  uint64_t step = 0;
  int64_t elapsed_ns = 0;  // from launch to result, by the engine's clock; 0: not measured
  std::vector<SampledToken> sampled;     // in the order of the plan's sampling items
  std::vector<LogprobRow> logprob_rows;  // sampled rows and prompt rows
  std::vector<TokenLogprob> top_logprobs;
  // Prompt rows of item i: logprob_rows[prompt_rows[i].first .. + count); the k-th belongs to the
  // prompt token at position first_position + k + 1.
  struct PromptRows {
    int32_t item = 0;
    int32_t first = 0;
    int32_t count = 0;
  };
  std::vector<PromptRows> prompt_rows;
  std::vector<PooledRow> pooled;

  void Clear() {
    elapsed_ns = 0;
    sampled.clear();
    pooled.clear();
    logprob_rows.clear();
    top_logprobs.clear();
    prompt_rows.clear();
  }
};

}  // namespace vivace
