#include "grammar/json_schema.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <string>

#include "grammar/grammar_testing.h"

namespace vivace::grammar {
namespace {

using testing::Compiled;
using ::testing::HasSubstr;
using testing::JsonTokenizer;
using testing::kLogits;
using testing::Parse;
using testing::RandomWalk;
using testing::Schema;
using Value = boost::json::value;

// Walks through a schema's grammar; every output is JSON, ends, and is valid by `check`.
void EveryOutput(const std::string& schema, const std::function<bool(const Value&)>& check,
                 int seeds = 6, std::initializer_list<int> favours = {-1}) {
  const auto grammar = Compiled(Schema(schema));
  ASSERT_NE(grammar, nullptr);
  for (const int favour : favours) {
    for (int seed = 0; seed < seeds; ++seed) {
      const auto walk = RandomWalk(*grammar, *JsonTokenizer(), kLogits, static_cast<uint64_t>(seed),
                                   60 + grammar->shortest_tokens(), favour);
      EXPECT_TRUE(walk.ended) << schema << " -> " << walk.text;
      const auto value = Parse(walk.text);
      ASSERT_TRUE(value) << schema << " -> " << walk.text;
      EXPECT_TRUE(check(*value)) << schema << " -> " << walk.text;
    }
  }
}

std::string Wrapped(const std::string& inner) {
  return R"({"type":"object","properties":{"v":)" + inner +
         R"(},"required":["v"],"additionalProperties":false})";
}

TEST(JsonSchema, ConstantsAreWrittenExactly) {  // bug case 4.1
  const std::string constants[] = {
      R"("a\"b")", R"("c\\d")",  R"("e\nf")", R"("\t")",     R"("/x/y")",  "\"é😀\"",
      R"("]}")",   R"("%s{0}")", R"("true")", R"("\u2028")", R"("")",      "0",
      "-1.5",      "null",       "false",     "[1,[]]",      R"({"k":""})"};
  for (const std::string& constant : constants) {
    for (const std::string& schema :
         {Wrapped("{\"const\":" + constant + "}"), Wrapped("{\"enum\":[" + constant + "]}")}) {
      EveryOutput(
          schema, [&](const Value& value) { return value.at("v") == *Parse(constant); }, 2);
    }
  }
}

TEST(JsonSchema, WholeNumbersKeepTheirRange) {  // bug case 4.2
  struct Case {
    const char* schema;
    int64_t low, high;
  };
  for (const Case& c : std::initializer_list<Case>{
           {R"({"type":"integer","minimum":7,"maximum":7})", 7, 7},
           {R"({"type":"integer","minimum":-5,"maximum":-5})", -5, -5},
           {R"({"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":2})", 1, 1},
           {R"({"type":"integer","minimum":-1,"maximum":1})", -1, 1},
           {R"({"type":"integer","minimum":99,"maximum":101})", 99, 101},
           {R"({"type":"integer","minimum":10,"maximum":1000})", 10, 1000},
           {R"({"type":"integer","minimum":-123,"maximum":4567})", -123, 4567},
           {R"({"type":"integer","minimum":0.5,"maximum":2.5})", 1, 2},
           {R"({"type":"integer","minimum":8})", 8, INT64_MAX},
           {R"({"type":"integer","exclusiveMaximum":-8})", INT64_MIN, -9},
           {R"({"type":"integer"})", INT64_MIN, INT64_MAX},
           // Beyond 2^53, where not every whole number is a double.
           {R"({"type":"integer","minimum":9007199254740993,"maximum":9007199254740993})",
            9007199254740993, 9007199254740993},
           {R"({"type":"integer","exclusiveMinimum":-9007199254740994,
               "exclusiveMaximum":-9007199254740992})",
            -9007199254740993, -9007199254740993},
           {R"({"type":"integer","multipleOf":2.0,"minimum":9007199254740993,
               "maximum":9007199254740995})",
            9007199254740994, 9007199254740994},
           {R"({"type":"integer","minimum":999999999999999999,"maximum":9223372036854775807})",
            999999999999999999, 999999999999999999},
           {R"({"enum":[9007199254740992,9007199254740993,9007199254740994],
               "exclusiveMinimum":9007199254740992,"maximum":9007199254740993})",
            9007199254740993, 9007199254740993},
           {R"({"type":"integer","format":"int32"})", -2147483647, 2147483647}}) {
    EveryOutput(Wrapped(c.schema),
                [&](const Value& value) {
                  const Value& v = value.at("v");
                  return v.is_int64() && v.get_int64() >= c.low && v.get_int64() <= c.high;
                },
                10, {-1, '0', '-', '9'});
  }
}

TEST(JsonSchema, NumbersKeepTheirRange) {
  struct Case {
    const char* schema;
    double low, high;
    bool open_low = false, open_high = false;
  };
  for (const Case& c : std::initializer_list<Case>{
           {R"({"type":"number","minimum":0.25,"maximum":0.25})", 0.25, 0.25},
           {R"({"type":"number","exclusiveMinimum":0,"maximum":0.5})", 0, 0.5, true},
           {R"({"type":"number","minimum":-1.5,"exclusiveMaximum":2.75})", -1.5, 2.75, false, true},
           {R"({"type":"number","minimum":1e-7,"maximum":3e-7})", 1e-7, 3e-7},
           {R"({"type":"number","minimum":9.99,"maximum":10.01})", 9.99, 10.01},
           {R"({"type":"number","exclusiveMinimum":99})", 99, HUGE_VAL, true},
           {R"({"type":"number","exclusiveMinimum":99.99,"exclusiveMaximum":100})", 99.99, 100,
            true, true},
           {R"({"type":"number","minimum":0,"exclusiveMaximum":123456})", 0, 123456, false, true},
           {R"({"type":"number","maximum":-0.5})", -HUGE_VAL, -0.5},
           {R"({"type":"number"})", -HUGE_VAL, HUGE_VAL}}) {
    EveryOutput(Wrapped(c.schema),
                [&](const Value& value) {
                  const double v = value.at("v").to_number<double>();
                  return std::isfinite(v) && v >= c.low && v <= c.high &&
                         (!c.open_low || v > c.low) && (!c.open_high || v < c.high);
                },
                12, {-1, '0', '-', '9', '.'});
  }
}

TEST(JsonSchema, Multiples) {
  for (const char* schema : {R"({"type":"integer","multipleOf":7})",
                             R"({"type":"integer","multipleOf":7,"minimum":-20,"maximum":50})",
                             R"({"type":"number","multipleOf":7,"minimum":0,"maximum":700})"}) {
    EveryOutput(Wrapped(schema), [&](const Value& value) {
      const Value& v = value.at("v");
      // Without bounds it may be any number of digits.
      return v.is_int64() ? v.get_int64() % 7 == 0 : v.is_number();
    });
  }
}

TEST(JsonSchema, StringsKeepTheirLengths) {
  const auto length = [](const Value& value) {
    const std::string_view text = value.at("v").as_string();
    return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
  };
  EveryOutput(Wrapped(R"({"type":"string","minLength":3,"maxLength":5})"),
              [&](const Value& v) { return length(v) >= 3 && length(v) <= 5; }, 40,
              {-1, '\\', '"'});
  EveryOutput(Wrapped(R"({"type":"string","pattern":"^[ab\"]+$","minLength":2,"maxLength":4})"),
              [&](const Value& v) { return length(v) >= 2 && length(v) <= 4; }, 20, {-1, '"'});
  EveryOutput(
      Wrapped(R"({"type":"string","minLength":300,"maxLength":310})"),
      [&](const Value& v) { return length(v) >= 300 && length(v) <= 310; }, 3);
}

TEST(JsonSchema, FormatsAreWritten) {
  const auto text = [](const Value& value) { return std::string(value.at("v").as_string()); };
  EveryOutput(Wrapped(R"({"type":"string","format":"date"})"), [&](const Value& v) {
    int year = 0, month = 0, day = 0;
    return std::sscanf(text(v).c_str(), "%4d-%2d-%2d", &year, &month, &day) == 3 && month >= 1 &&
           month <= 12 && day >= 1 && day <= (month == 2 ? 28 : 31) && text(v).size() == 10;
  });
  EveryOutput(Wrapped(R"({"type":"string","format":"uuid"})"),
              [&](const Value& v) { return text(v).size() == 36 && text(v)[8] == '-'; });
  for (const char* format :
       {"date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri"}) {
    EveryOutput(
        Wrapped(R"({"type":"string","format":")" + std::string(format) + "\"}"),
        [&](const Value& v) { return !text(v).empty(); }, 4);
  }
}

TEST(JsonSchema, MembersKeepOrderAndCommas) {  // bug case 4.4
  const char* properties = R"("properties":{"z":{"type":"boolean"},"b":{"type":"boolean"},)"
                           R"("a":{"type":"boolean"}},"additionalProperties":false)";
  EveryOutput("{\"type\":\"object\"," + std::string(properties) + R"(,"required":["b"]})",
              [](const Value& v) {
                for (const auto& member : v.as_object()) {
                  if (!member.value().is_bool()) return false;
                }
                return v.as_object().contains("b");
              },
              20, {-1, '}', ','});
  EveryOutput("{\"type\":\"object\"," + std::string(properties) + R"(,"required":["a","b","z"]})",
              [](const Value& v) {
                std::string names;
                for (const auto& member : v.as_object()) names += member.key();
                return names == "zba";
              });
  for (const char* schema : {R"({"type":"object","properties":{},"additionalProperties":false})",
                             R"({"type":"object","properties":{}})"}) {
    EveryOutput(schema, [](const Value& v) { return v.as_object().empty(); });
  }
}

TEST(JsonSchema, OtherMembers) {
  EveryOutput(R"({"type":"object","properties":{"name":{"type":"integer"},"na":{"type":"null"}},
                  "additionalProperties":{"type":"boolean"},"required":["name"]})",
              [](const Value& value) {
                for (const auto& member : value.as_object()) {
                  const bool fits = member.key() == "name" ? member.value().is_int64()
                                    : member.key() == "na" ? member.value().is_null()
                                                           : member.value().is_bool();
                  if (!fits) return false;
                }
                return value.as_object().contains("name");
              },
              40, {-1, 'n', ','});
  EveryOutput(R"({"type":"object","patternProperties":{"^k[0-9]$":{"type":"boolean"}}})",
              [](const Value& value) {
                for (const auto& member : value.as_object()) {
                  if (member.key().size() != 2 || member.key()[0] != 'k') return false;
                }
                return true;
              });
  EveryOutput(R"({"type":"object","propertyNames":{"pattern":"^[ab]{2}$"},"minProperties":1,
                  "additionalProperties":{"type":"null"}})",
              [](const Value& v) { return !v.as_object().empty(); });
  EveryOutput(R"({"type":"object","required":["x"]})",
              [](const Value& v) { return v.as_object().contains("x"); });
  EveryOutput(R"({"type":"object","properties":{"a":{},"b":{},"c":{}},"minProperties":2,
                  "maxProperties":2})",
              [](const Value& v) { return v.as_object().size() == 2; });
}

TEST(JsonSchema, Arrays) {
  const auto size = [](const Value& value) { return value.as_array().size(); };
  EveryOutput(R"({"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":3})",
              [&](const Value& v) { return size(v) >= 2 && size(v) <= 3; }, 30, {-1, ',', ']'});
  EveryOutput(R"({"type":"array","items":{"type":"string"},"minItems":2,"maxItems":3})",
              [&](const Value& v) { return size(v) >= 2 && size(v) <= 3; }, 30,
              {-1, ',', ']', '"'});
  EveryOutput(R"({"type":"array","items":{"type":"array","items":{"type":"integer"},"minItems":1},
                  "minItems":20,"maxItems":40})",
              [&](const Value& v) { return size(v) >= 20 && size(v) <= 40; }, 10, {-1, ',', ']'});
  EveryOutput(R"({"type":"array","prefixItems":[{"type":"boolean"},{"type":"null"}],
                  "items":{"const":1},"minItems":1,"maxItems":4})",
              [&](const Value& v) {
                return size(v) >= 1 && size(v) <= 4 && v.at(0).is_bool() &&
                       (size(v) < 2 || v.at(1).is_null()) && (size(v) < 3 || v.at(2) == 1);
              },
              30, {-1, ','});
  EveryOutput(R"({"type":"array","maxItems":0})", [&](const Value& v) { return size(v) == 0; });
  EveryOutput(R"({"type":"array"})", [&](const Value& v) { return v.is_array(); });
}

TEST(JsonSchema, CombinationsHoldTogether) {
  EveryOutput(R"({"anyOf":[{"type":"string","maxLength":3},{"type":"integer","minimum":5}]})",
              [](const Value& v) {
                return v.is_string() ? v.as_string().size() <= 12 : v.as_int64() >= 5;
              });
  EveryOutput(R"({"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},
                  "required":["a"]},{"properties":{"b":{"type":"boolean"},"a":{"minimum":3}},
                  "required":["b"]}]})",
              [](const Value& v) { return v.at("a").as_int64() >= 3 && v.at("b").is_bool(); });
  EveryOutput(R"({"type":"object","oneOf":[
                  {"properties":{"kind":{"const":"x"},"n":{"type":"integer"}},"required":["kind","n"]},
                  {"properties":{"kind":{"const":"y"}},"required":["kind"]}]})",
              [](const Value& v) { return v.at("kind") == "y" || v.at("n").is_int64(); });
  EveryOutput(
      R"({"$defs":{"pos":{"type":"integer","minimum":1}},"type":"object",
                  "properties":{"a":{"$ref":"#/$defs/pos","maximum":9}},"required":["a"]})",
      [](const Value& v) { return v.at("a").as_int64() >= 1 && v.at("a").as_int64() <= 9; });
  EveryOutput(R"({"type":["string","null"],"enum":["a",null,3]})",
              [](const Value& v) { return v == "a" || v.is_null(); });
  EveryOutput(R"({"type":"integer","nullable":true,"minimum":1,"maximum":1})",
              [](const Value& v) { return v.is_null() || v == 1; });
}

TEST(JsonSchema, RecursionEnds) {
  const std::function<bool(const Value&)> tree = [&](const Value& v) {
    if (!v.at("v").is_bool()) return false;
    for (const Value& child : v.at("next").as_array()) {
      if (!tree(child)) return false;
    }
    return true;
  };
  EveryOutput(R"({"type":"object","properties":{"v":{"type":"boolean"},
                  "next":{"type":"array","items":{"$ref":"#"}}},"required":["v","next"]})",
              tree, 20, {-1, '[', ','});
}

TEST(JsonSchema, AnythingIsStrictJson) {
  EveryOutput("{}", [](const Value&) { return true; }, 40, {-1, '{', '[', '"', '\\', '-'});
  const auto object = Compiled({});
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto walk = RandomWalk(*object, *JsonTokenizer(), kLogits, seed, 40, "{\"["[seed % 3]);
    const auto value = Parse(walk.text);
    ASSERT_TRUE(value) << walk.text;
    EXPECT_TRUE(value->is_object());
  }
}

TEST(JsonSchema, WhatCannotBeEnforcedIsRefusedByName) {
  struct Case {
    const char* schema;
    const char* says;
  };
  for (const Case& c : std::initializer_list<Case>{
           {R"({"type":"strin"})", "no type"},
           {R"({"enum":[]})", "/enum"},
           {R"({"type":"integer","minimum":5,"maximum":4})", "minimum"},
           {R"({"type":"string","pattern":"foo**"})", "/pattern"},
           {R"({"type":"string","pattern":"("})", "/pattern"},
           {R"({"$ref":"#/$defs/nope"})", "#/$defs/nope"},
           {R"({"$ref":"http://127.0.0.1:9/s.json"})", "not in this schema"},
           {R"("notobject")", "a schema is an object"},
           {R"({"type":"array","minItems":3,"maxItems":2})", "minItems"},
           {R"({"properties":{"a":{"not":{}}}})", "/properties/a/not"},
           {R"({"if":{},"then":{}})", "/if"},
           {R"({"type":"array","uniqueItems":true})", "/uniqueItems"},
           {R"({"type":"array","contains":{}})", "/contains"},
           {R"({"dependentRequired":{}})", "/dependentRequired"},
           {R"({"type":"string","minLenght":3})", "/minLenght"},
           {R"({"type":"string","format":"credit-card"})", "/format"},
           {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "/oneOf"},
           {R"({"type":"number","multipleOf":0.01})", "/multipleOf"},
           {R"({"type":"integer","minimum":9007199254740993.0})", "/minimum"},
           {R"({"type":"integer","exclusiveMaximum":-1e17})", "/exclusiveMaximum"},
           {R"({"allOf":[{"const":9007199254740992},{"const":9007199254740993}]})", "no value"},
           {R"({"type":"number","multipleOf":0})", "/multipleOf"},
           {R"({"$ref":"#"})", "refers to itself"},
           {R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", "never ends"},
           {R"({"type":"object","properties":{"a":false},"required":["a"]})", "required"},
           {R"({"type":"object","required":["a"],"additionalProperties":false})", "'a'"},
           {R"({"type":"array","minItems":1000000000})", "items"},
           {R"({"type":"array","minItems":900000})", "shortest"},
           {R"({"type":"string","minLength":1e9})", "lengths"},
           {R"({"type":"string","pattern":"a{1000000000}"})", "/pattern"},
           {R"(false)", "no value"},
           {R"({"allOf":[{"type":"string"},{"type":"integer"}]})", "no value"},
           {R"({"type":"string","enum":[1]})", "no value"},
           {R"({"type":"object","minProperties":3,"maxProperties":2})", "minProperties"},
           {"{", "not JSON"}}) {
    const auto refused = testing::InProcess().Compile(Schema(c.schema));
    ASSERT_FALSE(refused) << c.schema;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().field, "response_format");
    EXPECT_THAT(refused.error().message, HasSubstr(c.says)) << c.schema;
  }
}

TEST(JsonSchema, SizesAreBounded) {
  std::string deep, wide = R"({"type":"object","properties":{)";
  for (int i = 0; i < 1000; ++i) deep += R"({"type":"array","items":)";
  EXPECT_FALSE(SchemaToEbnf(deep + "{}" + std::string(1000, '}'), "f"));
  EXPECT_FALSE(SchemaToEbnf(std::string(limits::kMaxGrammarBytes, ' ') + "{}", "f"));
  // Alternatives that multiply.
  std::string product = "{}";
  for (int i = 0; i < 20; ++i) {
    product = R"({"allOf":[{"anyOf":[{"minLength":1},{"minLength":2}]},)" + product + "]}";
  }
  const auto refused = SchemaToEbnf(product, "f");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("multiply"));
}

}  // namespace
}  // namespace vivace::grammar
