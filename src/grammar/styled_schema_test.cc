#include "grammar/styled_schema.h"

#include <gmock/gmock.h>

#include "grammar/grammar_testing.h"

namespace vivace::grammar {
namespace {

using ::testing::HasSubstr;
using Value = boost::json::value;

GrammarSpec Tag(std::string_view style, std::string_view schema) {
  return testing::Spec(GrammarSpec::Kind::kStructural,
                       fmt::format(R"({{"format":{{"type":"sequence","elements":[
                         {{"type":"json_schema","json_schema":{},"style":"{}"}},
                         {{"type":"const_string","value":"</call>"}}]}}}})",
                                   schema, style));
}

constexpr const char* kStyles[] = {"gemma"};

TEST(StyledSchema, WhatTheConverterPassesOverIsRefusedByName) {
  struct Case {
    const char* member;
    const char* says;
  };
  for (const Case& c : std::initializer_list<Case>{
           {R"({"type":"number","multipleOf":5})", "/properties/n/multipleOf"},
           {R"({"type":"integer","multipleOf":5})", "/properties/n/multipleOf"},
           {R"({"minimum":5})", "/properties/n/minimum"},
           {R"({"type":"string","pattern":"^a+$","maxLength":3})", "/properties/n/maxLength"},
           {R"({"anyOf":[{"type":"integer"}],"maximum":3})", "/properties/n/maximum"},
           {R"({"allOf":[{"type":"integer"},{"minimum":3}]})", "/properties/n/allOf"},
           {R"({"type":"integer","nullable":true})", "/properties/n/nullable"},
           {R"({"type":"string","enum":["a",1]})", "/properties/n/type"},
           {R"({"$ref":"#/$defs/d","minimum":3})", "/properties/n/minimum"},
           {R"({"type":"object","minProperties":1})", "/properties/n/minProperties"},
           {R"({"type":"object","required":["x"]})", "'x'"},
           {R"({"type":"object","patternProperties":{"^a$":{}}})", "patternProperties"},
           {R"({"type":"array","unevaluatedItems":false})", "unevaluatedItems"}}) {
    for (const char* style : kStyles) {
      const auto refused = testing::InProcess().Compile(
          Tag(style, fmt::format(R"({{"type":"object","properties":{{"n":{}}},
                                      "$defs":{{"d":{{"type":"integer"}}}}}})",
                                 c.member)));
      ASSERT_FALSE(refused) << style << c.member;
      EXPECT_THAT(refused.error().message, HasSubstr(c.says));
      EXPECT_THAT(refused.error().message, HasSubstr(style));
    }
  }
  EXPECT_FALSE(testing::InProcess().Compile(
      Tag("gemma", R"({"type":"object","properties":{"s":{"type":"string","maxLength":3}}})")));
}

TEST(StyledSchema, TheRestIsTaken) {
  const std::string schema =
      R"({"type":"object","title":"t","properties":{"n":{"type":"number","minimum":1.5},
          "i":{"type":"integer","minimum":3,"maximum":9,"multipleOf":1},
          "e":{"type":"string","enum":["a","b"],"description":"d"},"r":{"$ref":"#/$defs/d"},
          "o":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null},
          "l":{"type":"array","items":{"type":"string"},"minItems":1},"f":{"type":"string",
          "format":"date"},"w":{"allOf":[{"$ref":"#/$defs/d"}]},"free":{}},"required":["n","e"],
          "$defs":{"d":{"type":"object","properties":{"x":{"const":1}},"required":["x"]}}})";
  for (const char* style : kStyles) EXPECT_TRUE(testing::Compiled(Tag(style, schema))) << style;
}

// A name that the schema gives comes once: beside others of any name, the converter let it come
// again, and the later one counts.
TEST(StyledSchema, NamedMembersShutTheDoor) {
  Value schema = *testing::Parse(
      R"({"type":"object","properties":{"a":{"type":"object","properties":{"b":{}}}},
          "additionalProperties":{"type":"integer"}})");
  ASSERT_TRUE(FitToStyle("gemma", "f", &schema));
  EXPECT_EQ(schema.at("additionalProperties"), false);
  EXPECT_EQ(schema.at("properties").at("a").at("additionalProperties"), false);
  Value open = *testing::Parse(R"({"type":"object","additionalProperties":{"type":"integer"}})");
  const Value before = open;
  ASSERT_TRUE(FitToStyle("gemma", "f", &open));
  EXPECT_EQ(open, before);
}

// The converter looks at no type beside these.
TEST(StyledSchema, ATypeOfTheWholeThatTheRestSaysIsTaken) {
  const std::string defs = R"("$defs":{"o":{"type":"object","properties":{"x":{}}},"s":{"type":)"
                           R"("string"}},"type":"object"})";
  for (const char* said : {R"({"$ref":"#/$defs/o",)", R"({"anyOf":[{"$ref":"#/$defs/o"}],)",
                           R"({"allOf":[{"type":"object"}],)"}) {
    Value schema = *testing::Parse(said + defs);
    EXPECT_TRUE(FitToStyle("gemma", "f", &schema)) << said;
    EXPECT_FALSE(schema.as_object().contains("type")) << said;
  }
  for (const char* not_said : {R"({"$ref":"#/$defs/s",)", R"({"anyOf":[{"$ref":"#/$defs/o"},{}],)",
                               R"({"oneOf":[{"$ref":"#/$defs/o"},{"$ref":"#/$defs/s"}],)"}) {
    Value schema = *testing::Parse(not_said + defs);
    EXPECT_FALSE(FitToStyle("gemma", "f", &schema)) << not_said;
  }
}

// Definitions that nothing leads to have not been read.
TEST(StyledSchema, MalformedDefinitionsDoNoHarm) {
  for (const char* unused : {R"({"required":1})", R"({"required":[1]})", R"({"enum":1,"type":2})",
                             R"({"allOf":1})", "3", R"({"properties":[]})"}) {
    static_cast<void>(testing::InProcess().Compile(
        Tag("gemma", fmt::format(R"({{"type":"object","$defs":{{"d":{}}}}})", unused))));
  }
}

}  // namespace
}  // namespace vivace::grammar
