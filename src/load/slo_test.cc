#include "load/slo.h"

#include <gtest/gtest.h>

namespace vivace::load {
namespace {

TEST(Slo, PromisesOfRequests) {
  const auto promises = ParsePromises("ttft:200, tpot:50.5 e2e:1000", "goodput");
  ASSERT_TRUE(promises);
  ASSERT_EQ(promises->size(), 3u);
  EXPECT_EQ((*promises)[0].what, Promise::What::kTtft);
  EXPECT_EQ((*promises)[1].most_ms, 50.5);
  EXPECT_EQ((*promises)[2].what, Promise::What::kE2el);
}

TEST(Slo, BadWordsAreNamed) {
  for (const char* word : {"ttft", "ttft:", "ttft:x", "ttft:-1", "ttft:0", "first:5", ":5", ""}) {
    const auto promises = ParsePromises(word, "goodput");
    ASSERT_FALSE(promises) << word;
    EXPECT_NE(promises.error().message.find("--goodput"), std::string::npos);
  }
  EXPECT_FALSE(ParseSlos("p98:ttft:5", "slo"));
  EXPECT_FALSE(ParseSlos("p99:ttft", "slo"));
}

TEST(Slo, AStatisticOfAFigure) {
  const auto slos = ParseSlos("p99:ttft:500 itl:50 median:tpot:3", "slo");
  ASSERT_TRUE(slos);
  Figures figures;
  EXPECT_FALSE(Keeps((*slos)[0], figures));  // none has one
  EXPECT_EQ(ValueOf((*slos)[0], figures), -1);
  figures.ttft_ms = {.n = 4, .p50 = 10, .p99 = 500};
  figures.itl_ms = {.n = 4, .p50 = 10, .p99 = 50.1};
  figures.tpot_ms = {.n = 4, .p50 = 2, .p99 = 900};
  EXPECT_TRUE(Keeps((*slos)[0], figures));
  EXPECT_FALSE(Keeps((*slos)[1], figures));
  EXPECT_TRUE(Keeps((*slos)[2], figures));
  EXPECT_EQ(Name((*slos)[1]), "p99 itl <= 50 ms");
}

Workload AnswersOf(std::initializer_list<int32_t> lengths) {
  Workload workload;
  for (const int32_t tokens : lengths) workload.requests.emplace_back().output_tokens = tokens;
  return workload;
}

TEST(Slo, AnswersOfATokenHaveNoTimeBetweenTokens) {
  for (const char* word : {"p99:itl:50", "mean:tpot:50"}) {
    const auto slos = ParseSlos(word, "slo");
    ASSERT_TRUE(slos);
    EXPECT_TRUE(CheckSlos(*slos, AnswersOf({1, 2}), "slo"));
    const Status refused = CheckSlos(*slos, AnswersOf({1, 1}), "slo");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("--slo promises"), std::string::npos);
  }
  EXPECT_TRUE(CheckSlos(*ParseSlos("p99:ttft:50 max:e2el:90", "slo"), AnswersOf({1}), "slo"));
}

}  // namespace
}  // namespace vivace::load
