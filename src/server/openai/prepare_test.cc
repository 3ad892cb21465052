// Bodies to prompts, where the model's vocabulary matters.
#include "server/openai/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

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
      EXPECT_EQ((*prepared)->requests.at(0).prompt, expected);
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

TEST(Length, MinusOneIsTheRestOfTheContext) {
  const ServedModel model = GapModel({}, false);
  for (const char* name : {"max_completion_tokens", "n_predict"}) {
    const auto prepared = PrepareGeneration(
        kCompletions, fmt::format(R"({{"prompt":"a","min_tokens":2,"{}":-1}})", name), model);
    ASSERT_TRUE(prepared) << prepared.error().message;
    EXPECT_EQ((*prepared)->requests.at(0).sampling.max_tokens, 63);
    EXPECT_TRUE((*prepared)->params.clamped.empty());
  }
}

class ChatPrompt : public ::testing::Test {
 protected:
  // Only roles that it knows, as the templates of Qwen 2.5 and 3.
  ServedModel Model(std::string roles, std::string more = "") {
    ServedModel model = GapModel({}, false);
    model.max_model_len = 1'000;
    auto parsed =
        ChatTemplate::Parse("{% for m in messages %}{% if m.role in [" + roles +
                            "] %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}" + more);
    EXPECT_TRUE(parsed) << parsed.error().message;
    model.chat_template = std::make_shared<const ChatTemplate>(std::move(*parsed));
    model.dialect = DetectDialect(model.chat_template.get(), *model.tokenizer);
    return model;
  }
  static json::value Answered(const Result<TextAnswer>& answer) {
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? json::parse(answer->body) : json::value({{"prompt", ""}});
  }
};

TEST_F(ChatPrompt, ADevelopersWordsReachTheModel) {
  constexpr char kBody[] =
      R"({"messages":[{"role":"developer","content":"D"},{"role":"user","content":"U"}]})";
  const ServedModel older = Model("'system','user','assistant'");
  EXPECT_EQ(Answered(AnswerApplyTemplate(kBody, older)).at("prompt"), "[system]D[user]U");
  const ServedModel newer = Model("'developer','user','assistant'");
  EXPECT_EQ(Answered(AnswerApplyTemplate(kBody, newer)).at("prompt"), "[developer]D[user]U");
}

TEST_F(ChatPrompt, WhatTheTemplateNeverReadsIsReported) {
  const ServedModel model = Model("'user'", "{{ mood }}");
  constexpr char kHi[] = R"("messages":[{"role":"user","content":"U"}])";
  const auto asked = PrepareGeneration(
      kChat, fmt::format(R"({{{},"chat_template_kwargs":{{"mood":"m","tone":"t"}}}})", kHi), model);
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_THAT((*asked)->params.ignored, ElementsAre("chat_template_kwargs.tone"));
  for (const char* type : {"enabled", "disabled"}) {
    const auto thinking = PrepareGeneration(
        kMessages, fmt::format(R"({{{},"max_tokens":4,"thinking":{{"type":"{}"}}}})", kHi, type),
        model);
    ASSERT_TRUE(thinking) << thinking.error().message;
    EXPECT_THAT((*thinking)->params.ignored, ElementsAre("thinking")) << type;
  }
  const auto strict = PrepareGeneration(
      kChat, fmt::format(R"({{{},"strict":true,"chat_template_kwargs":{{"tone":"t"}}}})", kHi),
      model);
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().field, "chat_template_kwargs.tone");
}

TEST_F(ChatPrompt, MembersOfMessagesThatTheTemplateNeverReadsAreReported) {
  struct Case {
    Endpoint endpoint;
    const char* body;
    std::vector<std::string> ignored;
  };
  constexpr char kNamed[] = R"({"messages":[{"role":"user","content":"U"},
      {"role":"user","content":"V","name":"bob"},{"role":"user","content":"W","name":"eve"}]})";
  constexpr char kThoughts[] = R"({"messages":[{"role":"user","content":"U"},
      {"role":"assistant","content":"A","reasoning_content":"R"},{"role":"user","content":"V"}]})";
  constexpr char kBlocks[] = R"({"max_tokens":4,"messages":[{"role":"user","content":"U"},
      {"role":"assistant","content":[{"type":"text","text":"A"},{"type":"thinking","thinking":"R"}]},
      {"role":"user","content":"V"}]})";
  constexpr char kItems[] = R"({"input":[{"role":"user","content":"U"},
      {"type":"reasoning","summary":[{"type":"summary_text","text":"R"}]},
      {"role":"assistant","content":"A"},{"role":"user","content":"V"}]})";
  constexpr char kNothingSaid[] = R"({"messages":[{"role":"user","content":"U","name":""},
      {"role":"assistant","content":"A","reasoning_content":""},{"role":"user","content":"V"}]})";
  const auto expect = [](const ServedModel& model, const std::vector<Case>& cases) {
    for (const Case& c : cases) {
      const auto prepared = PrepareGeneration(c.endpoint, c.body, model);
      ASSERT_TRUE(prepared) << c.body << prepared.error().message;
      EXPECT_EQ((*prepared)->params.ignored, c.ignored) << c.body;
      std::string strict(c.body);
      strict.back() = ',';
      const auto refused = PrepareGeneration(c.endpoint, strict + R"("strict":true})", model);
      EXPECT_EQ(refused.has_value(), c.ignored.empty()) << c.body;
    }
  };
  // A tool's name is another matter.
  expect(Model("'user','assistant'", "{% for t in tools or [] %}{{ t.name }}{% endfor %}"),
         {{kChat, kNamed, {"messages[1].name"}},
          {kChat, kThoughts, {"messages[1].reasoning_content"}},
          {kMessages, kBlocks, {"messages[1].content[1].thinking"}},
          {kResponses, kItems, {"input[1].summary"}},
          {kChat, kNothingSaid, {}}});
  expect(Model("'user','assistant'", "{{ messages[1].name }}"), {{kChat, kNamed, {}}});
  expect(Model("'user','assistant'", "{{ messages | tojson }}"),
         {{kChat, kNamed, {}}, {kChat, kThoughts, {}}});
  // Of thoughts, templates may show the last ones only.
  expect(Model("'user','assistant'", "{{ messages[-1]['reasoning_content'] }}"),
         {{kChat, kThoughts, {}}, {kMessages, kBlocks, {}}, {kResponses, kItems, {}}});
}

TEST_F(ChatPrompt, IsShownAsItWouldBeAnsweredFrom) {
  ServedModel model = Model("'user'");
  model.max_model_len = 8;
  constexpr char kHi[] = R"("messages":[{"role":"user","content":"U"}])";
  const auto cut = AnswerRender(
      fmt::format(R"({{{},"truncate_prompt_tokens":2,"temperature":0,"n":2}})", kHi), model);
  const json::value body = Answered(cut);
  EXPECT_EQ(body.at("count"), 2);
  EXPECT_EQ(body.at("prompt"), "]U");
  EXPECT_EQ(cut->reports.truncated_tokens, 5);
  EXPECT_THAT(cut->reports.ignored, ElementsAre("temperature", "n"));
  EXPECT_EQ(Answered(AnswerRender(fmt::format("{{{}}}", kHi), model)).at("count"), 7);
  model.max_model_len = 7;
  const auto full = AnswerRender(fmt::format("{{{}}}", kHi), model);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().reason, "context_length_exceeded");
}

}  // namespace
}  // namespace vivace::server
