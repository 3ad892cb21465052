#include "sample/reasoning_budget.h"

#include <algorithm>
#include <utility>

#include "sample/token_mask.h"

namespace vivace {

ReasoningBudget::ReasoningBudget(int32_t budget, const Marks& marks,
                                 std::unique_ptr<TokenConstraint> inner)
    : marks_(marks), inner_(std::move(inner)), left_(budget), thinking_(marks.open) {}

bool ReasoningBudget::FillMask(int32_t remaining, std::span<uint32_t> mask) {
  if (!Spent()) return inner_ != nullptr && inner_->FillMask(remaining, mask);
  std::fill(mask.begin(), mask.end(), 0u);
  AddToMask(mask, marks_.end);
  return true;
}

bool ReasoningBudget::Accept(TokenId token) {
  if (Spent() && token != marks_.end) return false;
  if (thinking_) {
    if (token == marks_.end) {
      thinking_ = false;
      over_ = true;
    } else {
      left_ -= 1;
    }
  } else if (!over_ && token == marks_.begin) {
    thinking_ = true;
  }
  return inner_ == nullptr || inner_->Accept(token);
}

void ReasoningBudget::Forced(int32_t limit, std::vector<TokenId>* tokens) {
  if (!Spent()) {
    if (inner_ != nullptr) inner_->Forced(limit, tokens);
  } else if (limit > 0) {
    tokens->push_back(marks_.end);
  }
}

}  // namespace vivace
