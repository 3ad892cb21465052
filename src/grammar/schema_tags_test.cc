// Arguments in tags, written by walks and read back by the dialect they are for.
#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "grammar/grammar_testing.h"
#include "grammar/json_schema.h"
#include "text/dialect/dialect_testing.h"
#include "text/dialect/formats.h"

namespace vivace::grammar {
namespace {

using ::testing::HasSubstr;
using Value = boost::json::value;

constexpr const char* kStyles[] = {"qwen_xml", "glm_xml", "minimax_xml", "deepseek_xml"};

const dialect::ToolFormat& FormatOf(std::string_view style) {
  for (const auto& format : dialect::ToolFormats()) {
    if (format.spelling.style == style) return format;
  }
  ADD_FAILURE() << style;
  return dialect::ToolFormats()[0];
}

// What the dialect makes of arguments that were written so.
std::optional<Value> ReadBack(std::string_view style, const Value& schema,
                              const std::string& arguments) {
  const dialect::ToolFormat& format = FormatOf(style);
  auto tools = std::make_shared<dialect::ToolSet>();
  tools->tools.push_back({"f", schema, true});
  std::string begin(format.spelling.call_begin);
  begin.replace(begin.find('@'), 1, "f");
  const std::string text = std::string(format.spelling.section_begin) + begin + arguments +
                           std::string(format.spelling.call_end) +
                           std::string(format.spelling.section_end);
  const auto told = dialect::Parse(dialect::DialectOf(std::string(format.template_marks[0]) + " " +
                                                      std::string(format.template_marks[1])),
                                   text, 0, ReasoningStart::kOptional, tools);
  EXPECT_EQ(told.calls.size(), 1u) << text;
  if (told.calls.size() != 1) return std::nullopt;
  boost::json::error_code error;  // free text may be any bytes; an answer's are mended elsewhere
  auto value = boost::json::parse(told.calls[0].arguments, error, {},
                                  {.max_depth = 100, .allow_invalid_utf8 = true});
  return error ? std::nullopt : std::optional<Value>(std::move(value));
}

GrammarSpec Tag(std::string_view style, const std::string& schema) {
  return testing::Spec(GrammarSpec::Kind::kStructural,
                       fmt::format(R"({{"format":{{"type":"sequence","elements":[
                         {{"type":"json_schema","json_schema":{},"style":"{}"}},
                         {{"type":"const_string","value":"</call>"}}]}}}})",
                                   schema, style));
}

void EveryCall(const std::string& schema, const std::function<bool(const Value&)>& check,
               std::initializer_list<int> favours = {-1, '\n', '<', '1'}) {
  for (const char* style : kStyles) {
    const auto grammar = testing::Compiled(Tag(style, schema));
    ASSERT_NE(grammar, nullptr) << style;
    uint64_t seed = 0;
    for (const int favour : favours) {
      auto walk = testing::RandomWalk(*grammar, *testing::JsonTokenizer(), testing::kLogits, ++seed,
                                      40 + grammar->shortest_tokens(), favour);
      ASSERT_TRUE(walk.ended && walk.text.ends_with("</call>")) << style << walk.text;
      walk.text.resize(walk.text.size() - 7);
      const auto read = ReadBack(style, *testing::Parse(schema), walk.text);
      ASSERT_TRUE(read) << style << walk.text;
      EXPECT_TRUE(check(*read)) << style << ' ' << schema << " -> " << walk.text << " -> "
                                << boost::json::serialize(*read);
    }
  }
}

std::string Sole(const std::string& member) {
  return R"({"type":"object","properties":{"v":)" + member +
         R"(},"required":["v"],"$defs":{"few":{"type":"integer","minimum":3,"maximum":9},
            "word":{"type":"string","pattern":"^[0-9]{2,3}$"}}})";
}

TEST(SchemaTags, ValuesObeyTheirSchema) {
  const auto size = [](const Value& v) { return v.at("v").as_string().size(); };
  EveryCall(Sole(R"({"$ref":"#/$defs/few"})"),
            [](const Value& v) { return v.at("v").as_int64() >= 3 && v.at("v").as_int64() <= 9; });
  EveryCall(Sole(R"({"type":"number","multipleOf":5,"minimum":-10,"maximum":50})"),
            [](const Value& v) { return v.at("v").as_int64() % 5 == 0; });
  EveryCall(Sole(R"({"type":"string","minLength":3,"maxLength":5})"),
            [&](const Value& v) { return size(v) >= 3 && size(v) <= 20; });
  EveryCall(Sole(R"({"$ref":"#/$defs/word"})"), [&](const Value& v) {
    return size(v) >= 2 && size(v) <= 3 && v.at("v").as_string()[0] <= '9';
  });
  EveryCall(Sole(R"({"type":"string","format":"date"})"),
            [&](const Value& v) { return size(v) == 10; });
  EveryCall(Sole(R"({"enum":["a","12",12,null,"<b>"," c"]})"), [](const Value& v) {
    const Value& one = v.at("v");
    return one == "a" || one == "12" || one == 12 || one.is_null() || one == "<b>" || one == " c";
  });
  EveryCall(Sole(R"({"enum":["7",8,"x"]})"),
            [](const Value& v) { return v.at("v") == "7" || v.at("v") == 8 || v.at("v") == "x"; });
  EveryCall(Sole(R"({"anyOf":[{"type":"string"},{"type":"null"}]})"),
            [](const Value& v) { return v.at("v").is_string() || v.at("v").is_null(); });
  EveryCall(Sole(R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"boolean"},
                     "maxItems":2}]})"),
            [](const Value& v) {
              return v.at("v").is_string() ||
                     (v.at("v").as_array().size() <= 2 &&
                      (v.at("v").as_array().empty() || v.at("v").at(0).is_bool()));
            });
  EveryCall(Sole(R"({"type":"object","properties":{"s":{"type":"string","minLength":2}},
                     "required":["s"]})"),
            [](const Value& v) { return v.at("v").at("s").as_string().size() >= 2; });
  EveryCall(Sole("{}"), [](const Value& v) { return v.as_object().contains("v"); });
}

TEST(SchemaTags, Members) {
  EveryCall(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"boolean"}},
                "required":["b"],"allOf":[{"properties":{"a":{"maximum":0}}}]})",
            [](const Value& v) {
              const auto* a = v.as_object().if_contains("a");
              return v.at("b").is_bool() && (a == nullptr || a->as_int64() <= 0) &&
                     v.as_object().size() <= 2;
            });
  EveryCall(R"({"type":"object","properties":{}})",
            [](const Value& v) { return v.as_object().empty(); });
  EveryCall(R"({"type":"object"})", [](const Value& v) { return v.is_object(); });
  EveryCall(R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},
                "minProperties":1,"additionalProperties":true})",
            [](const Value& v) { return v.as_object().size() >= 1; });
}

TEST(SchemaTags, WhatCannotBeHeldToIsRefusedByName) {
  for (const auto& [schema, says] : std::initializer_list<std::pair<std::string, const char*>>{
           {R"({"const":{"a":1}})", "const"},
           {Sole(R"({"anyOf":[{"type":"string","maxLength":3},{"type":"integer","minimum":3}]})"),
            "lengths"},
           {Sole(R"({"type":"string","pattern":"^<$"})"), "'<'"},
           {R"({"type":"object","patternProperties":{"^a$":{}}})", "patternProperties"},
           {R"({"type":"object","additionalProperties":{"type":"integer"}})", "of a type"},
           {R"({"type":"object","properties":{"a>":{}}})", "'a>'"},
           {R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"n":{"type":
               "integer"}}}}})",
            "'n'"},
           {R"({"allOf":[{"type":"object","properties":{"n":{"enum":[1]}}}]})", "'n'"},
           {R"({"type":"array"})", "no arguments"}}) {
    const auto refused = SchemaToTags(*testing::Parse(schema), "qwen_xml", "f");
    ASSERT_FALSE(refused) << schema;
    EXPECT_EQ(refused.error().field, "f");
    EXPECT_THAT(refused.error().message, HasSubstr(says));
  }
}

}  // namespace
}  // namespace vivace::grammar
