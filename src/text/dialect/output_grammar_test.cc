#include "text/dialect/output_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <map>

#include "text/dialect/dialect_testing.h"

namespace vivace::dialect {
namespace {

namespace json = boost::json;
using Calls = OutputRules::Calls;

constexpr std::string_view kSchema = R"({"type":"object"})";

ToolSet SmallTools() {
  ToolSet tools;
  tools.tools.push_back({"f", json::parse(R"({"type": "object", "required": ["x"]})"), false});
  tools.tools.push_back({"g", nullptr, false});
  return tools;
}

class OutputGrammarTest : public ::testing::Test {
 protected:
  // The format inside the structural tag, and what it should be.
  static json::value Format(const OutputRules& rules) {
    const json::value tag = json::parse(MakeOutputGrammar(rules).structural_tag);
    EXPECT_EQ(tag.at("type").as_string(), "structural_tag");
    return tag.at("format");
  }
  void Use(std::string_view marks, const std::vector<std::string>& control = {}) {
    dialect_ = DialectOf(marks, control);
    rules_.dialect = &dialect_;
    rules_.tools = &tools_;
  }

  ToolSet tools_ = SmallTools();
  Dialect dialect_;
  OutputRules rules_;
};

TEST_F(OutputGrammarTest, ANamedCall) {
  Use("<tool_call>");
  rules_.calls = Calls::kRequired;
  rules_.only = "f";
  EXPECT_EQ(Format(rules_), json::parse(R"({"type": "sequence", "elements": [
      {"type": "const_string", "value": "<tool_call>\n{\"name\": \"f\", \"arguments\": "},
      {"type": "json_schema", "json_schema": {"type": "object", "required": ["x"]}},
      {"type": "const_string", "value": "}\n</tool_call>"}]})"));
  rules_.schemas = false;
  EXPECT_EQ(Format(rules_).at("elements").at(1).at("json_schema"), json::parse(kSchema));
}

TEST_F(OutputGrammarTest, AnyCallsAtLeastOne) {
  Use("[TOOL_CALLS]", {"[TOOL_CALLS]"});
  rules_.calls = Calls::kRequired;
  const json::value format = Format(rules_);
  const json::array& elements = format.at("elements").as_array();
  ASSERT_EQ(elements.size(), 5u);
  EXPECT_EQ(elements[0], json::parse(R"({"type": "token", "token": 256})"));
  EXPECT_EQ(elements[1], json::parse(R"({"type": "const_string", "value": "["})"));
  EXPECT_EQ(elements[2].at("type").as_string(), "or");
  EXPECT_EQ(elements[2].at("elements").as_array().size(), 2u);
  EXPECT_EQ(elements[3].at("type").as_string(), "star");
  EXPECT_EQ(elements[4], json::parse(R"({"type": "const_string", "value": "]"})"));
  rules_.parallel = false;
  EXPECT_EQ(Format(rules_).at("elements").as_array().size(), 4u);
}

TEST_F(OutputGrammarTest, FreeTextUntilACall) {
  Use("<tool_call>");
  rules_.calls = Calls::kAuto;
  json::value format = Format(rules_);
  EXPECT_EQ(format.at("type").as_string(), "dispatch");
  EXPECT_EQ(format.at("loop"), json::value(true));
  EXPECT_EQ(format.at("rules").at(0).at(0).as_string(), "<tool_call>");
  EXPECT_EQ(format.at("rules").at(0).at(1).at("elements").at(0).at("elements").at(0).at("value"),
            json::value("\n{\"name\": \"f\", \"arguments\": "));
  rules_.parallel = false;
  EXPECT_EQ(Format(rules_).at("loop"), json::value(false));
  Use("<tool_call>", {"<tool_call>", "</tool_call>"});
  format = Format(rules_);
  EXPECT_EQ(format.at("type").as_string(), "token_dispatch");
  EXPECT_EQ(format.at("rules").at(0).at(0), json::value(256));
}

TEST_F(OutputGrammarTest, ThoughtsComeFirst) {
  Use("<tool_call><think>");
  rules_.calls = Calls::kRequired;
  rules_.only = "g";
  rules_.reasoning = ReasoningStart::kOptional;
  json::value format = Format(rules_);
  EXPECT_EQ(format.at("elements").at(0).at("type").as_string(), "optional");
  EXPECT_EQ(format.at("elements").at(0).at("content").at("elements").at(0),
            json::parse(R"({"type": "tag", "begin": "<think>", "content": {"type": "any_text"},
                            "end": "</think>"})"));
  // An open thought that no one token ends.
  rules_.reasoning = ReasoningStart::kOpen;
  format = Format(rules_);
  EXPECT_EQ(format.at("elements").at(0).at("elements").at(0).at("begin").as_string(), "");
  EXPECT_EQ(MakeOutputGrammar(rules_).begin_after, -1);
  // And one that a token ends: the grammar holds behind it.
  Use("<tool_call><think>", {"<think>", "</think>"});
  EXPECT_EQ(MakeOutputGrammar(rules_).begin_after, 257);
  format = Format(rules_);
  EXPECT_EQ(format.at("elements").at(0).at("type").as_string(), "regex");
  rules_.reasoning = ReasoningStart::kOptional;
  format = Format(rules_);
  EXPECT_EQ(format.at("elements").at(0).at("content").at("elements").at(0),
            json::parse(R"({"type": "tag", "begin": {"type": "token", "token": 256},
                            "content": {"type": "any_tokens"},
                            "end": {"type": "token", "token": 257}})"));
}

TEST_F(OutputGrammarTest, ContentOfAForm) {
  Use("<tool_call>");
  const json::value content = json::parse(R"({"type": "json_schema", "json_schema": true})");
  rules_.content = &content;
  rules_.calls = Calls::kNone;
  EXPECT_EQ(Format(rules_), content);
  rules_.calls = Calls::kAuto;
  const json::value format = Format(rules_);
  EXPECT_EQ(format.at("type").as_string(), "or");
  EXPECT_EQ(format.at("elements").at(1), content);
}

TEST_F(OutputGrammarTest, Harmony) {
  Use("<|channel|><|message|>",
      {"<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|constrain|>", "<|call|>"});
  rules_.calls = Calls::kRequired;
  rules_.only = "g";
  const json::value format = Format(rules_);
  EXPECT_EQ(format.at("elements").at(0).at("type").as_string(), "star");
  EXPECT_EQ(format.at("elements").at(1), json::parse(R"({"type": "sequence", "elements": [
      {"type": "token", "token": 256},
      {"type": "const_string", "value": "commentary to=functions.g "},
      {"type": "token", "token": 260}, {"type": "const_string", "value": "json"},
      {"type": "token", "token": 257},
      {"type": "json_schema", "json_schema": {"type": "object"}}]})"));
}

// `{"city": "G"}` in each style of arguments.
const std::map<std::string_view, std::string_view> kArguments = {
    {"json", R"({"city": "G"})"},
    {"qwen_xml", "<parameter=city>\nG\n</parameter>"},
    {"glm_xml", "<arg_key>city</arg_key>\n<arg_value>G</arg_value>"},
    {"gemma", "{city:<|\"|>G<|\"|>}"},
    {"minimax_xml", "<parameter name=\"city\">G</parameter>"},
    {"deepseek_xml", "<｜DSML｜parameter name=\"city\" string=\"true\">G</｜DSML｜parameter>"},
};

// What a grammar has written is read as the call that it is, in every format.
TEST_F(OutputGrammarTest, EverySpellingIsReadBack) {
  for (const ToolFormat& format : ToolFormats()) {
    if (format.shape == CallShape::kHarmony) continue;
    SCOPED_TRACE(format.name);
    const auto written = [&](std::string_view arguments) {
      std::string begin(format.spelling.call_begin);
      begin.replace(begin.find('@'), 1, "weather");
      return begin + std::string(arguments) + std::string(format.spelling.call_end);
    };
    const auto styled = kArguments.find(format.spelling.style);
    ASSERT_NE(styled, kArguments.end());
    const std::string_view arguments = styled->second;
    const std::string text = std::string(format.spelling.section_begin) + written(arguments) +
                             std::string(format.spelling.separator) + written(arguments) +
                             std::string(format.spelling.section_end);
    const std::string marks =
        std::string(format.template_marks[0]) + " " + std::string(format.template_marks[1]);
    const Told told = Parse(DialectOf(marks), text);
    const Told::Call call = {"weather", "{\"city\": \"G\"}"};
    EXPECT_THAT(told.calls, ::testing::ElementsAre(call, call)) << text;
    EXPECT_EQ(told.content, "");
  }
}

}  // namespace
}  // namespace vivace::dialect
