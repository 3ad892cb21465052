// Predicts how long a step takes from what it computes, learned from the steps that were timed.
//
// A step of decodes alone streams the weights once for few rows; with a prompt's rows in it the
// kernels work in batches, and a decode is one more row of them. So the two have a fixed cost and a
// cost per row of their own, and share the cost of a decode's context:
//
//   decodes alone   fixed + rows * row + context * position
//   with a prompt   fixed + rows * row + context * position + prompt_context * prompt position
//                   + logit rows * logit row
//
// All seven are non-negative and fitted to the last kWindow steps of each of three kinds (decodes,
// prompts, both), so that an hour of decodes does not wash out what the last prompt taught. The fit
// is of relative errors, and a step that is far off (the system took the processor away) weighs
// less the further off it is: a few of them move nothing, a lasting change wins within a window.
// What one kind of step alone cannot tell apart is put on the rows, so a larger step is rather
// over- than underestimated.
//
// Deterministic: the same observations give the same predictions. One thread. Observe costs a few
// microseconds, Predict a few nanoseconds; neither allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace vivace {

// What a step computes, as far as time goes.
struct StepShape {
  int32_t decodes = 0;            // rows that are a sequence's one new token
  int64_t decode_context = 0;     // positions these attend to, summed
  int32_t prompt_rows = 0;        // rows of prompt chunks
  int64_t prompt_context = 0;     // positions these attend to, summed
  int32_t prompt_logit_rows = 0;  // of these, rows whose logits are wanted

  // Adds tokens [position, position + count) of a prompt.
  void AddPrompt(int64_t position, int64_t count, bool all_logits, bool ends_prompt) {
    prompt_rows += static_cast<int32_t>(count);
    prompt_context += count * position + count * (count + 1) / 2;
    prompt_logit_rows += all_logits ? static_cast<int32_t>(count) : ends_prompt;
  }
};

class StepCostModel {
 public:
  static constexpr size_t kWindow = 32;

  // Nanoseconds; 0 while nothing of the kind was observed.
  double Predict(const StepShape& shape) const;
  // Whether steps with a prompt in them were observed.
  bool knows_prompts() const { return windows_[kPrompts].size + windows_[kBoth].size > 0; }

  // Takes in that a step took `elapsed_ns`; what is not positive or has no rows is ignored.
  void Observe(const StepShape& shape, int64_t elapsed_ns);

 private:
  // Slopes come first: the fit goes through them in this order (see above).
  enum Term : size_t {
    kPromptRow,
    kDecodeRow,
    kPromptContext,
    kDecodeContext,
    kLogitRow,
    kPromptFixed,
    kDecodeFixed,
    kTerms
  };
  using Terms = std::array<double, kTerms>;
  enum Kind : size_t { kDecodes, kPrompts, kBoth, kKinds };

  struct Sample {
    Terms terms;
    double elapsed_ns;
  };
  struct Window {
    std::array<Sample, kWindow> samples;
    size_t size = 0;
    size_t next = 0;  // the oldest, once full
  };

  static Terms TermsOf(const StepShape& shape);
  double Cost(const Terms& terms) const;
  void Fit();

  Terms costs_{};  // ns of one of each term
  std::array<Window, kKinds> windows_{};
};

}  // namespace vivace
