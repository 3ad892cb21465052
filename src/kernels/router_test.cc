// The choice of experts against plain definitions, and rows by expert.
#include "kernels/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace vivace::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Router MakeRouter(int32_t experts, int32_t top_k, RouterScore score = RouterScore::kSoftmax) {
  Router router;
  router.top_k = top_k;
  router.score = score;
  router.weight.num_parts = 1;
  router.weight.parts[0].rows = experts;
  return router;
}

struct Choice {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

Choice Select(const Router& router, std::vector<float> logits) {
  std::vector<float> scratch(static_cast<size_t>(SelectScratch(router.experts())));
  Choice choice{std::vector<int32_t>(static_cast<size_t>(router.top_k)),
                std::vector<float>(static_cast<size_t>(router.top_k))};
  SelectExperts(router, logits.data(), scratch.data(), choice.ids.data(), choice.weights.data());
  return choice;
}

TEST(Router, SoftmaxOfAll) {
  Router router = MakeRouter(4, 2);
  const float sum = std::exp(1.0f) + std::exp(3.0f) + std::exp(2.0f) + std::exp(0.0f);
  Choice choice = Select(router, {1, 3, 2, 0});
  EXPECT_THAT(choice.ids, ElementsAre(1, 2));
  EXPECT_THAT(choice.weights, ElementsAre(FloatNear(std::exp(3.0f) / sum, 1e-6f),
                                          FloatNear(std::exp(2.0f) / sum, 1e-6f)));
  router.normalize = true;
  router.scale = 2.5f;
  choice = Select(router, {1, 3, 2, 0});
  const float first = 1 / (1 + std::exp(-1.0f));
  EXPECT_THAT(choice.weights,
              ElementsAre(FloatNear(2.5f * first, 1e-5f), FloatNear(2.5f * (1 - first), 1e-5f)));
}

TEST(Router, SoftmaxOfTheChosen) {
  const Choice choice = Select(MakeRouter(5, 2, RouterScore::kSoftmaxOfChosen), {9, 3, -2, 10, 0});
  EXPECT_THAT(choice.ids, ElementsAre(3, 0));
  const float first = 1 / (1 + std::exp(-1.0f));
  EXPECT_THAT(choice.weights, ElementsAre(FloatNear(first, 1e-6f), FloatNear(1 - first, 1e-6f)));
}

// The bias chooses and does not weigh.
TEST(Router, SigmoidWithASelectionBias) {
  Router router = MakeRouter(4, 2, RouterScore::kSigmoid);
  const std::vector<float> bias = {0, 0, 0, 1};
  router.selection_bias = bias.data();
  const Choice choice = Select(router, {0, 2, 1, -3});
  EXPECT_THAT(choice.ids, ElementsAre(3, 1));
  EXPECT_THAT(choice.weights, ElementsAre(FloatNear(1 / (1 + std::exp(3.0f)), 1e-6f),
                                          FloatNear(1 / (1 + std::exp(-2.0f)), 1e-6f)));
}

// Groups of three: the second has the best two together, the first the best one.
TEST(Router, GroupsByTheirBestOrTheirBestTwo) {
  const std::vector<float> logits = {4, -9, -9, 3, 2.5f, -9, 0, 0, 0};
  Router router = MakeRouter(9, 2, RouterScore::kSigmoid);
  router.groups = 3;
  router.group_score = GroupScore::kSumOfTwo;
  EXPECT_THAT(Select(router, logits).ids, ElementsAre(3, 4));
  router.group_score = GroupScore::kMax;
  EXPECT_THAT(Select(router, logits).ids.front(), 0);
  EXPECT_LT(Select(router, logits).ids.back(), 3) << "the others are out";
  router.top_groups = 2;
  EXPECT_THAT(Select(router, logits).ids, ElementsAre(0, 3));
}

TEST(Router, TiesGoToTheLowerId) {
  EXPECT_THAT(Select(MakeRouter(6, 3), {1, 2, 1, 2, 2, 2}).ids, ElementsAre(1, 3, 4));
}

// Whatever comes in, a row goes to different experts that there are.
TEST(Router, AnyLogitsChooseDifferentExperts) {
  std::mt19937 random(1);
  const float odd[] = {kNaN, kInfinity, -kInfinity, 0, 1e38f, -1e38f};
  for (const RouterScore score :
       {RouterScore::kSoftmax, RouterScore::kSigmoid, RouterScore::kSoftmaxOfChosen}) {
    for (int run = 0; run < 500; ++run) {
      Router router = MakeRouter(8, 4, score);
      router.groups = run % 2 ? 4 : 1;
      router.top_groups = 2;
      router.group_score = run % 4 < 2 ? GroupScore::kMax : GroupScore::kSumOfTwo;
      std::vector<float> logits(8);
      for (float& logit : logits) logit = odd[random() % std::size(odd)];
      auto ids = Select(router, logits).ids;
      std::sort(ids.begin(), ids.end());
      EXPECT_TRUE(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
      EXPECT_TRUE(ids.front() >= 0 && ids.back() < 8);
    }
  }
}

TEST(Router, ANaNIsTheWeightOfItsRow) {
  for (const float weight : Select(MakeRouter(4, 2), {0, kNaN, 1, 2}).weights) {
    EXPECT_TRUE(std::isnan(weight));
  }
}

TEST(Router, RowsByExpert) {
  const std::vector<int32_t> ids = {2, 0, 0, 3, 2, 3};  // two of each of three rows
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6};
  std::vector<int32_t> first(5), rows(6);
  std::vector<float> sorted(6);
  SortByExpert(ids.data(), weights.data(), 3, 2, 4, {first.data(), rows.data(), sorted.data()});
  EXPECT_THAT(first, ElementsAre(0, 2, 2, 4, 6));
  EXPECT_THAT(rows, ElementsAre(0, 1, 0, 2, 1, 2));
  EXPECT_THAT(sorted, ElementsAre(2, 3, 1, 5, 4, 6));
}

}  // namespace
}  // namespace vivace::kernels
