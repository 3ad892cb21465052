// One row of logits to one token.
//
// A SamplerState belongs to a slot; Bind allocates all it will ever need, Sample nothing. Rows may
// be sampled in parallel, each with its own state and a scratch of the calling worker's own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kernels/vocab_ops.h"
#include "sample/sampling_params.h"
#include "sample/token_counts.h"

namespace vivace {

// A worker's scratch, for rows of up to `vocab` logits.
class SampleScratch {
 public:
  struct Candidate {
    float weight;  // exp of the scaled logit, 1 for the greatest
    TokenId token;
  };

  // Weights lie in [0, 1]; those that share sign, exponent and five bits of mantissa share a
  // bucket.
  static constexpr int kBucketShift = 18;
  static constexpr size_t kBuckets = (0x3f800000u >> kBucketShift) + 1;

  explicit SampleScratch(int32_t vocab)
      : candidates(static_cast<size_t>(vocab)), ids(static_cast<size_t>(vocab)), mass(kBuckets) {}

  std::vector<Candidate> candidates;
  std::vector<int32_t> ids;
  std::vector<double> mass;  // of each bucket
};

class SamplerState {
 public:
  // tokens[0, prompt_len) is the prompt, the rest was generated already. `eos_ids` cannot be drawn
  // before min_tokens, nor can the stop ids.
  void Bind(const SamplingParams& params, int32_t choice, std::span<const TokenId> tokens,
            int32_t prompt_len, std::span<const TokenId> eos_ids, int32_t max_model_len);

  const SamplingParams& params() const { return params_; }

  // Draws the token that stands at `position`. `logits` [vocab] is edited meanwhile and restored.
  // Nothing if a logit is NaN or +inf, or none is above -inf.
  std::optional<TokenId> Sample(const kernels::VocabOps& ops, std::span<float> logits,
                                int32_t position, SampleScratch* scratch);

 private:
  void Edit(float* logits);
  void SetLogit(float* logits, TokenId token, float value);
  void Restore(float* logits);
  TokenId Draw(const kernels::VocabOps& ops, std::span<const float> logits, float max,
               int32_t position, SampleScratch* scratch) const;

  SamplingParams params_;
  int32_t choice_ = 0;
  int32_t outputs_ = 0;  // tokens generated so far
  bool penalised_ = false;
  std::vector<TokenId> banned_;  // before min_tokens
  TokenCounts counts_;           // only if penalised_
  struct Saved {
    TokenId token;
    float logit;
  };
  std::vector<Saved> saved_;  // edits to take back, in order
};

}  // namespace vivace
