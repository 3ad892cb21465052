#include "server/json/strict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/limits.h"

namespace vivace::server {
namespace {

using ::testing::HasSubstr;

std::string MessageOf(std::string_view text) {
  const auto result = ParseStrictJson(text);
  return result ? "accepted" : result.error().message;
}

TEST(StrictJson, ReadsValues) {
  const auto value = ParseStrictJson("  {\"a\": [1, -2.5, \"\\u00e9\", null, true]}\r\n");
  ASSERT_TRUE(value);
  const auto& list = value->at("a").as_array();
  EXPECT_EQ(list[0].as_int64(), 1);
  EXPECT_EQ(list[1].as_double(), -2.5);
  EXPECT_EQ(list[2].as_string(), "\xC3\xA9");
  EXPECT_TRUE(list[3].is_null());
}

TEST(StrictJson, NamesByteAndReason) {
  EXPECT_THAT(MessageOf(""), HasSubstr("empty"));
  EXPECT_THAT(MessageOf("{:"), HasSubstr("syntax error at byte 1"));
  EXPECT_THAT(MessageOf("{\"model\":\"m\""),
              HasSubstr("ends at byte 12, before the value is complete"));
  EXPECT_THAT(MessageOf("{}garbage"), HasSubstr("extra data after the value at byte 2"));
  EXPECT_THAT(MessageOf("{\"a\":NaN}"), HasSubstr("at byte 5"));
  EXPECT_THAT(MessageOf("{\"a\":1e400}"), HasSubstr("too large"));
  // Far into the text: past the first piece of the search.
  EXPECT_THAT(MessageOf(std::string(1, '[') + std::string(9000, ' ') + "}"),
              HasSubstr("at byte 9001"));
}

TEST(StrictJson, SaysWhatIsNoSyntax) {
  EXPECT_THAT(MessageOf("{\"a\":\"\xFF\"}"), HasSubstr("not UTF-8: byte 6 (0xff)"));
  EXPECT_THAT(MessageOf("{\"a\":\"\xC3\"}"), HasSubstr("not UTF-8: byte 6 (0xc3)"));
  EXPECT_THAT(MessageOf("{\"a\":\"\xED\xA0\x80\"}"), HasSubstr("not UTF-8: byte 6"));
  EXPECT_THAT(MessageOf("\xFF\xFE{"), HasSubstr("not UTF-8: byte 0"));
  EXPECT_THAT(MessageOf("\xEF\xBB\xBF{}"), HasSubstr("byte order mark"));
  EXPECT_THAT(MessageOf("{\"a\":{\"b\":1,\"c\":{\"b\":2},\"\\u0062\":3}}"),
              HasSubstr("the member \"b\" twice"));
  EXPECT_EQ(ParseStrictJson("{\"a\":1,\"a\":2}").error().field, "a");
  EXPECT_THAT(ParseStrictJson("{", "`guided_json`").error().message,
              ::testing::StartsWith("`guided_json` is not valid JSON"));
}

TEST(StrictJson, RefusesWhatOtherParsersBend) {
  for (const std::string_view text :
       {"\xEF\xBB\xBF{}", "{\"a\":\"\xFF\"}", "{\"a\":\"\xED\xA0\x80\"}", "{\"a\":\"\\ud800\"}",
        "{\"a\":01}", "{\"a\":+1}", "{\"a\":.5}", "{'a':1}", "{\"a\":1,}", "[1,]", "// x\n{}",
        "{\"a\":\"\n\"}", "nul", "{\"a\":1,\"a\":2}", "{\"a\":{\"b\":1,\"b\":1}}",
        "{\"a\":1,\"\\u0061\":2}"}) {
    EXPECT_FALSE(ParseStrictJson(text)) << text;
  }
}

TEST(StrictJson, NestingEndsAtTheLimit) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_TRUE(ParseStrictJson(nested(limits::kJsonDepth)));
  EXPECT_THAT(MessageOf(nested(limits::kJsonDepth + 1)), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(MessageOf(nested(100'000)), HasSubstr("nested deeper than 64"));
}

// Every prefix of a valid text, and the text with each byte changed, is read or refused, not
// crashed.
TEST(StrictJson, SurvivesEveryCutAndEveryByte) {
  const std::string text = R"({"a":[1,2.5e3,"\u00e9\n"],"b":{"c":null,"d":true}})";
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(ParseStrictJson(std::string_view(text).substr(0, i))) << i;
    for (const char byte : {'\0', '"', '\\', '{', ']', '\x80', '\xFF'}) {
      std::string changed = text;
      changed[i] = byte;
      const auto result = ParseStrictJson(changed);
      if (!result) {
        EXPECT_EQ(result.error().reason, "invalid_json");
      }
    }
  }
}

}  // namespace
}  // namespace vivace::server
