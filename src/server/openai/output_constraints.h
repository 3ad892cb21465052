// What holds a request's outputs: a grammar, a bound on thinking, both or neither.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "grammar/grammar.h"
#include "sample/reasoning_budget.h"
#include "server/openai/output_reading.h"
#include "server/openai/served_model.h"
#include "server/params/request_params.h"

namespace vivace::server {

// Immutable once made; a choice's constraint is its own.
struct OutputConstraints {
  std::shared_ptr<const CompiledGrammar> grammar;  // null: none
  CompiledGrammar::ConstraintOptions options;
  std::optional<int32_t> thinking_budget;
  ReasoningBudget::Marks marks;  // with a budget

  bool any() const { return grammar != nullptr || thinking_budget.has_value(); }
  // One per choice; none if nothing holds them.
  std::vector<std::unique_ptr<TokenConstraint>> New(int32_t choices) const;
};

// Prep threads; compiles. What the request can do without is left out and reported in
// `params->ignored`; what it asked for is refused by its name if it cannot be had.
Result<OutputConstraints> ConstrainOutputs(const OutputReading& reading, const ServedModel& model,
                                           RequestParams* params);

}  // namespace vivace::server
