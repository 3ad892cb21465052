#include "load/sim/sim_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "load/sim/sim_tokens.h"

namespace vivace::load {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SimTokens, IdsAndTheirTextAreTheSame) {
  const std::vector<int32_t> ids = {0, 5, kSimVocabulary - 1};
  EXPECT_EQ(SimEncode(SimDecode(ids)), ids);
  EXPECT_EQ(SimCount("  a b\nc\t"), 3);
  EXPECT_EQ(SimEncode("word"), SimEncode(" word "));
  EXPECT_EQ(SimDecode(std::vector<int32_t>{kSimVocabulary, -1}), "");
}

TEST(SimRequest, ReadsWhatAClientSends) {
  const auto request = ReadSimRequest(
      R"({"prompt":"a b c","model":"simulated","stream":true,"max_tokens":9,
          "stream_options":{"include_usage":true,"continuous_usage_stats":true}})",
      /*chat=*/false, {});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->prompt_tokens, 3);
  EXPECT_EQ(request->max_tokens, 9);
  EXPECT_TRUE(request->stream && request->usage && request->continuous_usage);
  EXPECT_EQ(ReadSimRequest(R"({"prompt":[1,2]})", false, {})->prompt_tokens, 2);
  EXPECT_EQ(ReadSimRequest(R"({"messages":[{"content":"a b"}]})", true, {})->prompt_tokens, 6);
}

TEST(SimRequest, RefusesAsAServerWould) {
  EXPECT_EQ(ReadSimRequest(R"({"prompt":"a","model":"x"})", false, {}).error().code,
            ErrorCode::kNotFound);
  for (const char* bad :
       {"", "[]", "{}", R"({"prompt":1})", R"({"prompt":[-1]})", R"({"prompt":["a"]})",
        R"({"prompt":"a","max_tokens":0})", R"({"prompt":"a","stream":1})",
        R"({"prompt":"a","stream_options":[]})"}) {
    EXPECT_FALSE(ReadSimRequest(bad, false, {})) << bad;
  }
  EXPECT_FALSE(ReadSimRequest(R"({"messages":[]})", true, {}));
  const auto unknown =
      ReadSimRequest(R"({"prompt":"a","stream_options":{"continuous_usage_stats":true}})", false,
                     {.continuous_usage = false});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("continuous_usage_stats"));
}

TEST(SimRequest, TokenizeAndBack) {
  EXPECT_THAT(*AnswerSimTokenize(R"({"prompt":"t4 t5"})"), HasSubstr(R"("tokens":[4,5])"));
  EXPECT_EQ(*AnswerSimDetokenize(R"({"tokens":[4,5]})"), R"({"prompt":" t4 t5"})");
  EXPECT_FALSE(AnswerSimTokenize("{}"));
}

}  // namespace
}  // namespace vivace::load
