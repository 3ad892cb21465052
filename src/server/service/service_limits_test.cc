// Limits of time that requests bring, Retry-After, and what can be seen of requests.
#include <gmock/gmock.h>

#include <thread>

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
  // 10,000 prompt tokens were computed at 100 a second.
  void MeasureSlowPrompts() {
    engine_.figures.prompt_step_tokens = 10'000;
    engine_.figures.prompt_step_ns = 100'000'000'000;
  }
  // Lets `ms` pass and the loop's timers fire.
  void Wait(int ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    http_.RunTimers();
  }
  json::value Get(const std::string& path) { return Json(*Send("GET", path)); }

  static constexpr int kLongMs = 400;  // enough to be prepared, on any machine
};

TEST_F(ServiceLimits, AtItsDeadlineAnAnswerIsWhatThereIs) {
  const auto exchange = Post("/v1/completions", R"({"prompt":"x","deadline_ms":400})");
  Step();
  Step();
  Wait(kLongMs + 10);
  ASSERT_EQ(exchange->status(), 200) << exchange->body();
  const json::value answer = Json(*exchange);
  EXPECT_EQ(TextOf(answer), " hello hello");
  EXPECT_EQ(FinishOf(answer), "length");
  EXPECT_EQ(answer.at("choices").at(0).at("stop_reason"), "deadline");
  EXPECT_EQ(engine_.running(), 0);
  EXPECT_EQ(service_->open_requests(), 0);
  EXPECT_EQ(Get("/v1/requests").at("data").at(0).at("outcome"), "deadline");
}

TEST_F(ServiceLimits, AStreamEndsAtItsDeadlineAsWell) {
  const auto exchange =
      Post("/v1/chat/completions",
           R"({"messages":[{"role":"user","content":"x"}],"stream":true,"deadline_ms":400})");
  Step();
  Wait(kLongMs + 10);
  ASSERT_TRUE(exchange->complete());
  const auto events = Events(exchange->body());
  ASSERT_GE(events.size(), 3u);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_THAT(events[events.size() - 2], HasSubstr(R"("finish_reason":"length")"));
  EXPECT_THAT(events[events.size() - 2], HasSubstr(R"("stop_reason":"deadline")"));
}

TEST_F(ServiceLimits, WithoutAnyOutputADeadlineIsAnError) {
  const auto exchange = Post("/v1/completions", R"({"prompt":"x","deadline_ms":400})");
  Wait(kLongMs + 10);
  EXPECT_EQ(exchange->status(), 504);
  EXPECT_EQ(ErrorOf(*exchange).at("code"), "deadline_exceeded");
  EXPECT_EQ(ErrorOf(*exchange).at("param"), "deadline_ms");
  EXPECT_EQ(engine_.running(), 0);
}

TEST_F(ServiceLimits, ADeadlineThatIsKeptChangesNothing) {
  const auto exchange =
      Ask("/v1/completions", R"({"prompt":"x","max_tokens":2,"deadline_ms":86400000})");
  EXPECT_EQ(exchange->status(), 200);
  EXPECT_TRUE(Json(*exchange).at("choices").at(0).at("stop_reason").is_null());
  http_.RunTimers();  // long forgotten
}

TEST_F(ServiceLimits, WhatIsForeseenToBeLateIsRefusedAtOnce) {
  MeasureSlowPrompts();
  engine_.fail_with = FinishReason::kNone;
  Post(
      "/v1/completions", R"({"prompt":[)" + [] {
        std::string ids = "5";
        for (int i = 1; i < 400; ++i) ids += ",5";
        return ids;
      }() + R"(]})");  // four seconds of prompt
  Step();
  const auto waiting = Post("/v1/completions", R"({"prompt":"x","deadline_ms":86400000})");
  EXPECT_EQ(waiting->answers(), 0);
  // The first one has its token by now; hold up the queue again.
  std::string ids = "5";
  for (int i = 1; i < 400; ++i) ids += ",5";
  Post("/v1/completions", R"({"prompt":[)" + ids + "]}");
  const auto late = Post("/v1/completions", R"({"prompt":"x","deadline_ms":3000})");
  EXPECT_EQ(late->status(), 503);
  EXPECT_EQ(ErrorOf(*late).at("code"), "deadline_exceeded");
  EXPECT_EQ(late->header("retry-after"), "5");
  const auto impatient = Post("/v1/completions", R"({"prompt":"x","max_queue_ms":3000})");
  EXPECT_EQ(impatient->status(), 503);
  EXPECT_EQ(ErrorOf(*impatient).at("code"), "queue_time_exceeded");
  EXPECT_EQ(http_.retry_after_s(), 5);
}

TEST_F(ServiceLimits, WhoWaitsTooLongIsRefused) {
  const auto waits = Post("/v1/completions", R"({"prompt":"x","max_queue_ms":400})");
  const auto runs = Post("/v1/completions", R"({"prompt":"x","max_queue_ms":400,"max_tokens":9})");
  engine_.submitted()[1]->times.scheduled_ns = 1;
  Wait(kLongMs + 10);
  EXPECT_EQ(waits->status(), 503);
  EXPECT_EQ(ErrorOf(*waits).at("code"), "queue_time_exceeded");
  EXPECT_NE(waits->header("retry-after"), "");
  EXPECT_EQ(runs->answers(), 0);
  RunEngine();
  EXPECT_EQ(runs->status(), 200);
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
