// How the next token of one choice is chosen. Plain data, validated by the server's parameter table
// and again by Validate (engine door); neutral values mean "off".
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace vivace {

// Order of edits to the logits, as vLLM applies them: allowed-token masks (of a constraint and of
// allowed_token_ids) and logit_bias, then repetition, frequency and presence penalties, bans
// (bad_words; min_tokens bans EOS and stop ids), temperature, min_p, top_k, top_p, draw. Where
// nothing would be left, bans give way, then allowed_token_ids to the constraint, the constraint
// never. Log-probabilities are of the raw model distribution, before any edit.
struct SamplingParams {
  float temperature = 1.0f;         // 0: greedy; [0, 100]
  int32_t top_k = 0;                // 0: off
  float top_p = 1.0f;               // (0, 1]
  float min_p = 0.0f;               // [0, 1]
  float presence_penalty = 0.0f;    // [-2, 2], over output tokens
  float frequency_penalty = 0.0f;   // [-2, 2], over output tokens
  float repetition_penalty = 1.0f;  // [0.01, 100], over prompt and output tokens
  std::vector<std::pair<TokenId, float>> logit_bias = {};  // each in [-100, 100]; ids unique
  std::vector<TokenId> allowed_token_ids = {};             // only these are drawn; empty: all
  // Runs of tokens the output must not hold: where it ends with all but the last of one, that last
  // one cannot be drawn. None is empty.
  std::vector<std::vector<TokenId>> bad_words = {};

  uint64_t seed = 0;  // of the counter-based RNG; the engine draws one if unset
  bool seeded = false;

  int32_t max_tokens = 0;  // output tokens; 0 only together with prompt_logprobs/echo
  int32_t min_tokens = 0;  // before these, EOS and stop ids cannot be drawn
  bool ignore_eos = false;
  std::vector<TokenId> stop_token_ids = {};

  int32_t logprobs = -1;         // -1: none; n: the drawn token's and the n most likely; <= 20
  int32_t prompt_logprobs = -1;  // the same over the prompt's tokens
};

// Ranges, finiteness and ids below `vocab`; the error's field names the parameter.
Status Validate(const SamplingParams& params, int32_t vocab);

}  // namespace vivace
