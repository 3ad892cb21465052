// The answers byte for byte.
#include "server/openai/response_writer.h"

#include <gtest/gtest.h>

#include <limits>

#include "server/json/strict_json.h"
#include "server/testing/test_tokenizer.h"

namespace vivace::server {
namespace {

using testing::ByteToken;
using testing::kHalfEmoji;
using testing::kSpaceHello;
using testing::kSpaceOk;

class ResponseWriterTest : public ::testing::Test {
 protected:
  ResponseWriter Writer() { return ResponseWriter(params_, *tokenizer_, {"id-1", 17, "m\"x"}); }

  std::shared_ptr<const Tokenizer> tokenizer_ = testing::TestTokenizer();
  RequestParams params_;
  std::string out_;
};

TEST_F(ResponseWriterTest, ChatStream) {
  const ResponseWriter writer = Writer();
  const ChoiceEnd end{false, "st\"op"};
  ChoicePart part;
  part.index = 1;
  writer.FirstChunk(part, {}, &out_);
  part.text = "a\n😀";
  writer.TextChunk(part, {}, &out_);
  part.text = "";
  part.end = &end;
  writer.EndChunk(part, {}, &out_);
  ResponseWriter::Done(&out_);
  const std::string head =
      R"(data: {"id":"id-1","object":"chat.completion.chunk","created":17,"model":"m\"x","choices":[{"index":1,)";
  EXPECT_EQ(
      out_,
      head +
          R"("delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]})"
          "\n\n" +
          head +
          R"("delta":{"content":"a\n😀"},"logprobs":null,"finish_reason":null}]})"
          "\n\n" +
          head +
          R"("delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":"st\"op"}]})"
          "\n\ndata: [DONE]\n\n");
}

TEST_F(ResponseWriterTest, UsageInStreams) {
  params_.endpoint = kCompletions;
  params_.include_usage = true;
  const Usage usage{31, 8, 16};
  ChoicePart part;
  part.text = "x";
  Writer().TextChunk(part, usage, &out_);
  EXPECT_EQ(
      out_,
      R"(data: {"id":"id-1","object":"text_completion","created":17,"model":"m\"x","choices":[)"
      R"({"index":0,"text":"x","logprobs":null,"finish_reason":null}],"usage":null})"
      "\n\n");
  out_.clear();
  Writer().UsageChunk(usage, &out_);
  EXPECT_EQ(
      out_,
      R"(data: {"id":"id-1","object":"text_completion","created":17,"model":"m\"x","choices":[],)"
      R"("usage":{"prompt_tokens":31,"completion_tokens":8,"total_tokens":39,)"
      R"("prompt_tokens_details":{"cached_tokens":16}}})"
      "\n\n");
  out_.clear();
  params_.continuous_usage_stats = true;
  Writer().TextChunk(part, usage, &out_);
  EXPECT_NE(out_.find(R"("usage":{"prompt_tokens":31)"), std::string::npos);
}

TEST_F(ResponseWriterTest, WholeChat) {
  params_.ignored = {"user"};
  const ChoiceEnd end{true, {}};
  ChoicePart part;
  part.text = "Hi";
  part.end = &end;
  EXPECT_EQ(Writer().Whole({{part}}, {3, 1, 0}),
            R"({"id":"id-1","object":"chat.completion","created":17,"model":"m\"x","choices":[)"
            R"({"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},)"
            R"("logprobs":null,"finish_reason":"length","stop_reason":null}],)"
            R"("usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4,)"
            R"("prompt_tokens_details":{"cached_tokens":0}},"vivace":{"ignored":["user"]}})");
}

TEST_F(ResponseWriterTest, WholeCompletionWithIds) {
  params_.endpoint = kCompletions;
  params_.return_token_ids = true;
  const std::vector<TokenId> ids = {5, 2};
  const std::vector<TokenId> prompt = {1, 7};
  const ChoiceEnd end{false, TokenId{2}};
  ChoicePart part;
  part.text = "x";
  part.token_ids = ids;
  part.prompt_token_ids = prompt;
  part.end = &end;
  EXPECT_EQ(Writer().Whole({{part}}, {2, 2, 0}),
            R"({"id":"id-1","object":"text_completion","created":17,"model":"m\"x","choices":[)"
            R"({"index":0,"text":"x","logprobs":null,"finish_reason":"stop","stop_reason":2,)"
            R"("prompt_token_ids":[1,7],"token_ids":[5,2]}],)"
            R"("usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4,)"
            R"("prompt_tokens_details":{"cached_tokens":0}}})");
}

TEST_F(ResponseWriterTest, ChatLogprobs) {
  params_.logprobs = true;
  params_.sampling.logprobs = 2;
  const TokenLogprob top[] = {{kSpaceHello, -0.25f}, {kSpaceOk, -1.5f}};
  // Not among the top: takes the second's place. Its bytes are no character alone.
  const LogprobEntry entries[] = {
      {kHalfEmoji, true, -std::numeric_limits<float>::infinity(), top, 0}};
  ChoicePart part;
  part.logprobs = entries;
  Writer().TextChunk(part, {}, &out_);
  const std::string half = R"({"token":"bytes:\\xf0\\x9f","logprob":-9999,"bytes":[240,159])";
  EXPECT_NE(out_.find(R"("logprobs":{"content":[)" + half + R"(,"top_logprobs":[)" +
                      R"({"token":" hello","logprob":-0.25,"bytes":[32,104,101,108,108,111]},)" +
                      half + R"(}]}],"refusal":null})"),
            std::string::npos)
      << out_;
}

TEST_F(ResponseWriterTest, CompletionLogprobs) {
  params_.endpoint = kCompletions;
  params_.logprobs = true;
  params_.sampling.logprobs = 1;
  const TokenLogprob top[] = {{kSpaceHello, -0.25f}};
  const LogprobEntry entries[] = {{kSpaceOk, false, 0, {}, 0},
                                  {kSpaceOk, true, -2.5f, top, 3},
                                  {kSpaceHello, true, -0.25f, top, 6}};
  ChoicePart part;
  part.logprobs = entries;
  Writer().TextChunk(part, {}, &out_);
  EXPECT_NE(out_.find(R"("logprobs":{"tokens":[" ok"," ok"," hello"],)"
                      R"("token_logprobs":[null,-2.5,-0.25],)"
                      R"("top_logprobs":[null,{" hello":-0.25," ok":-2.5},{" hello":-0.25}],)"
                      R"("text_offset":[0,3,6]})"),
            std::string::npos)
      << out_;
}

TEST_F(ResponseWriterTest, TokensAsIds) {
  params_.logprobs = true;
  params_.sampling.logprobs = 0;
  params_.return_tokens_as_token_ids = true;
  const LogprobEntry entries[] = {{kSpaceOk, true, -2.5f, {}, 0}};
  ChoicePart part;
  part.logprobs = entries;
  Writer().TextChunk(part, {}, &out_);
  EXPECT_NE(
      out_.find(
          R"({"token":"token_id:266","logprob":-2.5,"bytes":[32,111,107],"top_logprobs":[]})"),
      std::string::npos)
      << out_;
}

// Two tokens that are written the same must not make one object have a member twice.
TEST_F(ResponseWriterTest, SameNamesOnce) {
  params_.endpoint = kCompletions;
  params_.logprobs = true;
  params_.sampling.logprobs = 2;
  const TokenLogprob top[] = {{-7, -0.25f}, {-8, -0.5f}};  // unknown ids: both are ""
  const LogprobEntry entries[] = {{ByteToken('a'), true, -2.5f, top, 0}};
  ChoicePart part;
  part.logprobs = entries;
  Writer().TextChunk(part, {}, &out_);
  const std::string json = out_.substr(6, out_.size() - 8);
  EXPECT_TRUE(ParseStrictJson(json)) << json;
}

}  // namespace
}  // namespace vivace::server
