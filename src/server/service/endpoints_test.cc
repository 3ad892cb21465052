// The endpoints beside chat and completions, from body to answer: Responses, Anthropic's messages,
// rendering, the API's description; and what every answer reports of its request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "server/json/strict_json.h"
#include "server/testing/service_harness.h"
#include "server/testing/typed_events.h"

namespace vivace::server {
namespace {

using testing::FakeExchange;
using ::testing::HasSubstr;
using testing::kImEnd;
using testing::kSpaceHello;
using testing::ServiceTest;
using testing::TypedEvents;

constexpr char kChatPath[] = "/v1/chat/completions";
constexpr char kHi[] = R"("messages":[{"role":"user","content":"Hi"}])";

class EndpointsTest : public ServiceTest {
 protected:
  std::string Chat(std::string_view more) { return fmt::format("{{{}{}}}", kHi, more); }
  // Two words, then the end.
  void EndAfterTwo() {
    engine_.script = [](const GenerationRequest&, int32_t, int32_t index) {
      return index < 2 ? kSpaceHello : kImEnd;
    };
  }
  std::string PromptText() const {
    return testing::TestTokenizer()->Decode(engine_.submitted().back()->request.prompt, false);
  }
};

TEST_F(EndpointsTest, Responses) {
  EndAfterTwo();
  const auto exchange = Ask("/v1/responses", R"({"input":"Hi","instructions":"Be brief"})");
  ASSERT_EQ(exchange->status(), 200) << exchange->body();
  const json::value answer = Json(*exchange);
  EXPECT_TRUE(answer.at("id").as_string().starts_with("resp_"));
  EXPECT_EQ(answer.at("status"), "completed");
  EXPECT_EQ(answer.at("output").at(0).at("content").at(0).at("text"), " hello hello");
  EXPECT_EQ(answer.at("usage").at("output_tokens"), 3);
  EXPECT_EQ(answer.at("instructions"), "Be brief");
  EXPECT_EQ(PromptText(),
            "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
  const auto stream = Ask("/v1/responses", R"({"input":"Hi","instructions":"Be brief",)"
                                           R"("stream":true})");
  const TypedEvents events(stream->body());
  ASSERT_EQ(events.types.back(), "response.completed");
  EXPECT_EQ(events.data.back().at("response").at("output").at(0).at("content"),
            answer.at("output").at(0).at("content"));
  // The context's end, and what was asked for.
  const json::value cut = Json(*Ask("/v1/responses", R"({"input":"Hi","max_output_tokens":1})"));
  EXPECT_EQ(cut.at("status"), "incomplete");
  EXPECT_EQ(Post("/v1/responses", R"({"messages":[]})")->status(), 400);
}

TEST_F(EndpointsTest, Messages) {
  EndAfterTwo();
  const std::string body =
      R"({"model":"m","max_tokens":5,"system":"Be brief",)"
      R"("messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}])";
  const auto exchange = Ask("/v1/messages", body + "}");
  ASSERT_EQ(exchange->status(), 200) << exchange->body();
  const json::value answer = Json(*exchange);
  EXPECT_TRUE(answer.at("id").as_string().starts_with("msg_"));
  EXPECT_EQ(exchange->header("request-id"), answer.at("id").as_string());
  EXPECT_EQ(answer.at("content").at(0).at("text"), " hello hello");
  EXPECT_EQ(answer.at("stop_reason"), "end_turn");
  EXPECT_EQ(PromptText(),
            "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
  const TypedEvents events(Ask("/v1/messages", body + R"(,"stream":true})")->body());
  EXPECT_EQ(events.types.front(), "message_start");
  EXPECT_EQ(events.types.back(), "message_stop");
  const json::value stopped = Json(*Ask("/v1/messages", body + R"(,"stop_sequences":["lo he"]})"));
  EXPECT_EQ(stopped.at("stop_reason"), "stop_sequence");
  EXPECT_EQ(stopped.at("stop_sequence"), "lo he");
  const json::value counted =
      Json(*Ask("/v1/messages/count_tokens",
                R"({"system":"Be brief","messages":[{"role":"user","content":"Hi"}]})"));
  EXPECT_EQ(counted.at("input_tokens").as_int64(),
            static_cast<int64_t>(engine_.submitted().back()->request.prompt.size()));
}

TEST_F(EndpointsTest, AMessageThatIsBegunIsContinued) {
  Ask("/v1/messages", R"({"max_tokens":1,"messages":[{"role":"user","content":"Hi"},)"
                      R"({"role":"assistant","content":"so"}]})");
  EXPECT_TRUE(PromptText().ends_with("<|im_start|>assistant\nso")) << PromptText();
}

// Anthropic's clients read errors in Anthropic's shape, wherever they come from.
TEST_F(EndpointsTest, ErrorsOfMessages) {
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens"}) {
    const json::value error = Json(*Post(path, R"({"max_tokens":1})"));
    EXPECT_EQ(error.at("type"), "error");
    EXPECT_EQ(error.at("error").at("type"), "invalid_request_error");
    EXPECT_THAT(std::string(error.at("error").at("message").as_string()), HasSubstr("`messages`"));
  }
  const auto unknown =
      Post("/v1/messages", R"({"model":"x","max_tokens":1,)" + std::string(kHi) + "}");
  EXPECT_EQ(unknown->status(), 404);
  EXPECT_EQ(Json(*unknown).at("error").at("type"), "not_found_error");
  engine_.fail_with = FinishReason::kError;
  const auto failed = Ask("/v1/messages", R"({"max_tokens":1,)" + std::string(kHi) + "}");
  EXPECT_EQ(failed->status(), 500);
  EXPECT_EQ(Json(*failed).at("error").at("type"), "api_error");
  engine_.fail_with = FinishReason::kNone;
  service_->BeginDrain();
  const auto late = Post("/v1/messages", R"({"max_tokens":1,)" + std::string(kHi) + "}");
  EXPECT_EQ(late->status(), 503);
  EXPECT_EQ(Json(*late).at("error").at("type"), "overloaded_error");
}

TEST_F(EndpointsTest, StreamsThatFail) {
  for (const char* path : {"/v1/messages", "/v1/responses"}) {
    const auto stream =
        Post(path, path == std::string("/v1/messages")
                       ? R"({"max_tokens":9,"stream":true,)" + std::string(kHi) + "}"
                       : R"({"input":"a","stream":true})");
    Step();
    engine_.fail_with = FinishReason::kError;
    RunEngine();
    engine_.fail_with = FinishReason::kNone;
    EXPECT_TRUE(stream->complete());
    const TypedEvents events(stream->body());
    EXPECT_EQ(events.types.back(),
              path == std::string("/v1/messages") ? "error" : "response.failed");
  }
}

TEST_F(EndpointsTest, Render) {
  const json::value rendered = Json(*Ask("/v1/chat/completions/render", Chat("")));
  Ask(kChatPath, Chat(R"(,"max_tokens":1)"));
  EXPECT_EQ(rendered.at("prompt").as_string(), PromptText());
  json::array ids;
  for (const TokenId id : engine_.submitted().back()->request.prompt) ids.emplace_back(id);
  EXPECT_EQ(rendered.at("token_ids"), json::value(ids));
  EXPECT_EQ(Json(*Ask("/apply-template", Chat(""))).at("prompt").as_string(), PromptText());
  EXPECT_EQ(engine_.submitted().size(), 1u);
  EXPECT_EQ(Post("/apply-template", "{}")->status(), 400);
}

TEST_F(EndpointsTest, OpenApiHasEveryRoute) {
  const auto exchange = Send("GET", "/openapi.json");
  ASSERT_EQ(exchange->status(), 200);
  const auto document = ParseStrictJson(exchange->body());
  ASSERT_TRUE(document) << document.error().message;
  const json::object& paths = document->at("paths").get_object();
  for (const char* path : {kChatPath, "/v1/responses", "/v1/messages", "/v1/models/{id}",
                           "/tokenize", "/openapi.json", "/"}) {
    EXPECT_TRUE(paths.contains(path)) << path;
  }
  for (const auto& [path, operations] : paths) {
    for (const auto& [method, operation] : operations.get_object()) {
      EXPECT_NE(operation.at("summary"), "") << std::string_view(path);
      EXPECT_EQ(json::serialize(operation.at("responses").at("200")).find(R"({"type":"object"})"),
                std::string::npos)
          << "what it answers with is not described: " << std::string_view(path);
    }
  }
}

TEST_F(EndpointsTest, WhatIsNotTakenAsGivenIsReported) {
  const auto exchange = Ask(
      "/v1/completions",
      fmt::format(R"({{"prompt":"{}","max_new_tokens":100,"user":"u"}})", std::string(500, 'x')));
  ASSERT_EQ(exchange->status(), 200) << exchange->body();
  EXPECT_EQ(exchange->header("x-vivace-ignored"), "user");
  EXPECT_EQ(exchange->header("x-vivace-clamped"), "max_tokens=12");
  EXPECT_EQ(exchange->header("x-vivace-renamed"), "max_new_tokens=max_tokens");
  EXPECT_EQ(json::serialize(Json(*exchange).at("vivace")),
            R"({"ignored":["user"],"clamped":[{"name":"max_tokens","wanted":100,"given":12}],)"
            R"("renamed":[{"alias":"max_new_tokens","name":"max_tokens"}]})");
  // Also by the endpoints of other shapes.
  const std::string long_chat = fmt::format(
      R"({{"max_tokens":600,"messages":[{{"role":"user","content":"Hi"}}],"metadata":{{}}}})");
  const auto message = Ask("/v1/messages", long_chat);
  EXPECT_THAT(message->header("x-vivace-clamped"), HasSubstr("max_tokens="));
  EXPECT_EQ(Json(*message).at("vivace").at("ignored"), json::value({"metadata"}));
}

TEST_F(EndpointsTest, StrictRequestsAreTakenAsGivenOrNotAtAll) {
  struct Case {
    const char* path;
    std::string body;
    const char* field;  // null: 200
  };
  const Case cases[] = {
      {kChatPath, Chat(R"(,"strict":true,"max_tokens":1)"), nullptr},
      {kChatPath, Chat(R"(,"strict":true,"max_tokens":1,"user":"u")"), "user"},
      {kChatPath, Chat(R"(,"strict":true,"max_tokens":600)"), "max_tokens"},
      {kChatPath, Chat(R"(,"strict":true,"max_new_tokens":1)"), "max_new_tokens"},
      {kChatPath, Chat(R"(,"strict":true,"max_tokens":1,"reasoning_effort":"low")"),
       "reasoning_effort"},
      {kChatPath, Chat(R"(,"strict":false,"max_tokens":1,"user":"u")"), nullptr},
      {"/tokenize", R"({"prompt":"a","strict":true})", nullptr},
      {"/tokenize", R"({"prompt":"a","strict":true,"foo":1})", "foo"},
      {"/detokenize", R"({"tokens":[5],"strict":true,"foo":1})", "foo"},
      {"/v1/responses", R"({"input":"a","strict":true,"max_output_tokens":1,"user":"u"})", "user"},
      {"/v1/responses", R"({"input":"a","strict":true,"max_output_tokens":1})", nullptr},
  };
  for (const Case& c : cases) {
    const auto exchange = Ask(c.path, c.body);
    EXPECT_EQ(exchange->status(), c.field == nullptr ? 200 : 400) << c.body << exchange->body();
    if (c.field != nullptr) {
      EXPECT_EQ(ErrorOf(*exchange).at("param"), c.field) << c.body;
    }
  }
  EXPECT_EQ(service_->open_requests(), 0);
}

TEST_F(EndpointsTest, RequestIds) {
  const auto named = Ask(kChatPath, Chat(R"(,"max_tokens":1,"request_id":"mine-1")"));
  EXPECT_EQ(Json(*named).at("id"), "chatcmpl-mine-1");
  EXPECT_EQ(named->header("x-request-id"), "mine-1");
  const auto own = Ask(kChatPath, Chat(R"(,"max_tokens":1)"));
  EXPECT_EQ(own->header("x-request-id"), Json(*own).at("id").as_string());
  const auto with_header = [&](const char* value, std::string_view more) {
    auto exchange = std::make_shared<FakeExchange>("POST", kChatPath,
                                                   Chat(fmt::format(R"(,"max_tokens":1{})", more)));
    exchange->AddHeader("x-request-id", value);
    service_->Handle(exchange);
    EXPECT_TRUE(http_.RunPosted());
    RunEngine();
    return exchange;
  };
  EXPECT_EQ(Json(*with_header("h-2", "")).at("id"), "chatcmpl-h-2");
  EXPECT_EQ(with_header("h-2", "")->header("x-request-id"), "h-2");
  EXPECT_EQ(Json(*with_header("h-2", R"(,"request_id":"b-2")")).at("id"), "chatcmpl-b-2");
  const auto bad = with_header("a b", "");
  EXPECT_EQ(bad->status(), 400);
  EXPECT_EQ(ErrorOf(*bad).at("param"), "X-Request-Id");
  EXPECT_EQ(service_->open_requests(), 0);
}

TEST_F(EndpointsTest, SuffixNeedsAModelForIt) {
  const auto exchange = Post("/v1/completions", R"({"prompt":"a","suffix":"b"})");
  EXPECT_EQ(exchange->status(), 400);
  EXPECT_EQ(ErrorOf(*exchange).at("param"), "suffix");
  EXPECT_THAT(exchange->body(), HasSubstr("fill gaps"));
}

// Whoever reports an error can say which request it was.
TEST_F(EndpointsTest, ErrorsCarryARequestId) {
  const auto of = [&](const char* path, std::string body, const char* header) {
    auto exchange = std::make_shared<FakeExchange>("POST", path, std::move(body));
    if (header != nullptr) exchange->AddHeader("x-request-id", header);
    service_->Handle(exchange);
    EXPECT_TRUE(http_.RunPosted());
    RunEngine();
    EXPECT_NE(exchange->status(), 200);
    return exchange;
  };
  for (const char* path : {kChatPath, "/v1/embeddings", "/tokenize", "/v1/messages"}) {
    EXPECT_EQ(of(path, "{}", "h-1")->header("x-request-id"), "h-1") << path;
    EXPECT_TRUE(of(path, "{}", nullptr)->header("x-request-id").starts_with("req-")) << path;
  }
  EXPECT_EQ(of("/v1/messages", "{}", "h-1")->header("request-id"), "h-1");
  EXPECT_EQ(of(kChatPath,
               Chat(R"(,"request_id":"b-1","truncate_prompt_tokens":1,"max_tokens":1,)"
                    R"("logprobs":true,"documents":[{"a":"b"}])"),
               "h-1")
                ->header("x-request-id"),
            "b-1");
  engine_.fail_with = FinishReason::kError;
  EXPECT_EQ(of(kChatPath, Chat(""), "h-2")->header("x-request-id"), "h-2");
  engine_.fail_with = FinishReason::kNone;
  EXPECT_FALSE(Send("GET", "/nowhere")->header("x-request-id").empty());
  const auto counted = Ask("/tokenize", R"({"prompt":"a"})");
  EXPECT_FALSE(counted->header("x-request-id").empty());
}

}  // namespace
}  // namespace vivace::server
