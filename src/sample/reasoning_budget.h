// Bounds a model's thinking: after so many tokens of it, the token that ends it is the only one
// that may be drawn. Stands in front of another constraint, which sees every token, or alone. A
// TokenConstraint in every respect: see there for threads and order.
#pragma once

#include <memory>

#include "sample/token_constraint.h"

namespace vivace {

class ReasoningBudget final : public TokenConstraint {
 public:
  struct Marks {
    TokenId begin = -1;  // opens a thought; -1: the prompt has opened it
    TokenId end = -1;    // ends it
    bool open = false;   // the output begins inside one
  };

  // `budget` tokens, the marks not counted; `inner` may be null.
  ReasoningBudget(int32_t budget, const Marks& marks, std::unique_ptr<TokenConstraint> inner);

  bool FillMask(int32_t remaining, std::span<uint32_t> mask) override;
  bool Affords(TokenId token, int32_t remaining, std::span<uint32_t> mask) override {
    return Spent() || inner_ == nullptr || inner_->Affords(token, remaining, mask);
  }
  bool Accept(TokenId token) override;
  bool Done() const override { return inner_ != nullptr && inner_->Done(); }
  void Forced(int32_t limit, std::vector<TokenId>* tokens) override;
  bool steered() const override { return inner_ != nullptr && inner_->steered(); }
  bool too_costly() const override { return inner_ != nullptr && inner_->too_costly(); }

 private:
  bool Spent() const { return thinking_ && left_ == 0; }

  const Marks marks_;
  const std::unique_ptr<TokenConstraint> inner_;
  int32_t left_;
  bool thinking_;
  bool over_ = false;  // thought once; what comes later is not counted
};

}  // namespace vivace
