// Schemas that combine: what is proven of them, what they shut, and how much stack that takes.
#include "grammar/schema_shape.h"

#include <gmock/gmock.h>
#include <pthread.h>

#include <functional>
#include <string>

#include "grammar/grammar_testing.h"
#include "grammar/json_schema.h"
#include "grammar/pattern.h"

namespace vivace::grammar {
namespace {

using ::testing::HasSubstr;
using Value = boost::json::value;

// Runs `work` on a thread with a megabyte of stack: an eighth of what most have.
void OnSmallStack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 1 << 20), 0);
  pthread_t thread = {};
  const auto run = [](void* what) -> void* {
    (*static_cast<std::function<void()>*>(what))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

// Empty: it is taken; otherwise why it is refused.
std::string Verdict(const std::string& schema) {
  std::string verdict;
  OnSmallStack([&] {
    if (const auto written = SchemaToEbnf(schema, "f"); !written) verdict = written.error().message;
  });
  return verdict;
}

// Every output of a walk is valid by `check`.
void Outputs(const std::string& schema, const std::function<bool(const Value&)>& check) {
  const auto grammar = testing::Compiled(testing::Schema(schema));
  ASSERT_NE(grammar, nullptr);
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const auto walk =
        testing::RandomWalk(*grammar, *testing::JsonTokenizer(), testing::kLogits, seed,
                            60 + grammar->shortest_tokens(), seed % 3 == 0 ? ',' : -1);
    const auto value = testing::Parse(walk.text);
    ASSERT_TRUE(value) << schema << " -> " << walk.text;
    EXPECT_TRUE(check(*value)) << schema << " -> " << walk.text;
  }
}

bool HasOnly(const Value& value, std::string_view names) {
  for (const auto& member : value.as_object()) {
    if (names.find(member.key()) == std::string_view::npos) return false;
  }
  return true;
}

// A union whose options have a member that is the union again, as pydantic writes it; `tag` tells
// them apart.
std::string RecursiveUnion(std::string_view tag, std::string_view child) {
  const auto option = [&](std::string_view value) {
    return fmt::format(R"({{"type":"object","properties":{{"child":{},"{}":{{"const":"{}"}}}},
                           "required":["child","{}"]}})",
                       child, tag, value, tag);
  };
  return fmt::format(R"({{"oneOf":[{{"$ref":"#/$defs/A"}},{{"$ref":"#/$defs/B"}},{{"type":"null"}}],
                          "$defs":{{"A":{},"B":{}}}}})",
                     option("a"), option("b"));
}

TEST(SchemaShape, ProofsOfRecursiveUnionsEnd) {
  const std::string_view again =
      R"({"oneOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"},{"type":"null"}]})";
  for (const char* tag : {"type", "a_tag"}) {  // behind `child` and before it
    EXPECT_EQ(Verdict(RecursiveUnion(tag, again)), "");
    EXPECT_EQ(Verdict(RecursiveUnion(tag, R"({"$ref":"#"})")), "");
  }
  Outputs(RecursiveUnion("type", again),
          [](const Value& v) { return v.is_null() || v.at("type") == "a" || v.at("type") == "b"; });
  // Nothing tells the options apart, however far one looks.
  const std::string alike =
      R"({"oneOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}],"$defs":{
          "A":{"type":"object","properties":{"child":{"$ref":"#"}},"required":["child"]},
          "B":{"type":"object","properties":{"child":{"$ref":"#"}},"required":["child"]}}})";
  EXPECT_THAT(Verdict(alike), HasSubstr("at once"));
  // By a member of a member.
  EXPECT_EQ(Verdict(R"({"oneOf":[
      {"type":"object","properties":{"head":{"$ref":"#/$defs/A"}},"required":["head"]},
      {"type":"object","properties":{"head":{"$ref":"#/$defs/B"}},"required":["head"]}],"$defs":{
      "A":{"type":"object","properties":{"t":{"enum":[1,2]}},"required":["t"]},
      "B":{"type":"object","properties":{"t":{"enum":[3,4]}},"required":["t"]}}})"),
            "");
}

TEST(SchemaShape, ProofsReadMembersThatReferToWhatIsOpen) {
  Outputs(R"({"oneOf":[
      {"type":"object","properties":{"child":{"$ref":"#"},"type":{"enum":["a","A"]}},
       "required":["child","type"]},
      {"type":"object","properties":{"child":{"$ref":"#"},"type":{"enum":["b","B"]}},
       "required":["child","type"]},
      {"type":"null"}]})",
          [](const Value& v) { return v.is_null() || v.as_object().size() == 2; });
}

TEST(SchemaShape, AProofDoesNotTakeAPatternForAShutDoor) {
  EXPECT_THAT(Verdict(R"({"oneOf":[
      {"type":"object","patternProperties":{"^k$":{}},"additionalProperties":false},
      {"type":"object","properties":{"k":{}},"required":["k"]}]})"),
              HasSubstr("at once"));
}

TEST(SchemaShape, ProofsAreBounded) {
  std::string names, options, values = "0";
  for (int i = 0; i < 2000; ++i) names += fmt::format(R"("n{}",)", i);
  for (int i = 0; i < 100; ++i) {
    options += fmt::format(R"({{"$ref":"#/$defs/d","title":"{}"}},)", i);
  }
  EXPECT_NE(Verdict(R"({"oneOf":[)" + options + R"({"type":"null"}],"$defs":{"d":{"required":[)" +
                    names + R"("k"]}}})"),
            "");
  for (int i = 1; i < 20'000; ++i) values += fmt::format(",{}", i);
  const std::string list = R"({"enum":[)" + values + "]}";
  EXPECT_NE(Verdict(R"({"oneOf":[)" + list + "," + list + "]}"), "");
  EXPECT_THAT(Verdict(R"({"allOf":[)" + list + "," + list + "]}"), HasSubstr("too long"));
}

TEST(SchemaShape, ChainsTakeLittleStack) {
  std::string refs = R"({"$ref":"#/$defs/d0","$defs":{)", options = "{}", nested = "{}";
  for (int i = 0; i < 7000; ++i) {
    refs += fmt::format(R"("d{}":{{"$ref":"#/$defs/d{}"}},)", i, i + 1);
  }
  EXPECT_THAT(Verdict(refs + R"("d7000":{}}})"), HasSubstr("lead to each other"));
  // Through members that are proven apart, each by the next.
  std::string apart = R"({"oneOf":[{"$ref":"#/$defs/a0"},{"$ref":"#/$defs/b0"}],"$defs":{)";
  for (int i = 0; i < 1000; ++i) {
    for (const char name : {'a', 'b'}) {
      apart += fmt::format(
          R"("{}{}":{{"type":"object","required":["m"],"properties":{{"m":{{"oneOf":[
             {{"$ref":"#/$defs/a{}"}},{{"$ref":"#/$defs/b{}"}}]}}}}}},)",
          name, i, i + 1, i + 1);
    }
  }
  EXPECT_NE(Verdict(apart + R"("a1000":{},"b1000":{}}})"), "");
  for (int i = 0; i < 30; ++i) nested = R"({"allOf":[)" + nested + "]}";
  EXPECT_EQ(Verdict(nested), "");
  for (int i = 0; i < 63; ++i) options = R"({"type":"array","items":)" + options + "}";
  EXPECT_EQ(Verdict(options), "");
}

TEST(SchemaShape, PatternsTakeLittleStack) {
  for (const int depth : {60, 4000}) {
    for (const std::string_view end : {")", ")?", "|)*"}) {
      std::string pattern(static_cast<size_t>(depth), '(');
      for (int i = 0; i < depth; ++i) pattern += end;
      OnSmallStack([&] {
        const auto parsed = ParsePattern(pattern, "f");
        if (parsed) {
          EXPECT_FALSE(ToExpression(*parsed, Spelling::kRaw).empty());
        }
        EXPECT_EQ(parsed.has_value(), depth == 60);
      });
    }
  }
}

TEST(SchemaShape, UnevaluatedPropertiesShut) {
  const auto only = [](std::string_view names) {
    return [names](const Value& v) { return v.is_object() && HasOnly(v, names); };
  };
  Outputs(R"({"type":"object","unevaluatedProperties":false})", only(""));
  Outputs(R"({"type":"object","properties":{"a":{}},"unevaluatedProperties":false})", only("a"));
  Outputs(R"({"type":"object","allOf":[{"$ref":"#/$defs/base"},{"properties":{"b":{}}}],
              "unevaluatedProperties":false,"$defs":{"base":{"properties":{"a":{"type":"null"}}}}})",
          only("ab"));
  Outputs(
      R"({"type":"object","anyOf":[{"properties":{"a":{}},"required":["a"]},{"minProperties":0}],
              "unevaluatedProperties":false})",
      only("a"));
  Outputs(R"({"type":"object","additionalProperties":{"type":"null"},"minProperties":1,
              "unevaluatedProperties":false})",
          [](const Value& v) { return !v.as_object().empty(); });
  // What it shuts stays shut to schemas that come later.
  Outputs(R"({"type":"object","allOf":[{"unevaluatedProperties":false,"properties":{"a":{}}},
              {"properties":{"b":{}}}]})",
          only("a"));
  EXPECT_THAT(Verdict(R"({"type":"object","required":["a"],"unevaluatedProperties":false})"),
              HasSubstr("'a'"));
  EXPECT_THAT(Verdict(R"({"type":"object","properties":{"a":{}},
                          "allOf":[{"unevaluatedProperties":false}]})"),
              HasSubstr("unevaluatedProperties"));
  EXPECT_THAT(Verdict(R"({"unevaluatedProperties":{"type":"string"}})"),
              HasSubstr("/unevaluatedProperties"));
  EXPECT_EQ(Verdict(R"({"type":"object","unevaluatedProperties":true})"), "");
}

TEST(SchemaShape, UnevaluatedItemsShut) {
  Outputs(R"({"type":"array","unevaluatedItems":false})",
          [](const Value& v) { return v.as_array().empty(); });
  Outputs(
      R"({"type":"array","allOf":[{"prefixItems":[{"type":"null"}]}],"unevaluatedItems":false})",
      [](const Value& v) { return v.as_array().size() <= 1; });
  Outputs(R"({"type":"array","items":{"type":"null"},"minItems":2,"unevaluatedItems":false})",
          [](const Value& v) { return v.as_array().size() >= 2; });
  EXPECT_THAT(Verdict(R"({"type":"array","minItems":1,"unevaluatedItems":false})"),
              HasSubstr("no value"));
  EXPECT_THAT(Verdict(R"({"prefixItems":[{}],"allOf":[{"unevaluatedItems":false}]})"),
              HasSubstr("unevaluatedItems"));
}

TEST(SchemaShape, MembersOfAPatternHoldToOtherSchemas) {
  EXPECT_THAT(Verdict(R"({"type":"object","propertyNames":{"maxLength":2},
                          "patternProperties":{"^[a-z]{1,3}$":{}}})"),
              HasSubstr("propertyNames"));
  const std::string pattern = R"({"patternProperties":{"^[a-z]$":{}}})";
  for (const std::string_view rest : {"false", R"({"type":"null"})"}) {
    const std::string others = fmt::format(R"({{"additionalProperties":{}}})", rest);
    for (const auto& [one, other] : {std::pair(pattern, others), std::pair(others, pattern)}) {
      Outputs(R"({"type":"object","allOf":[)" + one + "," + other + "]}", [&](const Value& v) {
        for (const auto& member : v.as_object()) {
          if (rest == "false" || !member.value().is_null()) return false;
        }
        return true;
      });
    }
  }
  EXPECT_THAT(Verdict(R"({"type":"object","minProperties":1,"allOf":[)" + pattern +
                      R"(,{"additionalProperties":false}]})"),
              HasSubstr("no valid object"));
  EXPECT_EQ(Verdict(R"({"properties":{"a":{}},"patternProperties":{}})"), "");
}

}  // namespace
}  // namespace vivace::grammar
