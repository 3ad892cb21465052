// Bodies to prompts, where the model's vocabulary matters.
#include "server/openai/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/byte_alphabet.h"

namespace vivace::server {
namespace {

using ::testing::ElementsAre;

constexpr TokenId kBos = 0;
TokenId Byte(char c) { return 1 + static_cast<unsigned char>(c); }

// A vocabulary of bytes and tokens for gaps.
ServedModel GapModel(const std::vector<std::string>& gap_tokens, bool add_bos) {
  TokenizerData data;
  data.tokens = {"<s>"};
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    data.tokens.push_back(AlphabetFromBytes({&c, 1}));
  }
  data.types.assign(data.tokens.size(), TokenType::kNormal);
  data.types[kBos] = TokenType::kControl;
  for (const std::string& token : gap_tokens) {
    data.tokens.push_back(token);
    data.types.push_back(TokenType::kControl);
  }
  data.bos = kBos;
  data.eos = kBos;
  data.add_bos = add_bos;
  auto tokenizer = Tokenizer::Create(std::move(data));
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  ServedModel model;
  model.names = {"m"};
  model.tokenizer = std::move(*tokenizer);
  model.vocab = static_cast<int32_t>(model.tokenizer->vocab_size());
  model.max_model_len = 64;
  model.longest_token_bytes = LongestTokenBytes(*model.tokenizer);
  return model;
}

TEST(Suffix, TheGapStandsBetweenItsTokens) {
  const std::vector<std::string> styles[] = {{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
                                             {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"}};
  for (const auto& tokens : styles) {
    for (const bool bos : {false, true}) {
      const ServedModel model = GapModel(tokens, bos);
      const auto prepared =
          PrepareGeneration(kCompletions, R"({"prompt":"a","suffix":"bc"})", model);
      ASSERT_TRUE(prepared) << prepared.error().message;
      std::vector<TokenId> expected = {257, Byte('a'), 258, Byte('b'), Byte('c'), 259};
      if (bos) expected.insert(expected.begin(), kBos);
      EXPECT_EQ((*prepared)->prompts.at(0), expected);
    }
  }
}

TEST(Suffix, OneMissingTokenIsNoGap) {
  const ServedModel model = GapModel({"<|fim_prefix|>", "<|fim_suffix|>"}, false);
  const auto prepared = PrepareGeneration(kCompletions, R"({"prompt":"a","suffix":"b"})", model);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().field, "suffix");
}

TEST(Clamp, TheContextCutsTheAnswer) {
  const ServedModel model = GapModel({}, false);
  const auto cut = PrepareGeneration(kCompletions, R"({"prompt":"a","max_tokens":64})", model);
  ASSERT_TRUE(cut);
  ASSERT_EQ((*cut)->params.clamped.size(), 1u);
  EXPECT_EQ((*cut)->params.clamped[0].given, 63);
  const auto whole = PrepareGeneration(kCompletions, R"({"prompt":"a","max_tokens":63})", model);
  ASSERT_TRUE(whole);
  EXPECT_TRUE((*whole)->params.clamped.empty());
  const auto least =
      PrepareGeneration(kCompletions, R"({"prompt":"a","max_tokens":80,"min_tokens":70})", model);
  ASSERT_TRUE(least);
  ASSERT_EQ((*least)->params.clamped.size(), 2u);
  EXPECT_EQ((*least)->params.clamped[1].name, "min_tokens");
  EXPECT_EQ((*least)->params.clamped[1].given, 63);
}

}  // namespace
}  // namespace vivace::server
