// Walks the whole table: every row is read at its limits and one past them, with a wrong type, with
// null, under its alias; nothing is neither honoured nor refused nor reported.
#include "server/params/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

#include "base/limits.h"
#include "server/params/readers.h"
#include "support/paths.h"

namespace vivace::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kVocab = 1000;
constexpr Endpoint kEndpoints[] = {kChat,     kCompletions, kTokenize,   kDetokenize, kResponses,
                                   kMessages, kCountTokens, kEmbeddings, kRerank,     kScore};

json::object MinimalBody(Endpoint endpoint) {
  switch (endpoint) {
    case kChat:
    case kCountTokens:
      return {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
    case kMessages:
      return {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"max_tokens", 8}};
    case kResponses:
      return {{"input", "Hi"}};
    case kDetokenize:
      return {{"tokens", {1}}};
    case kEmbeddings:
      return {{"input", "x"}};
    case kRerank:
      return {{"query", "x"}, {"documents", {"y", "z"}}};
    case kScore:
      return {{"text_1", "x"}, {"text_2", {"y", "z"}}};
    default:
      return {{"prompt", "x"}};
  }
}

Result<RequestParams> Parse(Endpoint endpoint, json::object extra) {
  json::object body = MinimalBody(endpoint);
  for (auto& member : extra) body[member.key()] = member.value();
  const json::value value = std::move(body);
  auto params = ParseParams(value, {endpoint, kVocab});
  if (params) params->messages = params->tools = nullptr;  // the document ends here
  return params;
}

Status Read(const ParamRow& row, const json::value& value, RequestParams* params) {
  for (const Endpoint endpoint : kEndpoints) {
    if (row.endpoints & endpoint) {
      params->endpoint = endpoint;
      return ReadParam(row, row.name, value, {endpoint, kVocab}, params);
    }
  }
  ADD_FAILURE() << row.name << " belongs to no endpoint";
  return {};
}

bool Reads(const ParamRow& row, const json::value& value) {
  RequestParams params;
  const Status status = Read(row, value, &params);
  if (!status) {
    EXPECT_TRUE(status.error().field.starts_with(row.name)) << status.error().field;
    EXPECT_THAT(status.error().message, HasSubstr(std::string(row.name)));
  }
  return status.has_value();
}

TEST(ParamTable, NamesAreUniqueAtEachEndpoint) {
  for (const Endpoint endpoint : kEndpoints) {
    std::set<std::string_view> names;
    for (const ParamRow& row : ParamTable()) {
      if ((row.endpoints & endpoint) == 0) continue;
      EXPECT_TRUE(names.insert(row.name).second) << row.name;
      if (!row.alias.empty()) {
        EXPECT_TRUE(names.insert(row.alias).second) << row.alias;
      }
      EXPECT_EQ(FindParam(row.name, endpoint), &row);
    }
  }
}

TEST(ParamTable, IntegersAtAndPastTheirLimits) {
  int walked = 0;
  for (const ParamRow& row : ParamTable()) {
    const auto* field = std::get_if<IntField>(&row.field);
    if (field == nullptr) continue;
    walked += 1;
    EXPECT_TRUE(Reads(row, field->min)) << row.name;
    EXPECT_TRUE(Reads(row, field->max)) << row.name;
    EXPECT_FALSE(Reads(row, static_cast<uint64_t>(field->max) + 1)) << row.name;
    if (field->min > INT64_MIN) {
      EXPECT_FALSE(Reads(row, field->min - 1)) << row.name;
    }
    EXPECT_TRUE(Reads(row, std::max(static_cast<double>(field->min), -0x1p62)))
        << row.name << ": 2.0 is an integer";
    for (const json::value& wrong : {json::value("4"), json::value(1.5), json::value(1e30),
                                     json::value(true), json::value(json::array{1})}) {
      EXPECT_FALSE(Reads(row, wrong)) << row.name << ' ' << wrong;
    }
  }
  EXPECT_GT(walked, 8);
}

TEST(ParamTable, IntegersHoweverTheyAreWritten) {
  const auto params = Parse(
      kCompletions,
      json::parse(R"({"prompt":[1.0,2e0],"max_tokens":3.0,"seed":1e15,"top_k":-1.0})").as_object());
  ASSERT_TRUE(params) << params.error().message;
  EXPECT_EQ(std::get<std::vector<TokenId>>(params->prompts.at(0)), (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(params->max_tokens, 3);
  EXPECT_EQ(params->sampling.seed, 1'000'000'000'000'000);
  const auto fraction = Parse(kChat, {{"max_tokens", 2.5}});
  ASSERT_FALSE(fraction);
  EXPECT_THAT(fraction.error().message, HasSubstr("an integer, not a number with a fraction"));
  const auto text = Parse(kChat, {{"cache_salt", 2.0}});
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("a string, not an integer"));
}

TEST(ParamTable, AContinuedMessageHasNoGenerationPrompt) {
  const json::array messages = {{{"role", "user"}, {"content", "a"}}};
  const json::object both = {
      {"messages", messages}, {"continue_final_message", true}, {"add_generation_prompt", true}};
  const auto refused = Parse(kChat, both);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "add_generation_prompt");
  for (const char* other : {"continue_final_message", "add_generation_prompt"}) {
    json::object one = both;
    one[other] = false;
    EXPECT_TRUE(Parse(kChat, one)) << other;
    one.erase(other);
    EXPECT_TRUE(Parse(kChat, one)) << other;
  }
}

TEST(ParamTable, NumbersAtAndPastTheirLimits) {
  int walked = 0;
  for (const ParamRow& row : ParamTable()) {
    const auto* field = std::get_if<NumberField>(&row.field);
    if (field == nullptr) continue;
    walked += 1;
    EXPECT_EQ(Reads(row, field->min), !field->min_excluded) << row.name;
    EXPECT_TRUE(Reads(row, std::nextafter(field->min, INFINITY))) << row.name;
    EXPECT_TRUE(Reads(row, field->max)) << row.name;
    EXPECT_FALSE(Reads(row, std::nextafter(field->max, INFINITY))) << row.name;
    EXPECT_FALSE(Reads(row, std::nextafter(field->min, -INFINITY))) << row.name;
    for (const json::value& wrong :
         {json::value("1"), json::value(1e30), json::value(true), json::value(json::array())}) {
      EXPECT_FALSE(Reads(row, wrong)) << row.name << ' ' << wrong;
    }
  }
  EXPECT_EQ(walked, 6);
}

// A number above an excluded bound stays above it when it becomes a float.
TEST(ParamTable, TinyNumbersDoNotBecomeTheExcludedBound) {
  const auto params = Parse(kChat, {{"top_p", 1e-300}});
  ASSERT_TRUE(params);
  EXPECT_GT(params->sampling.top_p, 0.0f);
}

TEST(ParamTable, BooleansAndStrings) {
  for (const ParamRow& row : ParamTable()) {
    if (std::holds_alternative<BoolField>(row.field)) {
      EXPECT_TRUE(Reads(row, true)) << row.name;
      EXPECT_TRUE(Reads(row, false)) << row.name;
      EXPECT_FALSE(Reads(row, 1)) << row.name;
      EXPECT_FALSE(Reads(row, "true")) << row.name;
    } else if (const auto* field = std::get_if<StringField>(&row.field)) {
      EXPECT_TRUE(Reads(row, json::string(field->max_bytes, 's'))) << row.name;
      EXPECT_FALSE(Reads(row, json::string(field->max_bytes + 1, 's'))) << row.name;
      EXPECT_FALSE(Reads(row, 5)) << row.name;
    }
  }
}

TEST(ParamTable, OwnShapesRefuseOtherShapes) {
  // Schemas are looked at when they are compiled, and `true` is one.
  const std::set<std::string_view> any = {"guided_json", "guided_json_object", "structural_tag"};
  for (const ParamRow& row : ParamTable()) {
    if (!std::holds_alternative<CustomField>(row.field) || any.contains(row.name)) continue;
    EXPECT_FALSE(Reads(row, 1.5)) << row.name;
    EXPECT_FALSE(Reads(row, true)) << row.name;
    if (row.name == "messages") continue;  // what it lists is read with the template in view
    EXPECT_FALSE(Reads(row, json::array{true})) << row.name;
  }
}

// What says no more than the default is no reason for a refusal.
TEST(ParamTable, NeutralValuesPass) {
  const std::pair<Endpoint, json::object> bodies[] = {
      {kChat, {{"top_logprobs", 0}}},
      {kChat, {{"length_penalty", 1.0}}},
      {kCompletions, {{"length_penalty", 1}}},
      {kCompletions, {{"n_predict", -1}}},
      {kChat, {{"n_predict", -1}, {"min_tokens", 3}}}};
  for (const auto& [endpoint, body] : bodies) {
    const auto params = Parse(endpoint, body);
    ASSERT_TRUE(params) << params.error().message;
    EXPECT_TRUE(params->ignored.empty());
    EXPECT_EQ(params->sampling.logprobs, -1);
  }
  EXPECT_FALSE(Parse(kChat, {{"length_penalty", 1.2}}));
  EXPECT_FALSE(Parse(kChat, {{"top_logprobs", 1}}));
  EXPECT_FALSE(Parse(kChat, {{"max_tokens", -2}}));
}

TEST(ParamTable, RefusedOnesAreRefusedAndIgnoredOnesReported) {
  int refused = 0;
  int ignored = 0;
  for (const ParamRow& row : ParamTable()) {
    RequestParams params;
    if (const auto* field = std::get_if<RefusedField>(&row.field)) {
      refused += 1;
      const Status status = Read(row, json::object{{"x", 1}}, &params);
      ASSERT_FALSE(status) << row.name;
      EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
      EXPECT_EQ(Reads(row, false), field->false_passes) << row.name;
      EXPECT_FALSE(Reads(row, true)) << row.name;
    } else if (std::holds_alternative<IgnoredField>(row.field)) {
      ignored += 1;
      ASSERT_TRUE(Read(row, json::object{{"x", 1}}, &params)) << row.name;
      EXPECT_THAT(params.ignored, ElementsAre(std::string(row.name)));
    }
  }
  EXPECT_GT(refused, 15);
  EXPECT_GT(ignored, 5);
}

TEST(ParamTable, NullMeansAbsent) {
  for (const Endpoint endpoint : kEndpoints) {
    for (const ParamRow& row : ParamTable()) {
      if ((row.endpoints & endpoint) == 0) continue;
      for (const std::string_view name : {row.name, row.alias}) {
        if (name.empty()) continue;
        const bool required =
            row.default_value == "required" || (row.name == "max_tokens" && endpoint == kMessages);
        const auto params = Parse(endpoint, {{name, nullptr}});
        if (params) {
          EXPECT_TRUE(params->ignored.empty() && params->renamed.empty()) << name;
          continue;
        }
        EXPECT_TRUE(required) << name << ": " << params.error().message;
        EXPECT_EQ(params.error().reason, "missing_parameter") << name;
        EXPECT_EQ(params.error().field, row.name);
      }
    }
  }
}

// One value that each kind of row takes, or one that it may refuse.
json::value SomeValue(const ParamRow& row) {
  struct Maker {
    json::value operator()(const IntField& f) const { return f.max; }
    json::value operator()(const NumberField& f) const { return f.max; }
    json::value operator()(const BoolField&) const { return true; }
    json::value operator()(const StringField&) const { return "s"; }
    json::value operator()(const CustomField&) const { return json::object{{"no such", 1}}; }
    json::value operator()(const RefusedField&) const { return "s"; }
    json::value operator()(const IgnoredField&) const { return "s"; }
  };
  return std::visit(Maker{}, row.field);
}

// Every row of every endpoint, under both of its names: it changes what the request is, or it is
// refused by name, or it is reported. And a strict request refuses what would be reported.
TEST(ParamTable, NoFourthOutcome) {
  int walked = 0;
  for (const Endpoint endpoint : kEndpoints) {
    for (const ParamRow& row : ParamTable()) {
      if ((row.endpoints & endpoint) == 0) continue;
      for (const std::string_view name : {row.name, row.alias}) {
        if (name.empty()) continue;
        walked += 1;
        const auto params = Parse(endpoint, {{name, SomeValue(row)}});
        if (!params) {
          // A combination may be at fault, which then names the other one.
          EXPECT_FALSE(params.error().field.empty()) << name;
          continue;
        }
        const bool honoured = !std::holds_alternative<RefusedField>(row.field) &&
                              !std::holds_alternative<IgnoredField>(row.field) &&
                              params->ignored.empty();
        const bool reported = params->ignored.size() == 1 && params->ignored[0].starts_with(name);
        EXPECT_TRUE(honoured || reported) << name << " at " << endpoint;
        EXPECT_EQ(params->renamed.size(), name == row.alias ? 1u : 0u) << name;
        const bool told = !params->ignored.empty() || !params->renamed.empty();
        Reports reports = *params;
        reports.strict = true;
        const Status strict = CheckStrict(reports);
        EXPECT_EQ(!strict, told) << name;
        if (!strict) {
          EXPECT_TRUE(strict.error().field.starts_with(name)) << strict.error().field;
        }
      }
    }
  }
  EXPECT_GT(walked, 200);
}

TEST(ParamTable, TopKOfMoreThanThereAreIsAll) {
  EXPECT_EQ(Parse(kChat, {{"top_k", kVocab - 1}})->sampling.top_k, kVocab - 1);
  EXPECT_EQ(Parse(kChat, {{"top_k", kVocab}})->sampling.top_k, 0);
  EXPECT_EQ(Parse(kChat, {{"top_k", INT32_MAX}})->sampling.top_k, 0);
}

TEST(ParamTable, FalseAsksForNothing) {
  EXPECT_TRUE(Parse(kResponses, {{"store", false}})->ignored.empty());
  EXPECT_THAT(Parse(kResponses, {{"store", true}})->ignored, ElementsAre("store"));
  EXPECT_TRUE(Parse(kResponses, {{"background", false}}));
  EXPECT_FALSE(Parse(kResponses, {{"background", true}}));
}

TEST(CheckStrict, NamesWhatIsClamped) {
  Reports reports;
  reports.clamped.push_back({"max_tokens", 100, 12});
  EXPECT_TRUE(CheckStrict(reports));
  reports.strict = true;
  const Status status = CheckStrict(reports);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().field, "max_tokens");
  EXPECT_THAT(status.error().message, HasSubstr("is 100 but only 12"));
}

TEST(ParamTable, UnknownMembersAreReportedUpToALimit) {
  json::object extra;
  for (size_t i = 0; i < limits::kMaxUnknownParams; ++i) extra[fmt::format("foo{}", i)] = 1;
  const auto params = Parse(kChat, extra);
  ASSERT_TRUE(params);
  EXPECT_EQ(params->ignored.size(), limits::kMaxUnknownParams);
  extra["one_more"] = 1;
  EXPECT_EQ(Parse(kChat, extra).error().reason, "too_many_parameters");
  EXPECT_EQ(Parse(kChat, {{"stream", true}, {"stream_options", extra}}).error().reason,
            "too_many_parameters");
  // A long name is cut, and never inside a character.
  std::string name;
  for (int i = 0; i < 200; ++i) name += "é";
  EXPECT_LE(Parse(kChat, {{"x" + name, 1}})->ignored.at(0).size(), 66u);
}

TEST(ParamTable, AliasesAreTheSameParameter) {
  EXPECT_EQ(Parse(kChat, {{"max_new_tokens", 7}})->max_tokens, 7);
  EXPECT_EQ(Parse(kChat, {{"n_predict", 7}})->wanted_tokens(), 7);
  EXPECT_EQ(Parse(kChat, {{"repeat_penalty", 1.5}})->sampling.repetition_penalty, 1.5f);
  const auto both = Parse(kChat, {{"max_tokens", 1}, {"max_new_tokens", 2}});
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().field, "max_new_tokens");
}

std::string ErrorField(Endpoint endpoint, std::string_view members) {
  const auto params = Parse(endpoint, json::parse(members).as_object());
  if (params) return "none";
  EXPECT_THAT(params.error().message, HasSubstr("`" + params.error().field + "`"));
  return params.error().field;
}

TEST(ParamTable, ErrorsOfSeveralMembersNameThemAsTheyWereWritten) {
  EXPECT_EQ(ErrorField(kChat, R"({"n_predict":0})"), "n_predict");
  EXPECT_EQ(ErrorField(kChat, R"({"max_completion_tokens":0})"), "max_completion_tokens");
  EXPECT_EQ(ErrorField(kChat, R"({"max_new_tokens":0})"), "max_new_tokens");
  EXPECT_EQ(ErrorField(kResponses, R"({"max_output_tokens":0})"), "max_output_tokens");
  EXPECT_EQ(ErrorField(kChat, R"({"n_predict":1,"min_new_tokens":2})"), "min_new_tokens");
  EXPECT_EQ(ErrorField(kScore, R"({"text_1":null,"queries":["a","b"],"text_2":["c"]})"), "queries");
  Reports reports{.clamped = {{"max_tokens", 9, 1}}, .renamed = {{"max_new_tokens", "max_tokens"}}};
  reports.strict = true;
  EXPECT_EQ(CheckStrict(reports).error().field, "max_new_tokens");
}

TEST(ParamTable, NestedMembersThatNobodyReadsAreReported) {
  const struct {
    const char* members;
    const char* reported;  // the one; empty: none
  } cases[] = {
      {R"({"messages":[{"role":"user","content":"a"},{"role":"user","content":"a","zz":1},
          {"role":"user","content":"a","zz":2}]})",
       "messages[1].zz"},
      {R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},
          {"type":"text","text":"b","cache_control":{}}]}]})",
       "messages[0].content[1].cache_control"},
      {R"({"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","index":0,
          "function":{"name":"f","arguments":"{}","zz":1}}]}]})",
       "messages[0].tool_calls[0].function.zz"},
      {R"({"messages":[{"role":"assistant","content":null,"refusal":null,"name":"n","reasoning":"r",
          "tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{"zz":1}}}]},
          {"role":"tool","tool_call_id":"c","content":"r"}]})",
       ""},
      {R"({"messages":[{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}]})", ""},
      {R"({"tools":[{"type":"function","function":{"name":"f"},"zz":1}]})", "tools[0].zz"},
      {R"({"tools":[{"type":"function","function":{"name":"f"}},
          {"type":"function","function":{"name":"g","yy":1}}]})",
       "tools[1].function.yy"},
      {R"({"tools":[{"type":"function","function":{"name":"f","description":"d","strict":true,
          "parameters":{"zz":1}}}]})",
       ""},
      {R"({"tools":[{"type":"function","function":{"name":"f"}}],
          "tool_choice":{"type":"function","function":{"name":"f"},"zz":1}})",
       "tool_choice.zz"},
      {R"({"tools":[{"type":"function","function":{"name":"f"}}],
          "tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto",
          "tools":[{"type":"function","function":{"name":"f","zz":1}}]}}})",
       "tool_choice.allowed_tools.tools[0].function.zz"},
      {R"({"response_format":{"type":"text","zz":1}})", "response_format.zz"},
      {R"({"response_format":{"type":"json_schema","json_schema":{"schema":{},"stict":true}}})",
       "response_format.json_schema.stict"},
      {R"({"response_format":{"type":"json_schema","json_schema":{"name":"n","description":"d",
          "schema":{"zz":1},"strict":true}}})",
       ""},
      {R"({"response_format":{"type":"json_object","schema":{"zz":1}}})", ""},
      {R"({"response_format":{"type":"json_schema","schema":{"zz":1},"name":"n","strict":true}})",
       ""},
      {R"({"response_format":{"type":"text","schema":{}}})", "response_format.schema"},
      {R"({"response_format":{"type":"json_object","json_schema":{"schema":{}}}})",
       "response_format.json_schema"},
      {R"({"response_format":{"type":"structural_tag","triggers":[],"structures":[]}})", ""},
  };
  for (const auto& c : cases) {
    auto params = Parse(kChat, json::parse(c.members).as_object());
    ASSERT_TRUE(params) << c.members << params.error().message;
    const std::vector<std::string> one = {c.reported};
    EXPECT_EQ(params->ignored, *c.reported == 0 ? std::vector<std::string>() : one) << c.members;
    params->strict = true;
    const Status strict = CheckStrict(*params);
    EXPECT_EQ(strict ? "" : strict.error().field, c.reported);
  }
}

TEST(ParamTable, NestedMembersHaveTypes) {
  EXPECT_EQ(ErrorField(kChat, R"({"response_format":{"type":"json_schema",
      "json_schema":{"name":5,"schema":{}}}})"),
            "response_format.json_schema.name");
  EXPECT_EQ(ErrorField(kChat, R"({"response_format":{"type":"json_schema",
      "json_schema":{"strict":"no","schema":{}}}})"),
            "response_format.json_schema.strict");
  EXPECT_EQ(ErrorField(kCompletions, R"({"response_format":{"type":"json_schema",
      "json_schema":{"description":4,"schema":{}}}})"),
            "response_format.json_schema.description");
  EXPECT_EQ(ErrorField(kChat, R"({"messages":[{"role":"assistant","tool_calls":[{"id":5,
      "function":{"name":"f"}}]}]})"),
            "messages[0].tool_calls[0].id");
}

// A template that prints its tools whole is not shown what is reported as ignored.
TEST(ParamTable, ToolsHaveKnownMembersOnly) {
  const json::value body = json::parse(R"({"messages":[{"role":"user","content":"a"}],"tools":[
      {"type":"function","zz":1,"function":{"name":"f","yy":1,"parameters":{"zz":1}}}]})");
  const auto params = ParseParams(body, {kChat, kVocab});
  ASSERT_TRUE(params) << params.error().message;
  EXPECT_EQ(json::serialize(*params->tools),
            R"([{"type":"function","function":{"name":"f","parameters":{"zz":1}}}])");
}

// Every message of a long conversation may have it.
TEST(ParamTable, AnUnknownMemberOfManyItemsIsOneReport) {
  json::array messages(2 * limits::kMaxUnknownParams,
                       {{"role", "user"}, {"content", "a"}, {"zz", 1}});
  EXPECT_THAT(Parse(kChat, {{"messages", messages}})->ignored, ElementsAre("messages[0].zz"));
}

TEST(ParamTable, MarkdownNamesEveryRow) {
  const std::string page = ParamTableMarkdown();
  for (const ParamRow& row : ParamTable()) {
    EXPECT_THAT(page, HasSubstr(fmt::format("| `{}`", row.name)));
  }
  EXPECT_THAT(
      page,
      HasSubstr(
          "| `temperature` | chat, completions, responses, messages | number, 0 to 100 | 1 |"));
}

TEST(ParamTable, RequestIdsAreShortAndPlain) {
  EXPECT_EQ(Parse(kChat, {{"request_id", "a.B_1:-"}})->request_id, "a.B_1:-");
  EXPECT_TRUE(Parse(kChat, {{"request_id", std::string(limits::kMaxRequestIdBytes, 'x')}}));
  for (const std::string& bad : {std::string(), std::string(limits::kMaxRequestIdBytes + 1, 'x'),
                                 std::string("a b"), std::string("a\r\nb"), std::string("é")}) {
    const auto params = Parse(kChat, {{"request_id", bad}});
    ASSERT_FALSE(params) << bad;
    EXPECT_EQ(params.error().field, "request_id");
  }
}

TEST(CombineParams, MaxCompletionTokensWins) {
  EXPECT_EQ(Parse(kChat, {{"max_tokens", 5}, {"max_completion_tokens", 3}})->wanted_tokens(), 3);
}

struct BadPair {
  Endpoint endpoint;
  const char* body;
  const char* field;
};

TEST(CombineParams, RefusesWhatDoesNotGoTogether) {
  const BadPair pairs[] = {
      {kCompletions, R"({"n":4,"best_of":2})", "best_of"},
      {kCompletions, R"({"prompt":["a","b"],"n":65})", "n"},
      {kChat, R"({"stream_options":{"include_usage":true}})", "stream_options"},
      {kChat, R"({"stream":true,"stream_options":{"continuous_usage_stats":true}})",
       "stream_options.continuous_usage_stats"},
      {kChat, R"({"logprobs":false,"top_logprobs":3})", "top_logprobs"},
      {kChat, R"({"top_logprobs":1})", "top_logprobs"},
      {kChat, R"({"max_tokens":0})", "max_tokens"},
      {kCompletions, R"({"max_completion_tokens":0})", "max_completion_tokens"},
      {kCompletions, R"({"max_tokens":2,"min_tokens":3})", "min_tokens"},
      {kCompletions, R"({"prompt_logprobs":1,"stream":true})", "prompt_logprobs"},
      {kChat, R"({"truncate_prompt_tokens":0})", "truncate_prompt_tokens"},
      {kCompletions, R"({"suffix":"b","echo":true})", "suffix"},
      {kCompletions, R"({"suffix":"b","prompt":["a","b"]})", "suffix"},
      {kMessages, R"({"max_tokens":0})", "max_tokens"},
      {kResponses, R"({"max_output_tokens":2,"min_tokens":3})", "min_tokens"},
      {kEmbeddings, R"({"truncate_prompt_tokens":0})", "truncate_prompt_tokens"},
      {kScore, R"({"text_1":["a","b","c"]})", "text_1"},
      {kTokenize, R"({"messages":[{"role":"user","content":"x"}]})", "messages"},
  };
  for (const BadPair& pair : pairs) {
    const auto params = Parse(pair.endpoint, json::parse(pair.body).as_object());
    ASSERT_FALSE(params) << pair.body;
    EXPECT_EQ(params.error().field, pair.field) << pair.body;
  }
  EXPECT_TRUE(Parse(kCompletions, {{"max_tokens", 0}, {"echo", true}}));
  EXPECT_TRUE(Parse(kCompletions, {{"n", 3}, {"best_of", 3}}));
  EXPECT_TRUE(Parse(kCompletions, {{"prompt", {"a", "b"}}, {"n", 64}}));
}

TEST(CombineParams, LogprobsOfBothKinds) {
  EXPECT_EQ(Parse(kChat, {})->sampling.logprobs, -1);
  EXPECT_EQ(Parse(kChat, {{"logprobs", true}})->sampling.logprobs, 0);
  EXPECT_EQ(Parse(kChat, {{"logprobs", true}, {"top_logprobs", 5}})->sampling.logprobs, 5);
  EXPECT_EQ(Parse(kCompletions, {})->sampling.logprobs, -1);
  EXPECT_EQ(Parse(kCompletions, {{"logprobs", 0}})->sampling.logprobs, 0);
}

TEST(CombineParams, InputIsRequired) {
  for (const Endpoint endpoint : kEndpoints) {
    const json::value body = json::object();
    const auto params = ParseParams(body, {endpoint, kVocab});
    ASSERT_FALSE(params);
    EXPECT_EQ(params.error().reason, "missing_parameter");
  }
  for (const char* text : {"[]", "null", "\"x\"", "5"}) {
    const json::value body = json::parse(text);
    EXPECT_FALSE(ParseParams(body, {kChat, kVocab})) << text;
  }
}

TEST(ParamTable, ThePageInDocsIsCurrent) {
  std::ifstream file(vivace::testing::SourceDir() + "/docs/parameters.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(page, ParamTableMarkdown()) << "run ./dev docs";
}

}  // namespace
}  // namespace vivace::server
