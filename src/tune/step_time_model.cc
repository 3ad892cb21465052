#include "tune/step_time_model.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace vivace::tune {
namespace {

constexpr double kFewRows = 8, kSomeRows = 64;
constexpr double kTrusted = 0.1;  // relative error up to which a step weighs in full
constexpr int kFits = 6;          // of least squares, each with the weights of the last
constexpr int kSweeps = 3000;     // of coordinate descent

enum Term : size_t {
  kDecodeRowsFew,
  kDecodeRowsSome,
  kDecodeRowsMany,
  kBatchRows,
  kBatchRowsMany,
  kDecodeContext,
  kPromptContext,
  kLogitRow,
  kDecodeFixed,
  kBatchFixed,
};

// Ranges of rows that nothing measured may reach, and those below them.
constexpr std::pair<Term, Term> kNextRange[] = {{kDecodeRowsSome, kDecodeRowsFew},
                                                {kDecodeRowsMany, kDecodeRowsSome},
                                                {kBatchRowsMany, kBatchRows}};

StepTimeModel::Terms TermsOf(const StepShape& shape) {
  const double rows = shape.decodes + shape.prompt_rows;
  StepTimeModel::Terms terms{};
  terms[kDecodeContext] = static_cast<double>(shape.decode_context);
  if (shape.prompt_rows == 0) {
    terms[kDecodeRowsFew] = std::min(rows, kFewRows);
    terms[kDecodeRowsSome] = std::clamp(rows - kFewRows, 0.0, kSomeRows - kFewRows);
    terms[kDecodeRowsMany] = std::max(rows - kSomeRows, 0.0);
    terms[kDecodeFixed] = 1;
    return terms;
  }
  terms[kBatchRows] = std::min(rows, kSomeRows);
  terms[kBatchRowsMany] = std::max(rows - kSomeRows, 0.0);
  terms[kPromptContext] = static_cast<double>(shape.prompt_context);
  terms[kLogitRow] = shape.decodes + shape.prompt_logit_rows;
  terms[kBatchFixed] = 1;
  return terms;
}

double Dot(const StepTimeModel::Terms& a, const StepTimeModel::Terms& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

struct System {  // of normal equations
  std::array<StepTimeModel::Terms, StepTimeModel::kTerms> gram{};
  StepTimeModel::Terms target{};
};

// The non-negative solution nearest to the last one.
void Solve(const System& system, StepTimeModel::Terms* costs) {
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t i = 0; i < costs->size(); ++i) {
      if (system.gram[i][i] <= 0) continue;  // never seen
      const double rest =
          system.target[i] - Dot(system.gram[i], *costs) + system.gram[i][i] * (*costs)[i];
      (*costs)[i] = std::max(rest / system.gram[i][i], 0.0);
    }
  }
}

}  // namespace

StepTimeModel StepTimeModel::Fit(std::span<const bench::StepSample> samples) {
  StepTimeModel cost;
  for (int fit = 0; fit < kFits; ++fit) {
    System system;
    for (const bench::StepSample& sample : samples) {
      if (sample.seconds <= 0) continue;
      const Terms terms = TermsOf(sample.shape);
      const double error = std::abs(Dot(terms, cost.costs_) / sample.seconds - 1);
      const double trust = fit > 0 && error > kTrusted ? kTrusted / error : 1;
      const double weight = trust / (sample.seconds * sample.seconds);
      for (size_t i = 0; i < kTerms; ++i) {
        system.target[i] += weight * terms[i] * sample.seconds;
        for (size_t j = 0; j < kTerms; ++j) system.gram[i][j] += weight * terms[i] * terms[j];
      }
    }
    Solve(system, &cost.costs_);
    for (const auto& [beyond, known] : kNextRange) {
      if (system.gram[beyond][beyond] <= 0) cost.costs_[beyond] = cost.costs_[known];
    }
  }
  std::vector<double> errors;
  for (const bench::StepSample& sample : samples) {
    if (sample.seconds > 0)
      errors.push_back(std::abs(cost.Seconds(sample.shape) / sample.seconds - 1));
  }
  if (!errors.empty()) {
    const auto middle = errors.begin() + static_cast<ptrdiff_t>(errors.size() / 2);
    std::ranges::nth_element(errors, middle);
    cost.error_ = *middle;
  }
  return cost;
}

double StepTimeModel::Seconds(const StepShape& shape) const {
  const double seconds = Dot(TermsOf(shape), costs_);
  if (shape.prompt_rows == 0 || shape.decodes == 0) return seconds;
  const StepShape decodes{.decodes = shape.decodes, .decode_context = shape.decode_context};
  return std::max(seconds, Dot(TermsOf(decodes), costs_));
}

}  // namespace vivace::tune
