#include "load/client/answer_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"

namespace vivace::load {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An answer of `status` whose parts come at 100, 200, 300, ...
class AnswerReaderTest : public ::testing::Test {
 protected:
  RequestRecord Read(int status, const std::vector<std::string>& parts,
                     AnswerReader::Ending ending = {}, int64_t max_events = 1'000) {
    RequestRecord record;
    record.wanted_prompt_tokens = 7;
    reader_.Begin(&record, {.keep_text = true, .max_events = max_events, .live_tokens = &live_});
    if (status != 0) {
      reader_.OnHeader("HTTP/1.1 100 Continue\r\n");
      reader_.OnHeader("HTTP/1.1 " + std::to_string(status) + " X\r\n");
      reader_.OnHeader("Server-Timing: prepare;dur=1.5, queue;dur=2.25\r\n");
    }
    int64_t now = 0;
    for (const std::string& part : parts) {
      if (!reader_.OnBody(part, now += 100)) {
        ending.clean = false;
        break;
      }
    }
    reader_.End(ending, now + 1);
    return record;
  }

  static std::string Event(const std::string& text, int tokens = -1) {
    return "data: {\"choices\":[{\"text\":\"" + text + "\"}]" +
           (tokens < 0 ? "" : ",\"usage\":{\"completion_tokens\":" + std::to_string(tokens) + "}") +
           "}\n\n";
  }
  static std::string Usage(int prompt, int output) {
    return "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":" + std::to_string(prompt) +
           ",\"completion_tokens\":" + std::to_string(output) + "}}\n\n";
  }

  AnswerReader reader_;
  int64_t live_ = 0;
};

constexpr char kDone[] = "data: [DONE]\n\n";

TEST_F(AnswerReaderTest, TimesAreThoseOfTheReads) {
  const RequestRecord r = Read(
      200, {Event("a"), Event("b") + Event("c"), ": ping\n\n", Event("d"), Usage(11, 4) + kDone});
  EXPECT_EQ(r.outcome, Outcome::kCompleted) << r.reason;
  EXPECT_THAT(r.chunk_ns, ElementsAre(100, 200, 200, 400));
  EXPECT_EQ(r.first_ns, 100);
  EXPECT_EQ(r.last_ns, 400);
  EXPECT_EQ(r.ended_ns, 501);
  EXPECT_EQ(r.prompt_tokens, 11);
  EXPECT_EQ(r.output_tokens, 4);
  EXPECT_TRUE(r.counted);
  EXPECT_THAT(r.chunk_tokens, IsEmpty());
  EXPECT_EQ(r.server_queue_ms, 2.25);
  EXPECT_EQ(reader_.text(), "abcd");
}

TEST_F(AnswerReaderTest, ContinuousUsageCountsTheTokensOfEachEvent) {
  // An event without text that brings a token is one; text without a token is one of none.
  const RequestRecord r = Read(
      200, {Event("a", 1), Event("", 2), Event("bcd", 5), Event("e", 5), Usage(11, 5) + kDone});
  EXPECT_THAT(r.chunk_tokens, ElementsAre(1, 1, 3, 0));
  EXPECT_EQ(r.output_tokens, 5);
  EXPECT_EQ(live_, 5);
}

TEST_F(AnswerReaderTest, EventsWithoutTextAreKeptApart) {
  const RequestRecord r =
      Read(200, {"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
                 Event("a"), "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
                 Usage(11, 1) + kDone});
  EXPECT_THAT(r.empty_ns, ElementsAre(100, 300));
  EXPECT_THAT(r.chunk_ns, ElementsAre(200));
  // As many as there are content events at most: a stream of nothing is no memory.
  EXPECT_THAT(Read(200, {Event(""), Event(""), Event(""), kDone}, {}, 2).empty_ns,
              ElementsAre(100, 200));
}

TEST_F(AnswerReaderTest, CountsThatComeForSomeEventsOnlyAreNone) {
  const RequestRecord r = Read(200, {Event("a", 1), Event("b"), Usage(1, 2) + kDone});
  EXPECT_THAT(r.chunk_tokens, IsEmpty());
  EXPECT_EQ(r.chunk_ns.size(), 2u);
}

TEST_F(AnswerReaderTest, WithoutUsageTheEventsCount) {
  const RequestRecord r = Read(200, {Event("a"), Event("b"), kDone});
  EXPECT_EQ(r.outcome, Outcome::kCompleted);
  EXPECT_FALSE(r.counted);
  EXPECT_EQ(r.prompt_tokens, 7);
  EXPECT_EQ(r.output_tokens, 2);
}

TEST_F(AnswerReaderTest, EndsWithoutDone) {
  const std::string finish = "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\n";
  EXPECT_EQ(Read(200, {Event("a"), finish}).outcome, Outcome::kCompleted);
  EXPECT_EQ(Read(200, {Event("a"), "data: [DONE]"}).outcome, Outcome::kCompleted);
  const RequestRecord cut = Read(200, {Event("a")});
  EXPECT_EQ(cut.outcome, Outcome::kCut);
  EXPECT_THAT(cut.reason, HasSubstr("before a finish_reason"));
}

TEST_F(AnswerReaderTest, Refusals) {
  const RequestRecord r = Read(503, {"{\"error\":{\"mess", "age\":\"full\"}}"});
  EXPECT_EQ(r.outcome, Outcome::kRefused);
  EXPECT_EQ(r.status, 503);
  EXPECT_EQ(r.reason, "HTTP 503: full");
  EXPECT_EQ(Read(404, {}).reason, "HTTP 404");
  const RequestRecord first = Read(200, {"data: {\"error\":{\"message\":\"full\"}}\n\n"});
  EXPECT_EQ(first.outcome, Outcome::kRefused);
  EXPECT_EQ(first.reason, "the server reported an error: full");
  EXPECT_EQ(Read(200, {Event("a"), "data: {\"error\":{\"message\":\"x\"}}\n\n"}).outcome,
            Outcome::kCut);
}

TEST_F(AnswerReaderTest, BrokenConnections) {
  const AnswerReader::Ending broken = {.clean = false, .transport = "it broke"};
  EXPECT_EQ(Read(0, {}, broken).outcome, Outcome::kConnection);
  EXPECT_EQ(Read(200, {}, broken).outcome, Outcome::kConnection);
  const RequestRecord cut = Read(200, {Event("a")}, broken);
  EXPECT_EQ(cut.outcome, Outcome::kCut);
  EXPECT_EQ(cut.reason, "it broke");
  // The stream had said that it was over.
  EXPECT_EQ(Read(200, {Event("a") + kDone}, broken).outcome, Outcome::kCompleted);
}

TEST_F(AnswerReaderTest, Garbage) {
  EXPECT_EQ(Read(200, {"<html>"}).outcome, Outcome::kGarbage);
  EXPECT_THAT(Read(200, {"<html>"}).reason, HasSubstr("<html>"));
  EXPECT_EQ(Read(200, {}).reason, "the answer is empty");
  EXPECT_EQ(Read(200, {Event("a"), "data: no\n\n", kDone}).outcome, Outcome::kGarbage);
  EXPECT_EQ(Read(200, {kDone}).outcome, Outcome::kGarbage);
  EXPECT_EQ(Read(200, {Usage(3, 0) + kDone}).outcome, Outcome::kCompleted);  // says it has none
}

TEST_F(AnswerReaderTest, CountsThatNoServerCountedAreGarbage) {
  for (const char* usage : {"\"prompt_tokens\":4611686018427387904,\"completion_tokens\":1",
                            "\"prompt_tokens\":1,\"completion_tokens\":4611686018427387904"}) {
    const std::string event = fmt::format("data: {{\"choices\":[],\"usage\":{{{}}}}}\n\n", usage);
    const RequestRecord r = Read(200, {Event("a") + event + kDone});
    EXPECT_EQ(r.outcome, Outcome::kGarbage);
    EXPECT_THAT(r.reason, HasSubstr("usage counts 4611686018427387904 tokens"));
  }
}

TEST_F(AnswerReaderTest, ACountThatIsNoNumberOfTokensIsGarbage) {
  for (const char* count : {"1e+300", "1.5"}) {
    const std::string event =
        fmt::format("data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{}}}}}\n\n", count);
    const RequestRecord r = Read(200, {Event("a") + event + kDone});
    EXPECT_EQ(r.outcome, Outcome::kGarbage);
    EXPECT_THAT(r.reason, HasSubstr("no number of tokens"));
  }
}

TEST_F(AnswerReaderTest, ARedirectSaysWhereTo) {
  RequestRecord record;
  reader_.Begin(&record, {});
  reader_.OnHeader("HTTP/1.1 301 Moved\r\n");
  reader_.OnHeader("Location:  https://there/v1 \r\n");
  reader_.OnBody("<html>moved</html>", 1);
  reader_.End({}, 2);
  EXPECT_EQ(record.outcome, Outcome::kRefused);
  EXPECT_EQ(record.reason, "HTTP 301: it redirects to https://there/v1");
}

TEST_F(AnswerReaderTest, AStreamThatDoesNotEndIsEnded) {
  EXPECT_EQ(Read(200, {Event("a") + Event("b") + Event("c"), kDone}, {}, 3).outcome,
            Outcome::kCompleted);
  const RequestRecord r =
      Read(200, {Event("a") + Event("b") + Event("c") + Event("d"), kDone}, {}, 3);
  EXPECT_EQ(r.outcome, Outcome::kGarbage);
  EXPECT_THAT(r.reason, HasSubstr("does not end"));
}

TEST_F(AnswerReaderTest, WhatWeEndedIsWhatWeSay) {
  const AnswerReader::Ending ours = {.clean = false,
                                     .transport = {},
                                     .has_outcome = true,
                                     .outcome = Outcome::kTimeout,
                                     .reason = "too long"};
  const RequestRecord r = Read(200, {Event("a")}, ours);
  EXPECT_EQ(r.outcome, Outcome::kTimeout);
  EXPECT_EQ(r.reason, "too long");
}

TEST_F(AnswerReaderTest, OneReaderReadsManyAnswers) {
  Read(500, {"{\"error\":\"x\"}"});
  Read(200, {Event("zz"), "data: no\n\n"});
  const RequestRecord r = Read(200, {Event("a"), kDone});
  EXPECT_EQ(r.outcome, Outcome::kCompleted) << r.reason;
  EXPECT_EQ(reader_.text(), "a");
}

TEST_F(AnswerReaderTest, AnErrorsBodyIsBounded) {
  const std::string part(limits::kMaxLoadErrorBytes, 'x');
  EXPECT_EQ(Read(500, {part, part, part}).outcome, Outcome::kRefused);
}

}  // namespace
}  // namespace vivace::load
