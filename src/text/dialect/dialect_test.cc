#include "text/dialect/dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "text/dialect/dialect_testing.h"

namespace vivace::dialect {
namespace {

TEST(DialectTest, EveryFormatIsFoundByItsMarks) {
  for (const ToolFormat& format : ToolFormats()) {
    SCOPED_TRACE(format.name);
    const std::string marks =
        std::string(format.template_marks[0]) + " " + std::string(format.template_marks[1]);
    EXPECT_EQ(DialectOf(marks).tools->name, format.name);
  }
}

TEST(DialectTest, FormatsAreSound) {
  for (const ToolFormat& format : ToolFormats()) {
    SCOPED_TRACE(format.name);
    if (format.shape == CallShape::kHarmony) continue;
    EXPECT_NE(format.spelling.call_begin.find('@'), std::string_view::npos);
    // What a grammar writes begins as the parser expects it.
    const std::string_view first =
        format.section_begin.empty() ? format.call_begin : format.section_begin;
    const std::string written =
        std::string(format.spelling.section_begin) + std::string(format.spelling.call_begin);
    EXPECT_TRUE(written.starts_with(first)) << written;
    // No opening mark begins another one.
    const std::string_view marks[] = {format.section_begin, format.call_begin, format.other_begin};
    for (const std::string_view a : marks) {
      for (const std::string_view b : marks) {
        EXPECT_FALSE(!a.empty() && a != b && b.starts_with(a)) << a << " " << b;
      }
    }
  }
}

TEST(DialectTest, TemplatesOfNoKnownFormat) {
  EXPECT_EQ(DialectOf("Here are tools: ").tools->name, "generic");
  EXPECT_FALSE(DialectOf("Here are tools: ").describes_tools);
  const auto plain = ChatTemplate::Parse("{{ messages[0].content }}");
  const Dialect described = DetectDialect(&*plain, *ByteTokenizer({}));
  EXPECT_EQ(described.tools->name, "generic");
  EXPECT_TRUE(described.describes_tools);
  EXPECT_EQ(described.reasoning, nullptr);
  EXPECT_FALSE(described.always_parses());
  EXPECT_EQ(DetectDialect(nullptr, *ByteTokenizer({})).tools->name, "none");
}

TEST(DialectTest, ReasoningIsFoundInTemplateOrVocabulary) {
  EXPECT_EQ(DialectOf("x").reasoning, nullptr);
  EXPECT_EQ(DialectOf("<|end|>").reasoning, nullptr);  // of others' turns as well
  ASSERT_NE(DialectOf("</think>").reasoning, nullptr);
  EXPECT_EQ(DialectOf("</think>").reasoning->name, "think");
  EXPECT_EQ(DialectOf("</think>").reasoning_end_token, -1);  // several tokens
  const Dialect known = DialectOf("x", {"<think>", "</think>"});
  ASSERT_NE(known.reasoning, nullptr);
  EXPECT_EQ(known.reasoning_end_token, 257);
  EXPECT_EQ(DialectOf("[THINK]").reasoning->name, "mistral");
}

TEST(DialectTest, ControlTokensOfItsMarks) {
  const Dialect dialect =
      DialectOf("<|channel|> <|message|>", {"<|x|>", "<|message|>", "<|end|>", "<|call|>"});
  EXPECT_EQ(dialect.MarkTokenOf("<|message|>"), 257);
  EXPECT_EQ(dialect.MarkTokenOf("<|call|>"), 259);
  EXPECT_EQ(dialect.MarkTokenOf("<|x|>"), std::nullopt);
  EXPECT_EQ(dialect.MarkTokenOf("<|channel|>"), std::nullopt);
}

RenderedPrompt Prompt(std::string_view theirs, std::string_view ours) {
  const std::string text = "<u>" + std::string(theirs) + std::string(ours);
  const size_t end = 3 + theirs.size();
  return {text, {{0, 3, true}, {3, end, false}, {end, text.size(), true}}};
}

TEST(DialectTest, HowAnOutputBegins) {
  const Dialect dialect = DialectOf("<think>");
  const auto start = [&](std::string_view theirs, std::string_view ours) {
    return FindReasoningStart(dialect, Prompt(theirs, ours), false);
  };
  EXPECT_EQ(start("hi", "<a>"), ReasoningStart::kOptional);
  EXPECT_EQ(start("hi", "<a><think>\n"), ReasoningStart::kOpen);
  EXPECT_EQ(start("hi", "<a><think>\n\n</think>\n\n"), ReasoningStart::kNone);
  // What a message says of thoughts opens none.
  EXPECT_EQ(start("<think>", "<a>"), ReasoningStart::kOptional);
  EXPECT_EQ(FindReasoningStart(dialect, Prompt("<think>so", ""), true), ReasoningStart::kOpen);
  EXPECT_EQ(FindReasoningStart(DialectOf("x"), Prompt("", "<think>"), false),
            ReasoningStart::kNone);
}

}  // namespace
}  // namespace vivace::dialect
