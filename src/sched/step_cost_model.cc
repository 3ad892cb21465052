#include "sched/step_cost_model.h"

#include <algorithm>
#include <cmath>

namespace vivace {
namespace {

constexpr double kTrusted = 0.1;  // relative error up to which an observation weighs in full
// Each Observe improves the last fit by this many rounds of coordinate descent; the rest of the way
// is made by the next ones.
constexpr int kRounds = 6;

}  // namespace

StepCostModel::Terms StepCostModel::TermsOf(const StepShape& shape) {
  Terms terms{};
  terms[kDecodeContext] = static_cast<double>(shape.decode_context);
  if (shape.prompt_rows == 0) {
    terms[kDecodeFixed] = 1.0;
    terms[kDecodeRow] = shape.decodes;
    return terms;
  }
  terms[kPromptFixed] = 1.0;
  terms[kPromptRow] = shape.prompt_rows + shape.decodes;
  terms[kPromptContext] = static_cast<double>(shape.prompt_context);
  terms[kLogitRow] = shape.prompt_logit_rows + shape.decodes;
  return terms;
}

double StepCostModel::Cost(const Terms& terms) const {
  double cost = 0.0;
  for (size_t i = 0; i < kTerms; ++i) cost += terms[i] * costs_[i];
  return cost;
}

double StepCostModel::Predict(const StepShape& shape) const {
  const double cost = Cost(TermsOf(shape));
  if (shape.prompt_rows == 0 || shape.decodes == 0) return cost;
  // Before the first steps of both, the cost of a decode beside a prompt is a guess; but no step
  // is shorter than its decodes alone.
  const StepShape decodes{.decodes = shape.decodes, .decode_context = shape.decode_context};
  return std::max(cost, Cost(TermsOf(decodes)));
}

void StepCostModel::Observe(const StepShape& shape, int64_t elapsed_ns) {
  if (elapsed_ns <= 0 || shape.prompt_rows + shape.decodes <= 0) return;
  const Kind kind = shape.prompt_rows == 0 ? kDecodes : shape.decodes == 0 ? kPrompts : kBoth;
  Window& window = windows_[kind];
  window.samples[window.next] = {TermsOf(shape), static_cast<double>(elapsed_ns)};
  window.next = (window.next + 1) % kWindow;
  window.size = std::min(window.size + 1, kWindow);
  Fit();
}

// Least squares of the relative errors, each weighed by how credible it is under the last fit
// (Huber), with no cost below zero.
void StepCostModel::Fit() {
  std::array<Terms, kTerms> gram{};  // lower triangle
  Terms target{};
  for (const Window& window : windows_) {
    for (size_t s = 0; s < window.size; ++s) {
      const Sample& sample = window.samples[s];
      const double error = std::abs(Cost(sample.terms) / sample.elapsed_ns - 1.0);
      const double trust = error > kTrusted ? kTrusted / error : 1.0;
      const double weight = trust / (sample.elapsed_ns * sample.elapsed_ns);
      for (size_t i = 0; i < kTerms; ++i) {
        const double weighted = weight * sample.terms[i];
        target[i] += weighted * sample.elapsed_ns;
        for (size_t j = 0; j <= i; ++j) gram[i][j] += weighted * sample.terms[j];
      }
    }
  }
  for (size_t i = 0; i < kTerms; ++i) {
    for (size_t j = i + 1; j < kTerms; ++j) gram[i][j] = gram[j][i];
  }
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kTerms; ++i) {
      if (gram[i][i] <= 0.0) continue;  // never seen
      double rest = target[i];
      for (size_t j = 0; j < kTerms; ++j) rest -= j == i ? 0.0 : gram[i][j] * costs_[j];
      costs_[i] = std::max(rest / gram[i][i], 0.0);
    }
  }
}

}  // namespace vivace
