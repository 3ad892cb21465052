#include "server/openai/described_tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace vivace::server {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

const json::array kTools =
    json::parse(
        R"([{"type":"function","function":{"name":"judge","parameters":{"type":"object"}}}])")
        .as_array();

json::array Described(std::string_view messages, const json::array* tools, bool system_role) {
  return WithDescribedTools(json::parse(messages).as_array(), tools, system_role);
}

TEST(DescribedTools, InASystemMessage) {
  const json::array own = Described(R"([{"role":"user","content":"Hi"}])", &kTools, true);
  ASSERT_EQ(own.size(), 2u);
  EXPECT_EQ(own[0].at("role"), "system");
  EXPECT_THAT(std::string(own[0].at("content").as_string()), HasSubstr("judge"));
  EXPECT_EQ(json::serialize(own[1]), R"({"role":"user","content":"Hi"})");
  const json::array joined = Described(
      R"([{"role":"system","content":"Brief."},{"role":"user","content":"Hi"}])", &kTools, true);
  ASSERT_EQ(joined.size(), 2u);
  const std::string system(joined[0].at("content").as_string());
  EXPECT_TRUE(system.starts_with("Brief.")) << system;
  EXPECT_THAT(system, HasSubstr("judge"));
}

TEST(DescribedTools, InTheUsersWords) {
  const json::array messages = Described(R"([{"role":"user","content":"Hi"}])", &kTools, false);
  ASSERT_EQ(messages.size(), 1u);
  const std::string user(messages[0].at("content").as_string());
  EXPECT_THAT(user, HasSubstr("judge"));
  EXPECT_TRUE(user.ends_with("Hi")) << user;
}

// Also where the request names no tools any more.
TEST(DescribedTools, CallsAndResultsAreText) {
  const json::array messages = Described(R"([{"role":"user","content":"Hi"},
      {"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function",
       "function":{"name":"judge","arguments":{"a":1}}}]},
      {"role":"tool","tool_call_id":"c","content":"good"}])",
                                         nullptr, true);
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_FALSE(messages[1].as_object().contains("tool_calls"));
  EXPECT_THAT(std::string(messages[1].at("content").as_string()), HasSubstr("judge"));
  EXPECT_EQ(messages[2].at("role"), "user");
  EXPECT_THAT(std::string(messages[2].at("content").as_string()), HasSubstr("good"));
}

// As many and as long as a body may bring: each byte is copied a few times, however many follow
// each other.
TEST(DescribedTools, ResultsThatFollowEachOtherAreOneMessage) {
  constexpr size_t kResults = 4'000;
  json::array messages;
  for (size_t i = 0; i < kResults; ++i) {
    messages.push_back(json::object{
        {"role", "tool"}, {"tool_call_id", "c"}, {"content", std::string(2'000, 'x')}});
  }
  const json::array out = WithDescribedTools(std::move(messages), nullptr, true);
  ASSERT_EQ(out.size(), 1u);
  const std::string_view text = out[0].at("content").as_string();
  constexpr std::string_view kHead = "Result of the call:\n\n";
  EXPECT_TRUE(text.starts_with(kHead));
  EXPECT_EQ(text.size(), kResults * (kHead.size() + 2'000 + 2) - 2);
}

}  // namespace
}  // namespace vivace::server
