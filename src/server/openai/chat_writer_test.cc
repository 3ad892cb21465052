// The answers of OpenAI's endpoints byte for byte.
#include "server/openai/chat_writer.h"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <limits>

#include "server/json/strict_json.h"
#include "server/openai/completion_writer.h"
#include "server/testing/test_tokenizer.h"

namespace vivace::server {
namespace {

using testing::ByteToken;
using testing::kHalfEmoji;
using testing::kSpaceHello;
using testing::kSpaceOk;

class OpenAiWriterTest : public ::testing::Test {
 protected:
  std::unique_ptr<AnswerWriter> Writer() {
    return MakeAnswerWriter(params_, *tokenizer_, {"id-1", 17, "m\"x"});
  }
  // A part that says `pieces`.
  ChoicePart Says(std::vector<OutputPiece> pieces) {
    pieces_ = std::move(pieces);
    ChoicePart part;
    part.first = true;
    part.pieces = pieces_;
    return part;
  }
  ChoicePart Says(std::string text) {
    return Says({OutputPiece{PieceKind::kContent, -1, std::move(text), ""}});
  }

  std::shared_ptr<const Tokenizer> tokenizer_ = testing::TestTokenizer();
  RequestParams params_;
  std::vector<OutputPiece> pieces_;
  std::string out_;
};

TEST_F(OpenAiWriterTest, ChatStream) {
  const auto writer = Writer();
  const ChoiceEnd end{false, "st\"op"};
  ChoicePart part;
  part.index = 1;
  writer->Begin({}, &out_);
  writer->Open(part, {}, &out_);
  ChoicePart text = Says("a\n😀");
  text.index = 1;
  writer->Delta(text, {}, &out_);
  part.end = &end;
  writer->Close(part, {}, &out_);
  writer->End({}, &out_);
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

TEST_F(OpenAiWriterTest, UsageInStreams) {
  params_.endpoint = kCompletions;
  params_.include_usage = true;
  const Usage usage{31, 8, 16, 5};
  const ChoicePart part = Says("x");
  Writer()->Delta(part, usage, &out_);
  EXPECT_EQ(
      out_,
      R"(data: {"id":"id-1","object":"text_completion","created":17,"model":"m\"x","choices":[)"
      R"({"index":0,"text":"x","logprobs":null,"finish_reason":null}],"usage":null})"
      "\n\n");
  out_.clear();
  Writer()->End(usage, &out_);
  EXPECT_EQ(
      out_,
      R"(data: {"id":"id-1","object":"text_completion","created":17,"model":"m\"x","choices":[],)"
      R"("usage":{"prompt_tokens":31,"completion_tokens":8,"total_tokens":39,)"
      R"("prompt_tokens_details":{"cached_tokens":16},)"
      R"("completion_tokens_details":{"reasoning_tokens":5}}})"
      "\n\ndata: [DONE]\n\n");
  out_.clear();
  params_.continuous_usage_stats = true;
  Writer()->Delta(part, usage, &out_);
  EXPECT_NE(out_.find(R"("usage":{"prompt_tokens":31)"), std::string::npos);
}

TEST_F(OpenAiWriterTest, WholeChat) {
  params_.ignored = {"user"};
  const ChoiceEnd end{true, {}};
  ChoicePart part = Says("Hi");
  part.end = &end;
  EXPECT_EQ(
      Writer()->Whole({{part}}, {3, 1, 0, 0}),
      R"({"id":"id-1","object":"chat.completion","created":17,"model":"m\"x","choices":[)"
      R"({"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},)"
      R"("logprobs":null,"finish_reason":"length","stop_reason":null}],)"
      R"("usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4,)"
      R"("prompt_tokens_details":{"cached_tokens":0},)"
      R"("completion_tokens_details":{"reasoning_tokens":0}},"vivace":{"ignored":["user"]}})");
}

TEST_F(OpenAiWriterTest, WholeCompletionWithIds) {
  params_.endpoint = kCompletions;
  params_.return_token_ids = true;
  const std::vector<TokenId> ids = {5, 2};
  const std::vector<TokenId> prompt = {1, 7};
  const ChoiceEnd end{false, TokenId{2}};
  ChoicePart part = Says("x");
  part.token_ids = ids;
  part.prompt_token_ids = prompt;
  part.end = &end;
  EXPECT_EQ(Writer()->Whole({{part}}, {2, 2, 0, 0}),
            R"({"id":"id-1","object":"text_completion","created":17,"model":"m\"x","choices":[)"
            R"({"index":0,"text":"x","logprobs":null,"finish_reason":"stop","stop_reason":2,)"
            R"("prompt_token_ids":[1,7],"token_ids":[5,2]}],)"
            R"("usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4,)"
            R"("prompt_tokens_details":{"cached_tokens":0},)"
            R"("completion_tokens_details":{"reasoning_tokens":0}}})");
}

TEST_F(OpenAiWriterTest, ChatLogprobs) {
  params_.logprobs = true;
  params_.sampling.logprobs = 2;
  const TokenLogprob top[] = {{kSpaceHello, -0.25f}, {kSpaceOk, -1.5f}};
  // Not among the top: takes the second's place. Its bytes are no character alone.
  const LogprobEntry entries[] = {
      {kHalfEmoji, true, -std::numeric_limits<float>::infinity(), top, 0}};
  ChoicePart part;
  part.logprobs = entries;
  Writer()->Delta(part, {}, &out_);
  const std::string half = R"({"token":"bytes:\\xf0\\x9f","logprob":-9999,"bytes":[240,159])";
  EXPECT_NE(out_.find(R"("logprobs":{"content":[)" + half + R"(,"top_logprobs":[)" +
                      R"({"token":" hello","logprob":-0.25,"bytes":[32,104,101,108,108,111]},)" +
                      half + R"(}]}],"refusal":null})"),
            std::string::npos)
      << out_;
}

TEST_F(OpenAiWriterTest, CompletionLogprobs) {
  params_.endpoint = kCompletions;
  params_.logprobs = true;
  params_.sampling.logprobs = 1;
  const TokenLogprob top[] = {{kSpaceHello, -0.25f}};
  const LogprobEntry entries[] = {{kSpaceOk, false, 0, {}, 0},
                                  {kSpaceOk, true, -2.5f, top, 3},
                                  {kSpaceHello, true, -0.25f, top, 6}};
  ChoicePart part;
  part.logprobs = entries;
  Writer()->Delta(part, {}, &out_);
  EXPECT_NE(out_.find(R"("logprobs":{"tokens":[" ok"," ok"," hello"],)"
                      R"("token_logprobs":[null,-2.5,-0.25],)"
                      R"("top_logprobs":[null,{" hello":-0.25," ok":-2.5},{" hello":-0.25}],)"
                      R"("text_offset":[0,3,6]})"),
            std::string::npos)
      << out_;
}

TEST_F(OpenAiWriterTest, TokensAsIds) {
  params_.logprobs = true;
  params_.sampling.logprobs = 0;
  params_.return_tokens_as_token_ids = true;
  const LogprobEntry entries[] = {{kSpaceOk, true, -2.5f, {}, 0}};
  ChoicePart part;
  part.logprobs = entries;
  Writer()->Delta(part, {}, &out_);
  EXPECT_NE(
      out_.find(
          R"({"token":"token_id:266","logprob":-2.5,"bytes":[32,111,107],"top_logprobs":[]})"),
      std::string::npos)
      << out_;
}

const std::vector<OutputPiece> kThoughtAndCalls = {
    {PieceKind::kReasoning, -1, "hm", ""},      {PieceKind::kContent, -1, "ok", ""},
    {PieceKind::kToolCall, 0, "f\"", "call_1"}, {PieceKind::kToolArguments, 0, "{\"a\":", ""},
    {PieceKind::kToolArguments, 0, "1}", ""},   {PieceKind::kToolCall, 1, "g", "call_2"},
};

TEST_F(OpenAiWriterTest, StreamedReasoningAndCalls) {
  const auto writer = Writer();
  const ChoiceEnd end{false, {}};
  writer->Delta(Says(kThoughtAndCalls), {}, &out_);
  ChoicePart last;
  last.end = &end;
  writer->Close(last, {}, &out_);
  const std::string head =
      R"(data: {"id":"id-1","object":"chat.completion.chunk","created":17,"model":"m\"x","choices":[{"index":0,"delta":)";
  const std::string open = ",\"logprobs\":null,\"finish_reason\":null}]}\n\n";
  EXPECT_EQ(
      out_,
      head + R"({"reasoning_content":"hm","reasoning":"hm"})" + open +  //
          head + R"({"content":"ok"})" + open +                         //
          head +
          R"({"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f\"","arguments":""}}]})" +
          open + head + R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]})" +
          open + head + R"({"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]})" + open +
          head +
          R"({"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"g","arguments":""}}]})" +
          open + head +
          "{},\"logprobs\":null,\"finish_reason\":\"tool_calls\",\"stop_reason\":null}]}\n\n");
}

TEST_F(OpenAiWriterTest, WholeReasoningAndCalls) {
  const ChoiceEnd end{false, {}};
  ChoicePart part = Says(kThoughtAndCalls);
  part.end = &end;
  const auto choice = [&] {
    auto answer = ParseStrictJson(Writer()->Whole({{part}}, {}));
    EXPECT_TRUE(answer);
    return answer->at("choices").at(0);
  };
  const json::value first = choice();
  EXPECT_EQ(json::serialize(first.at("message")),
            R"({"role":"assistant","content":"ok","refusal":null,"reasoning_content":"hm",)"
            R"("reasoning":"hm","tool_calls":[{"id":"call_1","type":"function",)"
            R"("function":{"name":"f\"","arguments":"{\"a\":1}"}},)"
            R"({"id":"call_2","type":"function","function":{"name":"g","arguments":""}}]})");
  EXPECT_EQ(first.at("finish_reason").as_string(), "tool_calls");
  // A call that the client named ends with "stop"; one that was cut, with "length".
  params_.tool_choice = ToolChoice::kNamed;
  EXPECT_EQ(choice().at("finish_reason").as_string(), "stop");
  params_.tool_choice = ToolChoice::kRequired;
  const ChoiceEnd cut{true, {}};
  part.end = &cut;
  EXPECT_EQ(choice().at("finish_reason").as_string(), "length");
  // No content beside a call is null.
  pieces_.erase(pieces_.begin(), pieces_.begin() + 2);
  part.pieces = pieces_;
  EXPECT_TRUE(choice().at("message").at("content").is_null());
}

// Log-probabilities and ids go out once, whatever a step's tokens said.
TEST_F(OpenAiWriterTest, OneDeltaOfSeveralPiecesHasItsIdsOnce) {
  params_.return_token_ids = true;
  const std::vector<TokenId> ids = {kSpaceOk};
  ChoicePart part = Says(kThoughtAndCalls);
  part.token_ids = ids;
  Writer()->Delta(part, {}, &out_);
  size_t count = 0;
  for (size_t at = 0; (at = out_.find("[266]", at)) != std::string::npos; ++at) count += 1;
  EXPECT_EQ(count, 1u);
}

TEST_F(OpenAiWriterTest, FailureInAStream) {
  Writer()->Failure({ErrorCode::kInternal, "why", "what", ""}, &out_);
  EXPECT_EQ(out_,
            R"(data: {"error":{"message":"what","type":"server_error","param":null,"code":"why"}})"
            "\n\ndata: [DONE]\n\n");
}

// Two tokens that are written the same must not make one object have a member twice.
TEST_F(OpenAiWriterTest, SameNamesOnce) {
  params_.endpoint = kCompletions;
  params_.logprobs = true;
  params_.sampling.logprobs = 2;
  const TokenLogprob top[] = {{-7, -0.25f}, {-8, -0.5f}};  // unknown ids: both are ""
  const LogprobEntry entries[] = {{ByteToken('a'), true, -2.5f, top, 0}};
  ChoicePart part;
  part.logprobs = entries;
  Writer()->Delta(part, {}, &out_);
  const std::string json = out_.substr(6, out_.size() - 8);
  EXPECT_TRUE(ParseStrictJson(json)) << json;
}

}  // namespace
}  // namespace vivace::server
