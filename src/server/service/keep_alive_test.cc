// Streams that have nothing to say yet are heard of all the same.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "server/testing/service_harness.h"

namespace vivace::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kQuietMs = 2;

class KeepAliveTest : public testing::ServiceTest {
 protected:
  KeepAliveTest() : ServiceTest(testing::kTestTemplate, {}, kQuietMs) {}

  void BeQuiet() {
    std::this_thread::sleep_for(std::chrono::milliseconds(kQuietMs + 1));
    http_.RunTimers();
  }
};

constexpr char kChatBody[] =
    R"({"messages":[{"role":"user","content":"x"}],"max_tokens":2,"stream":true})";

TEST_F(KeepAliveTest, OpenAisStreamsGetComments) {
  const std::pair<const char*, const char*> streams[] = {
      {"/v1/chat/completions", kChatBody},
      {"/v1/completions", R"({"prompt":"x","max_tokens":2,"stream":true})"}};
  for (const auto& [path, body] : streams) {
    const auto exchange = Post(path, body);
    EXPECT_EQ(exchange->answers(), 0);
    BeQuiet();
    EXPECT_EQ(exchange->status(), 200);
    EXPECT_EQ(exchange->header("content-type"), "text/event-stream; charset=utf-8");
    EXPECT_EQ(exchange->body(), ": ping\n\n");
    BeQuiet();
    EXPECT_EQ(exchange->body(), ": ping\n\n: ping\n\n");
    RunEngine();
    EXPECT_TRUE(exchange->complete());
    EXPECT_EQ(exchange->answers(), 1);
    EXPECT_EQ(testing::Events(exchange->body().substr(16)).back(), "[DONE]");
  }
}

TEST_F(KeepAliveTest, AnthropicsGetTheirStartAndPings) {
  const auto exchange = Post("/v1/messages", kChatBody);
  BeQuiet();
  EXPECT_THAT(exchange->body(), StartsWith("event: message_start\n"));
  const std::string start = exchange->body();
  BeQuiet();
  EXPECT_EQ(exchange->body(), start + "event: ping\ndata: {\"type\":\"ping\"}\n\n");
  RunEngine();
  EXPECT_TRUE(exchange->complete());
  EXPECT_EQ(exchange->body().find("message_start", start.size()), std::string::npos);
  EXPECT_THAT(exchange->body(), HasSubstr("event: message_stop"));
}

TEST_F(KeepAliveTest, ResponsesBegin) {
  const auto exchange = Post("/v1/responses", R"({"input":"x","stream":true})");
  BeQuiet();
  EXPECT_THAT(exchange->body(), HasSubstr("response.in_progress"));
  EXPECT_THAT(exchange->body(), Not(HasSubstr(": ping")));
  BeQuiet();
  EXPECT_THAT(exchange->body(), HasSubstr(": ping\n\n"));
}

TEST_F(KeepAliveTest, NobodyElseHearsOfIt) {
  const auto whole = Post("/v1/completions", R"({"prompt":"x","max_tokens":2})");
  const auto slow = Post("/v1/completions", R"({"prompt":"x","max_tokens":2,"stream":true})");
  slow->set_pending_bytes(1);
  BeQuiet();
  EXPECT_EQ(whole->answers(), 0);
  EXPECT_EQ(slow->answers(), 0) << "it has bytes to read";
  RunEngine();
  EXPECT_EQ(whole->status(), 200);
}

TEST_F(KeepAliveTest, WhatFailsAfterAPingIsAnEvent) {
  const auto exchange =
      Post("/v1/completions", R"({"prompt":"x","stream":true,"max_queue_ms":60000})");
  BeQuiet();
  engine_.fail_with = FinishReason::kQueueTimeout;
  RunEngine();
  EXPECT_EQ(exchange->status(), 200);
  const auto events = testing::Events(exchange->body().substr(8));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_THAT(events[0], HasSubstr("queue_timeout"));
  EXPECT_EQ(events[1], "[DONE]");
}

TEST_F(KeepAliveTest, WithoutStreamsThereIsNoTimer) {
  Ask("/v1/completions", R"({"prompt":"x","max_tokens":2,"stream":true})");
  BeQuiet();  // the last one fires and is not set again
  const auto exchange = Post("/v1/completions", R"({"prompt":"x","stream":true})");
  BeQuiet();
  EXPECT_EQ(exchange->body(), ": ping\n\n");
}

}  // namespace
}  // namespace vivace::server
