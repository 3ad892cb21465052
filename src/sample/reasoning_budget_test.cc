#include "sample/reasoning_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace vivace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TokenId kBegin = 40, kEnd = 33, kWord = 7;

// Lets everything through and writes down what it sees.
class Inner : public TokenConstraint {
 public:
  explicit Inner(std::vector<TokenId>* seen) : seen_(seen) {}
  bool FillMask(int32_t, std::span<uint32_t> mask) override {
    std::fill(mask.begin(), mask.end(), 0u);
    mask[0] = 1;
    return true;
  }
  bool Accept(TokenId token) override {
    seen_->push_back(token);
    return token != 5;
  }
  bool Done() const override { return seen_->size() > 3; }
  void Forced(int32_t, std::vector<TokenId>* tokens) override { tokens->push_back(kWord); }
  bool steered() const override { return true; }
  bool too_costly() const override { return true; }

 private:
  std::vector<TokenId>* seen_;
};

std::vector<TokenId> Allowed(TokenConstraint* constraint) {
  std::vector<uint32_t> mask(2, ~0u);
  std::vector<TokenId> ids;
  if (!constraint->FillMask(10, mask)) return {-1};
  for (TokenId id = 0; id < 64; ++id) {
    if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) ids.push_back(id);
  }
  return ids;
}

std::vector<TokenId> ForcedBy(TokenConstraint* constraint) {
  std::vector<TokenId> tokens;
  constraint->Forced(4, &tokens);
  return tokens;
}

TEST(ReasoningBudgetTest, TheEndIsForcedWhenItIsSpent) {
  ReasoningBudget budget(2, {kBegin, kEnd, false}, nullptr);
  EXPECT_THAT(Allowed(&budget), ElementsAre(-1));
  for (const TokenId token : {kBegin, kWord, kWord}) {
    EXPECT_THAT(ForcedBy(&budget), IsEmpty());
    EXPECT_TRUE(budget.Accept(token));
  }
  EXPECT_THAT(Allowed(&budget), ElementsAre(kEnd));
  EXPECT_THAT(ForcedBy(&budget), ElementsAre(kEnd));
  EXPECT_FALSE(budget.Accept(kWord));
  EXPECT_TRUE(budget.Accept(kEnd));
  EXPECT_THAT(Allowed(&budget), ElementsAre(-1));
  // Another thought later is not its matter.
  for (const TokenId token : {kBegin, kWord, kWord, kWord}) EXPECT_TRUE(budget.Accept(token));
  EXPECT_FALSE(budget.Done());
  EXPECT_FALSE(budget.steered());
  EXPECT_FALSE(budget.too_costly());
}

TEST(ReasoningBudgetTest, NothingLeftAtTheStart) {
  ReasoningBudget open(0, {-1, kEnd, true}, nullptr);
  EXPECT_THAT(Allowed(&open), ElementsAre(kEnd));
  ReasoningBudget closed(0, {kBegin, kEnd, false}, nullptr);
  EXPECT_THAT(Allowed(&closed), ElementsAre(-1));
  EXPECT_TRUE(closed.Accept(kBegin));
  EXPECT_THAT(Allowed(&closed), ElementsAre(kEnd));
}

TEST(ReasoningBudgetTest, AnEndInTimeForcesNothing) {
  ReasoningBudget budget(2, {-1, kEnd, true}, nullptr);
  for (const TokenId token : {kWord, kEnd, kWord, kWord, kWord}) {
    EXPECT_TRUE(budget.Accept(token));
    EXPECT_THAT(Allowed(&budget), ElementsAre(-1));
  }
}

TEST(ReasoningBudgetTest, AnotherConstraintSeesEveryToken) {
  std::vector<TokenId> seen;
  ReasoningBudget budget(1, {-1, kEnd, true}, std::make_unique<Inner>(&seen));
  EXPECT_THAT(Allowed(&budget), ElementsAre(0));
  EXPECT_TRUE(budget.Accept(kWord));
  EXPECT_THAT(Allowed(&budget), ElementsAre(kEnd));
  EXPECT_TRUE(budget.Accept(kEnd));
  EXPECT_THAT(ForcedBy(&budget), ElementsAre(kWord));
  EXPECT_FALSE(budget.Accept(5));
  EXPECT_THAT(seen, ElementsAre(kWord, kEnd, 5));
  EXPECT_TRUE(budget.Accept(kWord));
  EXPECT_TRUE(budget.Done());
  EXPECT_TRUE(budget.steered());
  EXPECT_TRUE(budget.too_costly());
}

}  // namespace
}  // namespace vivace
