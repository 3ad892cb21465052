// One row of logits to one token.
//
// A SamplerState belongs to a slot; Bind allocates all it will ever need, Sample nothing. Rows may
// be sampled in parallel, each with its own state and a scratch of the calling worker's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kernels/vocab_ops.h"
#include "sample/sampling_params.h"
#include "sample/token_counts.h"
#include "sample/token_mask.h"

namespace vivace {

// A worker's scratch, for rows of up to `vocab` logits.
class SampleScratch {
 public:
  static constexpr int32_t kRun = 1024;  // tokens whose weights are summed at once

  explicit SampleScratch(int32_t vocab)
      : ids(Tokens(vocab)),
        weights(ids.size()),
        undecided(ids.size()),
        masses(Runs(vocab)),
        mask(MaskWords(vocab)),
        row(static_cast<size_t>(vocab)) {}

  static size_t Bytes(int32_t vocab) {
    return Tokens(vocab) * (sizeof(int32_t) + 2 * sizeof(float)) + Runs(vocab) * sizeof(double) +
           MaskWords(vocab) * sizeof(uint32_t) + static_cast<size_t>(vocab) * sizeof(float);
  }

  std::vector<int32_t> ids;      // of candidates, ascending
  std::vector<float> weights;    // theirs: exp of the scaled logit, 1 for the greatest
  std::vector<float> undecided;  // weights that a cut may still leave or take
  std::vector<double> masses;    // of runs of weights
  std::vector<uint32_t> mask;    // of a constraint, for whoever fills it
  std::vector<float> row;        // the logits, with -inf where a mask forbids

 private:
  static size_t Tokens(int32_t vocab) { return static_cast<size_t>(vocab + kernels::kVocabSlack); }
  static size_t Runs(int32_t vocab) { return static_cast<size_t>(vocab / kRun + 1); }
};

class SamplerState {
 public:
  // tokens[0, prompt_len) is the prompt, the rest was generated already. `eos_ids` cannot be drawn
  // before min_tokens, nor can the stop ids.
  void Bind(const SamplingParams& params, int32_t choice, std::span<const TokenId> tokens,
            int32_t prompt_len, std::span<const TokenId> eos_ids, int32_t max_model_len);

  // `tokens` stand in the sequence from `position` on. Those it does not have yet became output
  // without being drawn.
  void Follow(int32_t position, std::span<const TokenId> tokens);

  const SamplingParams& params() const { return params_; }

  // True if the next token is the first of the greatest logits, whatever the rest: then the row
  // need not be stored.
  bool TakesArgmax() const;
  void Accept(TokenId token);  // the next token of the sequence

  // Output tokens that may still be made.
  int32_t remaining() const { return max_outputs_ - outputs_; }

  // Draws a token for `position`, which counts once it is told to Accept. `logits` [vocab] is
  // edited meanwhile and restored. `allowed`: a constraint's mask, [MaskWords(vocab)], 1: may be
  // drawn; empty: all may. `attempt`: how often one was drawn for it before and could not stay.
  // Nothing if a logit is NaN or +inf, or none is above -inf.
  std::optional<TokenId> Sample(const kernels::VocabOps& ops, std::span<float> logits,
                                int32_t position, SampleScratch* scratch,
                                std::span<const uint32_t> allowed = {}, int32_t attempt = 0);

 private:
  bool Greedy() const;
  float* Mask(std::span<float> logits, std::span<const uint32_t> allowed,
              SampleScratch* scratch) const;
  void Edit(float* logits);
  void Ban(float* logits);
  void SetLogit(float* logits, TokenId token, float value);
  void Restore(float* logits, size_t edits);
  TokenId Draw(const kernels::VocabOps& ops, std::span<const float> logits, float max, double u,
               SampleScratch* scratch) const;

  SamplingParams params_;
  int32_t choice_ = 0;
  int32_t length_ = 0;   // tokens of the sequence so far
  int32_t outputs_ = 0;  // of these, generated
  int32_t max_outputs_ = 0;
  bool penalised_ = false;
  std::vector<TokenId> banned_;    // before min_tokens
  TokenCounts counts_;             // only if penalised_
  std::vector<uint32_t> allowed_;  // allowed_token_ids as a mask; empty: all
  size_t tail_length_ = 0;         // output tokens that bad_words look at
  std::vector<TokenId> tail_;      // the last of them
  struct Saved {
    TokenId token;
    float logit;
  };
  std::vector<Saved> saved_;  // edits to take back, in order
};

}  // namespace vivace
