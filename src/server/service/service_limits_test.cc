// Limits of time that requests bring, Retry-After, and what can be seen of requests.
#include <gmock/gmock.h>

#include "base/clock.h"
#include "server/testing/service_harness.h"

namespace vivace::server {
namespace {

using ::testing::EndsWith;
using testing::Events;
using testing::FakeExchange;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ServiceLimits : public testing::ServiceTest {
 protected:
  // A queue of five seconds.
  void FillQueue() {
    engine_.figures.queued_tokens = 500;
    engine_.figures.prompt_tokens_per_s = 100;
  }
  // The engine ends all that runs, as it does when a deadline passes.
  void EndAll(FinishReason reason) {
    engine_.fail_with = reason;
    RunEngine();
    engine_.fail_with = FinishReason::kNone;
  }
  json::value Get(const std::string& path) { return Json(*Send("GET", path)); }
};

constexpr char kPath[] = "/v1/completions";

TEST_F(ServiceLimits, TheEngineKeepsThem) {
  const int64_t before = SteadyNanos();
  Post(kPath, R"({"prompt":"x","deadline_ms":86400000,"max_queue_ms":3600000})");
  const GenerationRequest& wanted = engine_.submitted().at(0)->request;
  EXPECT_GE(wanted.deadline_ns, before + 86'400'000'000'000);
  EXPECT_LE(wanted.deadline_ns, SteadyNanos() + 86'400'000'000'000);
  EXPECT_GT(wanted.max_queue_ns, 0);
  EXPECT_LE(wanted.max_queue_ns, 3'600'000'000'000);
  Post(kPath, R"({"prompt":"x"})");
  EXPECT_EQ(engine_.submitted().at(1)->request.deadline_ns, 0);
  EXPECT_EQ(engine_.submitted().at(1)->request.max_queue_ns, 0);
}

// Some shapes have no word for it beside, and say what they say of max_tokens.
TEST_F(ServiceLimits, ADeadlineIsToldInEveryShape) {
  const std::pair<const char*, const char*> bodies[] = {
      {kPath, R"({"prompt":"x")"},
      {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}])"},
      {"/v1/messages", R"({"max_tokens":50,"messages":[{"role":"user","content":"x"}])"},
      {"/v1/responses", R"({"input":"x")"}};
  for (const auto& [path, body] : bodies) {
    const auto whole = Post(path, std::string(body) + R"(,"deadline_ms":86400000})");
    Step();
    EndAll(FinishReason::kDeadline);
    ASSERT_EQ(whole->status(), 200) << whole->body();
    EXPECT_EQ(Json(*whole).at("vivace").at("deadline"), true) << path;
    const auto stream = Post(path, std::string(body) + R"(,"stream":true,"deadline_ms":86400000})");
    Step();
    EndAll(FinishReason::kDeadline);
    EXPECT_THAT(stream->body(), HasSubstr(R"("vivace":{"deadline":true})")) << path;
  }
}

TEST_F(ServiceLimits, AtItsDeadlineAnAnswerIsWhatThereIs) {
  const auto exchange = Post(kPath, R"({"prompt":"x","n":2,"deadline_ms":86400000})");
  Step();
  Step();
  EndAll(FinishReason::kDeadline);
  ASSERT_EQ(exchange->status(), 200) << exchange->body();
  const json::value answer = Json(*exchange);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(TextOf(answer, i), " hello hello");
    EXPECT_EQ(FinishOf(answer, i), "length");
    EXPECT_EQ(answer.at("choices").at(i).at("stop_reason"), "deadline");
  }
  EXPECT_EQ(service_->open_requests(), 0);
  EXPECT_EQ(Get("/v1/requests").at("data").at(0).at("outcome"), "deadline");
}

TEST_F(ServiceLimits, AStreamEndsAtItsDeadlineAsWell) {
  const auto exchange =
      Post("/v1/chat/completions",
           R"({"messages":[{"role":"user","content":"x"}],"stream":true,"deadline_ms":86400000})");
  Step();
  EndAll(FinishReason::kDeadline);
  ASSERT_TRUE(exchange->complete());
  const auto events = Events(exchange->body());
  ASSERT_GE(events.size(), 3u);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_THAT(events[events.size() - 2], HasSubstr(R"("finish_reason":"length")"));
  EXPECT_THAT(events[events.size() - 2], HasSubstr(R"("stop_reason":"deadline")"));
}

TEST_F(ServiceLimits, WithoutAnyOutputADeadlineIsAnError) {
  for (const char* stream : {"false", "true"}) {
    const auto exchange = Post(
        kPath, fmt::format(R"({{"prompt":"x","n":2,"deadline_ms":86400000,"stream":{}}})", stream));
    EndAll(FinishReason::kDeadline);
    EXPECT_EQ(exchange->status(), 504);
    EXPECT_EQ(ErrorOf(*exchange).at("code"), "deadline_exceeded");
  }
}

TEST_F(ServiceLimits, WhoWaitsTooLongIsToldWhenToComeBack) {
  const auto exchange = Post(kPath, R"({"prompt":"x","max_queue_ms":86400000})");
  FillQueue();
  EndAll(FinishReason::kQueueTimeout);
  EXPECT_EQ(exchange->status(), 503);
  EXPECT_EQ(ErrorOf(*exchange).at("code"), "queue_timeout");
  EXPECT_EQ(exchange->header("retry-after"), "5");
}

TEST_F(ServiceLimits, WhatIsForeseenToBeLateIsRefusedAtOnce) {
  FillQueue();
  const auto late = Post(kPath, R"({"prompt":"x","deadline_ms":4900})");
  EXPECT_EQ(late->status(), 503);
  EXPECT_EQ(ErrorOf(*late).at("code"), "deadline_exceeded");
  EXPECT_EQ(late->header("retry-after"), "5");
  EXPECT_EQ(http_.retry_after_s(), 5);
  const auto impatient = Post(kPath, R"({"prompt":"x","max_queue_ms":4900})");
  EXPECT_EQ(impatient->status(), 503);
  EXPECT_EQ(ErrorOf(*impatient).at("code"), "queue_timeout");
  const auto patient = Post(kPath, R"({"prompt":"x","deadline_ms":86400000})");
  EXPECT_EQ(patient->answers(), 0);
  engine_.figures.prompt_tokens_per_s = 0;  // not measured yet
  const auto hopeful = Post(kPath, R"({"prompt":"x","max_queue_ms":60000})");
  EXPECT_EQ(hopeful->answers(), 0);
  RunEngine();
  EXPECT_EQ(patient->status(), 200);
  EXPECT_EQ(hopeful->status(), 200);
}

TEST_F(ServiceLimits, LimitsOfTimeAreChecked) {
  for (const char* bad : {"0", "-1", "1.5", "\"1s\"", "86400001"}) {
    for (const char* name : {"deadline_ms", "max_queue_ms"}) {
      const auto exchange =
          Post("/v1/completions", std::string(R"({"prompt":"x",")") + name + "\":" + bad + "}");
      EXPECT_EQ(exchange->status(), 400) << name << bad;
      EXPECT_EQ(ErrorOf(*exchange).at("param"), name);
    }
  }
}

TEST_F(ServiceLimits, ServerTimingSaysWhatIsKnown) {
  const auto whole = Ask("/v1/completions", R"({"prompt":"x","max_tokens":2})");
  EXPECT_THAT(whole->header("server-timing"), StartsWith("prepare;dur="));
  EXPECT_THAT(whole->header("server-timing"), HasSubstr("total;dur="));
  const auto stream = Ask("/v1/completions", R"({"prompt":"x","max_tokens":2,"stream":true})");
  EXPECT_THAT(stream->header("server-timing"), StartsWith("prepare;dur="));
  EXPECT_THAT(stream->header("server-timing"), ::testing::Not(HasSubstr("total")));
}

TEST_F(ServiceLimits, RequestsCanBeLookedAt) {
  const auto exchange = Post("/v1/completions", R"({"prompt":"x","max_tokens":2})");
  const json::value running = Get("/v1/requests").at("data").at(0);
  EXPECT_TRUE(running.at("status").is_null());
  const std::string id(running.at("id").as_string());
  EXPECT_THAT(id, StartsWith("cmpl-"));
  RunEngine();
  EXPECT_EQ(exchange->header("x-request-id"), id);
  const json::value timeline = Get("/v1/requests/" + id + "/timeline");
  EXPECT_EQ(timeline.at("status").as_int64(), 200);
  EXPECT_EQ(timeline.at("output_tokens").as_int64(), 2);
  EXPECT_THAT(std::string(timeline.at("summary").as_string()), EndsWith("ms"));
  EXPECT_EQ(Send("GET", "/v1/requests/cmpl-none/timeline")->status(), 404);
  exchange->Close();
}

}  // namespace
}  // namespace vivace::server
