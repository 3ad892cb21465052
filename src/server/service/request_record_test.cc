#include "server/service/request_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "base/limits.h"
#include "server/service/request_records.h"

namespace vivace::server {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kMs = 1'000'000;

// Began at 1000 ms: 2 ms to prepare, then as long as said.
RequestRecord Record(int64_t queue_ms, int64_t prefill_ms, int64_t decode_ms) {
  PromptRecord prompt;
  prompt.arrived_ns = 1'002 * kMs;
  prompt.scheduled_ns = prompt.arrived_ns + queue_ms * kMs;
  prompt.first_token_ns = prompt.scheduled_ns + prefill_ms * kMs;
  prompt.finished_ns = prompt.first_token_ns + decode_ms * kMs;
  prompt.prompt_tokens = 100;
  prompt.cached_tokens = 36;
  prompt.events = {
      {.at_ns = prompt.scheduled_ns, .step = 7, .cause = WaitCause::kKvRoom, .tokens = 36},
      {.at_ns = prompt.scheduled_ns + kMs,
       .step = 7,
       .kind = TimelineKind::kPrompt,
       .bound = StepBound::kPrompts,
       .tokens = 64,
       .position = 36,
       .step_answers = 3,
       .step_prompts = 2,
       .step_prompt_tokens = 80,
       .step_ns = kMs},
      {.at_ns = prompt.first_token_ns, .step = 7, .kind = TimelineKind::kFirstToken},
      {.at_ns = prompt.finished_ns, .step = 17, .kind = TimelineKind::kFinished}};
  prompt.decodes = {
      .steps = 10, .ns = 50 * kMs, .answers = 25, .prompt_steps = 2, .prompt_ns = 10 * kMs};
  RequestRecord record;
  record.id = "cmpl-1";
  record.path = "/v1/completions";
  record.arrived_ns = 1'000 * kMs;
  record.prepared_ns = prompt.arrived_ns;
  record.ended_ns = prompt.finished_ns;
  record.status = 200;
  record.outcome = "stop";
  record.output_tokens = 11;
  record.prompts = {prompt};
  return record;
}

TEST(RequestRecord, PartsAddUp) {
  const RequestParts parts = PartsOf(Record(3, 20, 50), 0);
  EXPECT_DOUBLE_EQ(parts.prepare_ms, 2);
  EXPECT_DOUBLE_EQ(parts.queue_ms, 3);
  EXPECT_DOUBLE_EQ(parts.prefill_ms, 20);
  EXPECT_DOUBLE_EQ(parts.decode_ms, 50);
  EXPECT_DOUBLE_EQ(parts.total_ms, 75);
  EXPECT_EQ(ServerTiming(parts),
            "prepare;dur=2.000, queue;dur=3.000, prefill;dur=20.000, decode;dur=50.000, "
            "total;dur=75.000");
}

TEST(RequestRecord, WhatHasNotHappenedIsNotKnown) {
  RequestRecord record = Record(0, 0, 0);
  record.ended_ns = 0;
  record.status = 0;
  record.prompts[0].scheduled_ns = record.prompts[0].first_token_ns =
      record.prompts[0].finished_ns = 0;
  const RequestParts parts = PartsOf(record, 1'010 * kMs);
  EXPECT_DOUBLE_EQ(parts.queue_ms, 8);
  EXPECT_DOUBLE_EQ(parts.total_ms, 10);
  EXPECT_EQ(parts.prefill_ms, -1);
  EXPECT_EQ(ServerTiming(parts), "prepare;dur=2.000, queue;dur=8.000, total;dur=10.000");
  EXPECT_EQ(ServerTiming({}), "");
}

TEST(RequestRecord, TheSentenceNamesTheLongestPart) {
  EXPECT_THAT(
      WhatBoundIt(Record(90, 20, 50), 0),
      StartsWith("waiting took most of the time: 90.0 ms because the KV cache had no room"));
  EXPECT_THAT(WhatBoundIt(Record(3, 90, 50), 0),
              StartsWith("computing its prompt took most of the time: 90.0 ms for 64 tokens (36 "
                         "more were cached) in 1 chunk, 1 of them"));
  EXPECT_THAT(WhatBoundIt(Record(3, 20, 50), 0),
              StartsWith("decoding took most of the time: 50.0 ms for 10 steps of 5.00 ms, with "
                         "2.5 running answers a step; prompts of others shared 20 %"));
  EXPECT_THAT(WhatBoundIt(Record(0, 0, 0), 0), StartsWith("reading, rendering and tokenising"));
  RequestRecord set_back = Record(3, 20, 50);
  set_back.prompts[0].preemptions = 2;
  EXPECT_THAT(WhatBoundIt(set_back, 0), HasSubstr("set back 2 times"));
}

TEST(RequestRecord, OfSeveralPromptsTheLastToEndCounts) {
  RequestRecord record = Record(3, 20, 50);
  record.prompts.push_back(Record(3, 20, 500).prompts[0]);
  record.prompts.push_back(Record(3, 20, 5).prompts[0]);
  record.ended_ns = record.prompts[1].finished_ns;
  EXPECT_DOUBLE_EQ(PartsOf(record, 0).decode_ms, 500);
}

TEST(RequestRecord, ATimelineIsJson) {
  std::string body;
  JsonWriter w(&body);
  WriteTimeline(Record(3, 20, 50), 0, &w);
  const json::value timeline = json::parse(body);
  EXPECT_EQ(timeline.at("state"), "ended");
  EXPECT_EQ(timeline.at("times").at("prefill_ms").as_double(), 20.0);
  ASSERT_EQ(timeline.at("events").as_array().size(), 4u);
  const json::value& started = timeline.at("events").at(0);
  EXPECT_EQ(started.at("event"), "started");
  EXPECT_EQ(started.at("waited_for"), "kv_room");
  EXPECT_EQ(timeline.at("events").at(1).at("what"),
            "64 prompt tokens from 36 on, in 1.0 ms beside 3 running answers and 16 tokens of 1 "
            "other prompts");
  EXPECT_EQ(started.at("cached_tokens").as_int64(), 36);
  EXPECT_EQ(started.at("at_ms").as_double(), 5.0);
  const json::value& chunk = timeline.at("events").at(1);
  EXPECT_EQ(chunk.at("tokens").as_int64(), 64);
  EXPECT_EQ(chunk.at("bound_by"), "prompt");
  EXPECT_EQ(chunk.at("shared_with").at("answers").as_int64(), 3);
  EXPECT_EQ(chunk.at("shared_with").at("prompts").as_int64(), 1);
  EXPECT_EQ(chunk.at("shared_with").at("prompt_tokens").as_int64(), 16);
  EXPECT_EQ(timeline.at("decode").at(0).at("steps").as_int64(), 10);
}

bool All(const RequestRecord&) { return true; }

TEST(RequestRecords, KeepsTheLastOnes) {
  RequestRecords records;
  RequestRecord live = Record(1, 1, 1);
  live.ended_ns = 0;
  const auto key = records.Begin("cmpl-1", [&] { return live; });
  EXPECT_EQ(records.Find("cmpl-1", All)->ended_ns, 0);
  records.End(key, Record(1, 1, 1));
  EXPECT_NE(records.Find("cmpl-1", All)->ended_ns, 0);
  for (size_t i = 0; i < limits::kMaxTimelines; ++i) {
    RequestRecord other;
    other.id = std::to_string(i);
    EXPECT_EQ(records.Find("cmpl-1", All).has_value(), true) << i;
    records.End(0, other);
  }
  EXPECT_FALSE(records.Find("cmpl-1", All));
  EXPECT_EQ(records.ended(), limits::kMaxTimelines);
  std::vector<std::string> ids;
  records.ForEach([&](const RequestRecord& record) { ids.push_back(record.id); });
  EXPECT_EQ(ids.size(), limits::kMaxTimelines);
  EXPECT_EQ(ids.front(), std::to_string(limits::kMaxTimelines - 1));
}

// Clients choose ids: one may use another's, or its own again.
TEST(RequestRecords, AnIdMayStandForSeveral) {
  RequestRecords records;
  const auto of = [](uint64_t owner) {
    return [owner](const RequestRecord& record) { return record.owner == owner; };
  };
  std::vector<RequestRecords::Key> keys;
  for (const uint64_t owner : {1, 2, 1}) {
    RequestRecord record;
    record.id = "mine";
    record.owner = owner;
    record.arrived_ns = std::ssize(keys);
    keys.push_back(records.Begin("mine", [record] { return record; }));
  }
  EXPECT_EQ(records.Find("mine", of(1))->arrived_ns, 2);
  EXPECT_EQ(records.Find("mine", of(2))->arrived_ns, 1);
  EXPECT_FALSE(records.Find("mine", of(3)));
  RequestRecord last = *records.Find("mine", of(1));
  last.ended_ns = 9;
  records.End(keys[2], last);
  EXPECT_EQ(records.Find("mine", of(1))->arrived_ns, 0);
  records.Forget(keys[0]);
  EXPECT_EQ(records.Find("mine", of(1))->ended_ns, 9);
  size_t count = 0;
  records.ForEach([&](const RequestRecord&) { ++count; });
  EXPECT_EQ(count, 2u);
}

TEST(Timeline, ChunksLeaveRoomForTheRest) {
  Timeline timeline;
  for (size_t i = 0; i < 2 * limits::kMaxTimelineEvents; ++i) {
    timeline.Add({.kind = TimelineKind::kPrompt});
  }
  const size_t chunks = timeline.events().size();
  EXPECT_LT(chunks, limits::kMaxTimelineEvents);
  EXPECT_EQ(static_cast<size_t>(timeline.dropped()), 2 * limits::kMaxTimelineEvents - chunks);
  timeline.Add({.kind = TimelineKind::kFinished});
  EXPECT_EQ(timeline.events().back().kind, TimelineKind::kFinished);
  for (size_t i = 0; i < limits::kMaxTimelineEvents; ++i) {
    timeline.Add({.kind = TimelineKind::kPreempted});
  }
  EXPECT_EQ(timeline.events().size(), limits::kMaxTimelineEvents);
}

}  // namespace
}  // namespace vivace::server
