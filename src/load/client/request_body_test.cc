#include "load/client/request_body.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "base/limits.h"

namespace vivace::load {
namespace {

namespace json = boost::json;

json::object Body(const BodyOptions& options, const PlannedRequest& request,
                  const History* before = nullptr) {
  const auto writer = BodyWriter::Create(options);
  EXPECT_TRUE(writer) << writer.error().message;
  return json::parse(writer->Write(request, before)).as_object();
}

PlannedRequest Planned(std::variant<std::string, PromptIds, Messages> prompt, int32_t tokens) {
  PlannedRequest request;
  request.prompt = std::move(prompt);
  request.output_tokens = tokens;
  return request;
}

TEST(RequestBody, Completions) {
  const auto body =
      Body({.model = "m", .temperature = 0.0, .ignore_eos = true}, Planned("a \"b\"\n", 5));
  EXPECT_EQ(body, json::parse(R"({"prompt":"a \"b\"\n","max_tokens":5,"model":"m","stream":true,
      "stream_options":{"include_usage":true,"continuous_usage_stats":true},"temperature":0E0,
      "ignore_eos":true})"));
  EXPECT_EQ(Body({}, Planned(PromptIds{3, 1, 2}, 5)).at("prompt"), json::parse("[3,1,2]"));
}

TEST(RequestBody, ChatTakesTextAsAUsersMessage) {
  EXPECT_EQ(Body({.chat = true}, Planned("hi", 5)).at("messages"),
            json::parse(R"([{"role":"user","content":"hi"}])"));
}

TEST(RequestBody, AConversationRepeatsWhatWasSaid) {
  History history;
  history.Add(Planned("one ", 5), "two");
  EXPECT_EQ(Body({}, Planned(" three", 5), &history).at("prompt"), json::value("one two three"));
  EXPECT_EQ(Body({.chat = true}, Planned(" three", 5), &history).at("messages"),
            json::parse(R"([{"role":"user","content":"one "},{"role":"assistant","content":"two"},
                            {"role":"user","content":" three"}])"));
}

TEST(RequestBody, ExtraMembersTakeThePlaceOfOurs) {
  BodyOptions options = {.model = "m", .temperature = 0.5};
  options.extra = json::parse(R"({"temperature":1,"max_completion_tokens":9,"foo":[1],
                                  "stream_options":{"include_usage":false}})")
                      .as_object();
  const auto body = Body(options, Planned("x", 5));
  EXPECT_EQ(body.at("temperature"), json::value(1));
  EXPECT_FALSE(body.contains("max_tokens"));
  EXPECT_EQ(body.at("foo"), json::parse("[1]"));
  EXPECT_EQ(body.at("stream_options"),
            json::parse(R"({"include_usage":false,"continuous_usage_stats":true})"));
  EXPECT_FALSE(BodyWriter::Create(options)->sets_length());
}

TEST(RequestBody, AnAnswerMayHaveFewMoreEventsThanTokens) {
  const PlannedRequest request = Planned("x", 8);
  const int64_t most = BodyWriter::Create({})->MostEvents(request);
  EXPECT_GE(most, 2 * 8);
  EXPECT_LT(most, 1'000);
  BodyOptions options;
  options.extra["max_tokens"] = 8;
  EXPECT_EQ(BodyWriter::Create(options)->MostEvents(Planned("x", 500)), most);
  options.extra["max_tokens"] = "many";
  EXPECT_EQ(BodyWriter::Create(options)->MostEvents(request), limits::kMaxLoadEvents);
}

TEST(RequestBody, WhatWouldChangeTheMeasurementIsRefused) {
  for (const char* name : {"prompt", "messages", "stream", "n"}) {
    BodyOptions options;
    options.extra[name] = 1;
    const auto writer = BodyWriter::Create(options);
    ASSERT_FALSE(writer) << name;
    EXPECT_NE(writer.error().message.find(name), std::string::npos);
  }
}

TEST(RequestBody, PromptsThatTheEndpointCannotTake) {
  const auto chat = BodyWriter::Create({.chat = true});
  const auto plain = BodyWriter::Create({});
  EXPECT_FALSE(chat->Check(Planned(PromptIds{1}, 1)));
  EXPECT_TRUE(plain->Check(Planned(PromptIds{1}, 1)));
  EXPECT_FALSE(plain->Check(Planned(Messages{{"user", "x"}}, 1)));
  PlannedRequest turn = Planned(PromptIds{1}, 1);
  turn.conversation = 0;
  EXPECT_FALSE(plain->Check(turn));
}

TEST(RequestBody, StrangersShareNoPrefix) {
  const PlannedRequest ids = Planned(PromptIds{1, 2, 3, 4}, 5);
  const auto other = std::get<PromptIds>(Stranger(ids, 0).prompt);
  EXPECT_EQ(other.size(), 4u);
  EXPECT_NE(other[0], 1);
  EXPECT_NE(std::get<PromptIds>(Stranger(ids, 1).prompt)[0], other[0]);
  EXPECT_FALSE(std::get<std::string>(Stranger(Planned("abc", 5), 0).prompt).starts_with("abc"));
}

}  // namespace
}  // namespace vivace::load
