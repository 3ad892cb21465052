#include "load/client/chunk.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "load/client/json_scan.h"

namespace vivace::load {
namespace {

Chunk Parse(std::string_view event, std::string* text = nullptr) {
  Chunk chunk;
  EXPECT_TRUE(ParseChunk(event, &chunk, text)) << event;
  return chunk;
}

TEST(Chunk, CompletionsAndChat) {
  std::string text;
  Chunk chunk = Parse(
      R"({"id":"x","choices":[{"index":0,"text":" a\n\u00e9\ud83d\ude00","logprobs":{"a":[1,{}]},)"
      R"("finish_reason":null}],"usage":null})",
      &text);
  EXPECT_TRUE(chunk.has_choices);
  EXPECT_TRUE(chunk.has_text);
  EXPECT_EQ(chunk.completion_tokens, -1);
  EXPECT_EQ(text, " a\n\xC3\xA9\xF0\x9F\x98\x80");
  chunk = Parse(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})", &text);
  EXPECT_TRUE(chunk.has_choices);
  EXPECT_FALSE(chunk.has_text);
  chunk = Parse(R"({"choices":[{"delta":{"content":null,"reasoning_content":"hm"}}]})", &text);
  EXPECT_TRUE(chunk.has_text);
  EXPECT_EQ(text, " a\n\xC3\xA9\xF0\x9F\x98\x80");  // thoughts are no part of it
  EXPECT_TRUE(Parse(R"({"choices":[{"delta":{"tool_calls":[{"index":0}]}}]})").has_text);
  EXPECT_FALSE(Parse(R"({"choices":[{"delta":{"tool_calls":[]}}]})").has_text);
}

TEST(Chunk, UsageAndFinishReason) {
  const Chunk chunk = Parse(
      R"({"choices":[{"text":"","finish_reason":"length"}],"usage":{"prompt_tokens":12,)"
      R"("completion_tokens":34,"prompt_tokens_details":{"cached_tokens":8},"total_tokens":46}})");
  EXPECT_FALSE(chunk.has_text);
  EXPECT_EQ(chunk.finish_reason, "length");
  EXPECT_EQ(chunk.prompt_tokens, 12);
  EXPECT_EQ(chunk.completion_tokens, 34);
  EXPECT_EQ(chunk.cached_tokens, 8);
  EXPECT_FALSE(
      Parse(R"({"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}})").has_choices);
}

TEST(Chunk, CountsAreWholeNumbers) {
  const auto with_count = [](const std::string& count) {
    return Parse(R"({"choices":[],"usage":{"prompt_tokens":)" + count +
                 R"(,"completion_tokens":2}})");
  };
  EXPECT_EQ(with_count("12.0").prompt_tokens, 12);
  EXPECT_EQ(with_count("1.2e1").prompt_tokens, 12);
  EXPECT_EQ(with_count("null").prompt_tokens, -1);
  EXPECT_FALSE(with_count("12.0").bad_count);
  EXPECT_FALSE(with_count("null").bad_count);
  for (const char* count : {"1e+300", "1e999", "1.5", "99999999999999999999"}) {
    EXPECT_TRUE(with_count(count).bad_count) << count;
    EXPECT_EQ(with_count(count).completion_tokens, 2) << count;
  }
}

TEST(Chunk, Errors) {
  EXPECT_EQ(Parse(R"({"error":{"message":"no \"room\"","code":503}})").error, "no \"room\"");
  EXPECT_EQ(Parse(R"({"error":"gone"})").error, "gone");
  EXPECT_EQ(Parse(R"({"object":"error","message":"old shape","code":400})").error, "old shape");
  EXPECT_FALSE(Parse(R"({"error":null,"choices":[]})").is_error);
  EXPECT_EQ(ErrorMessageOf(R"({"detail":"Not Found"})"), "Not Found");
  EXPECT_EQ(ErrorMessageOf("<html>\n502"), "<html> 502");
  EXPECT_LE(ErrorMessageOf(std::string(5'000, 'x')).size(), limits::kMaxLoadReasonBytes);
}

TEST(Chunk, WhatIsNoJsonIsRefusedWhereverItIsCut) {
  const std::string whole =
      R"({"a":[1,{"b":"\"x"}],"choices":[{"text":"t","finish_reason":null}],"usage":{"prompt_tokens":3}})";
  Chunk chunk;
  EXPECT_TRUE(ParseChunk(whole, &chunk, nullptr));
  for (size_t n = 0; n < whole.size(); ++n) {
    Chunk cut;
    EXPECT_FALSE(ParseChunk(std::string_view(whole).substr(0, n), &cut, nullptr)) << n;
  }
  for (const char* bad : {"[]", "1", "\"x\"", "{\"a\":}", "{\"a\":[}", "{\"a\":yes}", "{} x",
                          "{\"choices\":[1]}", "{\"choices\":[{\"text\":}]}"}) {
    EXPECT_FALSE(ParseChunk(bad, &chunk, nullptr)) << bad;
  }
}

TEST(JsonScan, DepthIsBounded) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  const std::string at_limit = nested(64), beyond = nested(65);
  EXPECT_TRUE(JsonScanner(at_limit).Skip());
  EXPECT_FALSE(JsonScanner(beyond).Skip());
}

TEST(JsonScan, HalvesOfSurrogatesAreReplaced) {
  std::string text;
  AppendUnescaped(R"(\ud83dx\ude00\u00zz\q)", &text);
  EXPECT_EQ(text,
            "\xEF\xBF\xBDx\xEF\xBF\xBD\xEF\xBF\xBD"
            "00zzq");
}

}  // namespace
}  // namespace vivace::load
