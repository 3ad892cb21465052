#include "server/params/readers.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/limits.h"
#include "server/params/grammar_readers.h"

namespace vivace::server {
namespace {

using Reader = Status (*)(std::string_view, const json::value&, const ParamContext&,
                          RequestParams*);
constexpr ParamContext kContext{kCompletions, 1000};

// Keeps the value alive as long as what points into it.
struct Outcome {
  json::value value;
  RequestParams params;
  Status status;
};

Outcome Apply(Reader reader, json::value value) {
  Outcome outcome{std::move(value), {}, {}};
  outcome.status = reader("p", outcome.value, kContext, &outcome.params);
  return outcome;
}
bool Reads(Reader reader, const char* text) {
  return Apply(reader, json::parse(text)).status.has_value();
}

json::value Repeat(size_t count, const json::value& item) { return json::array(count, item); }

TEST(Readers, PromptShapes) {
  EXPECT_EQ(Apply(ReadPrompt, "x").params.prompts.size(), 1u);
  EXPECT_EQ(Apply(ReadPrompt, json::parse(R"(["a","b"])")).params.prompts.size(), 2u);
  const auto ids = Apply(ReadPrompt, json::parse("[1,999]")).params.prompts;
  ASSERT_EQ(ids.size(), 1u);
  EXPECT_EQ(std::get<std::vector<TokenId>>(ids[0]), (std::vector<TokenId>{1, 999}));
  EXPECT_EQ(Apply(ReadPrompt, json::parse("[[1],[2,3]]")).params.prompts.size(), 2u);
  for (const char* bad : {"[]", "[-1]", "[1000]", "[1.5]", "[5279552648203111001]", "[null]",
                          R"(["a",1])", R"([1,"a"])", R"([[1],"a"])", "[[1],[1.5]]", "[[[1]]]",
                          "{}", "5", "[18446744073709551615]"}) {
    EXPECT_FALSE(Reads(ReadPrompt, bad)) << bad;
  }
  EXPECT_EQ(limits::kMaxPrompts, limits::kMaxChoices) << "as the page of parameters has it";
  EXPECT_TRUE(Apply(ReadPrompt, Repeat(limits::kMaxPrompts, "a")).status);
  EXPECT_FALSE(Apply(ReadPrompt, Repeat(limits::kMaxPrompts + 1, "a")).status);
}

// The item at fault is named, and what it is.
TEST(Readers, ListsNameTheirItem) {
  const struct {
    Reader reader;
    const char* value;
    const char* field;
    const char* message;
  } cases[] = {
      {ReadPrompt, R"(["a",1])", "p[1]", "`p[1]` must be a string like the first, not an integer"},
      {ReadPrompt, R"([1,"a"])", "p[1]", "`p[1]` must be a token id, not a string"},
      {ReadPrompt, "[[1],[2,1000]]", "p[1][1]",
       "`p[1][1]` is 1000; token ids of this model are 0 to 999"},
      {ReadStop, R"(["a",1])", "p[1]", "`p[1]` must be a string, not an integer"},
      {ReadStop, "1000000000000000000000000000000", "p",
       "`p` must be a string or a list of strings, not a number that is too large"},
      {ReadTokens, "[1000000000000000000000000000000]", "p[0]",
       "`p[0]` is 1E30; token ids of this model are 0 to 999"},
      {ReadBadWords, R"([null])", "p[0]", "`p[0]` must be a string, not null"},
      {ReadChoice, R"(["a",{}])", "p[1]", "`p[1]` must be a string, not an object"},
      {ReadLogitBias, R"({"5":"x"})", "p.5", "`p.5` must be a number, not a string"},
      {ReadDocuments, R"([{"a":"b"},{"text":1}])", "p[1].text",
       "`p[1].text` must be a string, not an integer"},
      {ReadSecondTexts, R"(["a",1])", "p[1]",
       "`p[1]` must be a string, or an object with a \"text\", not an integer"},
      {ReadSecondTexts, R"([{}])", "p[0]", "`p[0]` needs a \"text\", which is a string"},
      {ReadSecondTexts, R"([{"text":null}])", "p[0].text",
       "`p[0].text` must be a string, not null"},
      {ReadSecondTexts, "5", "p",
       "`p` must be a string, or a list of strings or of objects with a \"text\", not an integer"},
  };
  for (const auto& c : cases) {
    const Status status = Apply(c.reader, json::parse(c.value)).status;
    ASSERT_FALSE(status) << c.value;
    EXPECT_EQ(status.error().field, c.field) << c.value;
    EXPECT_EQ(status.error().message, c.message) << c.value;
  }
}

TEST(Readers, Messages) {
  EXPECT_FALSE(Reads(ReadMessages, "[]"));
  EXPECT_FALSE(Reads(ReadMessages, "{}"));
  EXPECT_TRUE(Apply(ReadMessages, Repeat(limits::kMaxMessages, json::object())).status);
  EXPECT_FALSE(Apply(ReadMessages, Repeat(limits::kMaxMessages + 1, json::object())).status);
}

TEST(Readers, Documents) {
  EXPECT_EQ(Apply(ReadDocuments, json::array()).params.documents, nullptr);
  EXPECT_NE(Apply(ReadDocuments, json::parse(R"([{"text":"a"}])")).params.documents, nullptr);
  for (const char* bad : {"{}", "[1]", R"(["a"])", R"([{"text":1}])", R"([{"text":{}}])"}) {
    EXPECT_FALSE(Reads(ReadDocuments, bad)) << bad;
  }
  EXPECT_TRUE(Apply(ReadDocuments, Repeat(limits::kMaxDocuments, json::object())).status);
  EXPECT_FALSE(Apply(ReadDocuments, Repeat(limits::kMaxDocuments + 1, json::object())).status);
}

TEST(Readers, ReasoningEffort) {
  EXPECT_TRUE(Reads(ReadReasoningEffort, R"("high")"));
  for (const char* bad : {R"("most")", R"("")", "1", "true", "{}"}) {
    EXPECT_FALSE(Reads(ReadReasoningEffort, bad)) << bad;
  }
}

TEST(Readers, Stop) {
  EXPECT_EQ(Apply(ReadStop, "a").params.stop, std::vector<std::string>{"a"});
  EXPECT_TRUE(Apply(ReadStop, json::array()).params.stop.empty());
  EXPECT_FALSE(Reads(ReadStop, R"("")"));
  EXPECT_FALSE(Reads(ReadStop, R"(["a",""])"));
  EXPECT_FALSE(Reads(ReadStop, "[1]"));
  EXPECT_TRUE(Apply(ReadStop, Repeat(limits::kMaxStopStrings, "a")).status);
  EXPECT_FALSE(Apply(ReadStop, Repeat(limits::kMaxStopStrings + 1, "a")).status);
  EXPECT_TRUE(Apply(ReadStop, json::string(limits::kMaxStopStringBytes, 'a')).status);
  EXPECT_FALSE(Apply(ReadStop, json::string(limits::kMaxStopStringBytes + 1, 'a')).status);
}

TEST(Readers, StopTokenIds) {
  EXPECT_TRUE(Reads(ReadStopTokenIds, "[0,999,1.0,1e2]"));
  for (const char* bad : {"[-1]", "[1000]", "[2147483647]", "[1.5]", "[1e3]", "5"}) {
    EXPECT_FALSE(Reads(ReadStopTokenIds, bad)) << bad;
  }
  EXPECT_TRUE(Apply(ReadStopTokenIds, Repeat(limits::kMaxStopTokenIds, 1)).status);
  EXPECT_FALSE(Apply(ReadStopTokenIds, Repeat(limits::kMaxStopTokenIds + 1, 1)).status);
}

TEST(Readers, LogitBias) {
  const auto outcome = Apply(ReadLogitBias, json::parse(R"({"999":0,"5":-100,"6":100.0})"));
  ASSERT_TRUE(outcome.status);
  EXPECT_EQ(outcome.params.sampling.logit_bias.size(), 3u);
  for (const char* bad :
       {R"({"1000":5})", R"({"-1":5})", R"({"AI":5})", R"({"5":"5"})", R"({"5":100.001})",
        R"({"5":null})", R"({"5x":1})", R"({"":1})", R"({" 5":1})", R"({"5":1,"05":2})", "[]"}) {
    EXPECT_FALSE(Reads(ReadLogitBias, bad)) << bad;
  }
}

TEST(Readers, LogitBiasCount) {
  const auto body = [](size_t count) {
    json::object bias;
    for (size_t i = 0; i < count; ++i) bias[std::to_string(i)] = 1;
    return json::value(bias);
  };
  RequestParams params;
  const ParamContext context{kChat, 5000};
  EXPECT_TRUE(ReadLogitBias("p", body(limits::kMaxLogitBias), context, &params));
  EXPECT_FALSE(ReadLogitBias("p", body(limits::kMaxLogitBias + 1), context, &params));
}

TEST(Readers, StreamOptions) {
  const auto outcome = Apply(ReadStreamOptions, json::parse(R"({"include_usage":true,"other":1})"));
  EXPECT_TRUE(outcome.params.include_usage);
  EXPECT_EQ(outcome.params.ignored, std::vector<std::string>{"p.other"});
  EXPECT_TRUE(Reads(ReadStreamOptions, R"({"include_usage":null})"));
  EXPECT_FALSE(Reads(ReadStreamOptions, R"({"include_usage":1})"));
}

TEST(Readers, ResponseFormat) {
  using Kind = GrammarSpec::Kind;
  const auto of = [](const char* text) {
    return Apply(ReadResponseFormat, json::parse(text)).params.grammar;
  };
  EXPECT_FALSE(of(R"({"type":"text"})"));
  EXPECT_TRUE(Reads(ReadResponseFormat, R"({"type":"text"})"));
  EXPECT_EQ(of(R"({"type":"json_object"})")->kind, Kind::kJsonObject);
  const auto schema =
      of(R"({"type":"json_schema","json_schema":{"name":"s","schema":{"type":"null"}}})");
  ASSERT_TRUE(schema);
  EXPECT_EQ(schema->kind, Kind::kJsonSchema);
  EXPECT_EQ(schema->text, R"({"type":"null"})");
  EXPECT_EQ(schema->field, "p");
  EXPECT_EQ(of(R"({"type":"json_object","schema":{}})")->kind, Kind::kJsonSchema);
  EXPECT_EQ(of(R"({"type":"json_schema","schema":true})")->text, "true");
  EXPECT_EQ(of(R"({"type":"structural_tag","format":{}})")->kind, Kind::kStructural);
  for (const char* bad : {R"({"type":"xml"})", "{}", "1", R"({"type":"json_schema"})",
                          R"({"type":"json_schema","json_schema":{}})",
                          R"({"type":"json_schema","json_schema":{"schema":"notobject"}})",
                          R"({"type":"json_schema","json_schema":7})"}) {
    EXPECT_FALSE(Reads(ReadResponseFormat, bad)) << bad;
  }
}

TEST(Readers, StructuredOutputs) {
  using Kind = GrammarSpec::Kind;
  const auto of = [](const char* text) {
    return Apply(ReadStructuredOutputs, json::parse(text)).params.grammar;
  };
  EXPECT_EQ(of(R"({"json":{}})")->kind, Kind::kJsonSchema);
  EXPECT_EQ(of(R"({"json":"{\"type\":\"null\"}"})")->text, R"({"type":"null"})");
  EXPECT_EQ(of(R"({"regex":"a"})")->text, "a");
  EXPECT_EQ(of(R"({"choice":["a","b"]})")->choices.size(), 2u);
  EXPECT_EQ(of(R"({"grammar":"root ::= x"})")->kind, Kind::kEbnf);
  EXPECT_EQ(of(R"({"json_object":true,"json":null})")->field, "p.json_object");
  EXPECT_FALSE(of(R"({"json_object":false,"disable_any_whitespace":false})"));
  for (const char* bad :
       {R"({"json":{},"regex":"a"})", R"({"other":1})", R"({"choice":"a"})", R"({"choice":[1]})",
        R"({"regex":1})", R"({"json":"{"})", "[]", "{}", R"({"json":null})",
        R"({"disable_any_whitespace":false})", R"({"disable_any_whitespace":true})"}) {
    EXPECT_FALSE(Reads(ReadStructuredOutputs, bad)) << bad;
  }
}

TEST(Readers, Tools) {
  EXPECT_EQ(Apply(ReadTools, json::array()).params.tools, nullptr);
  const auto good =
      Apply(ReadTools,
            json::parse(
                R"([{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])"));
  ASSERT_TRUE(good.status);
  EXPECT_NE(good.params.tools, nullptr);
  for (const char* bad :
       {"[1]", "[{}]", R"([{"type":"code"}])", R"([{"type":"function"}])",
        R"([{"type":"function","function":{}}])", R"([{"type":"function","function":{"name":""}}])",
        R"([{"type":"function","function":{"name":"f","parameters":5}}])",
        R"([{"type":"function","function":{"name":"f","parameters":{"type":7}}}])",
        R"([{"type":"function","function":{"name":"f","parameters":{"properties":[]}}}])",
        R"([{"type":"function","function":{"name":"f","description":5}}])",
        R"([{"type":"function","function":{"name":"f","strict":"yes"}}])",
        R"([{"type":"function","function":{"name":"a b"}}])",
        R"([{"type":"function","function":{"name":"f"}},)"
        R"({"type":"function","function":{"name":"f"}}])"}) {
    EXPECT_FALSE(Reads(ReadTools, bad)) << bad;
  }
  EXPECT_TRUE(Reads(ReadTools, R"([{"type":"function","function":{"name":"f","parameters":null,)"
                               R"("description":null,"strict":null}}])"));
  // Null is as if it were left out, for templates too.
  const auto nulls =
      Apply(ReadTools, json::parse(R"([{"type":"function","function":{"name":"f","parameters":)"
                                   R"({"type":"object","properties":null,"required":null}}}])"));
  ASSERT_TRUE(nulls.status);
  EXPECT_EQ(nulls.params.tools->at(0).at("function").at("parameters"),
            json::parse(R"({"type":"object"})"));
}

json::value Tool(const std::string& name, const std::string& about = "") {
  return {{"type", "function"}, {"function", {{"name", name}, {"description", about}}}};
}

TEST(Readers, ToolsAreBounded) {
  json::array tools;
  for (size_t i = 0; i < limits::kMaxTools; ++i) tools.push_back(Tool(fmt::format("f{}", i)));
  EXPECT_TRUE(Apply(ReadTools, tools).status);
  tools.push_back(Tool("one_more"));
  EXPECT_FALSE(Apply(ReadTools, tools).status);
  EXPECT_TRUE(
      Apply(ReadTools, json::array{Tool(std::string(limits::kMaxToolNameBytes, 'n'))}).status);
  EXPECT_EQ(Apply(ReadTools, json::array{Tool(std::string(limits::kMaxToolNameBytes + 1, 'n'))})
                .status.error()
                .field,
            "p[0].function.name");
  const size_t empty = json::serialize(json::array{Tool("f")}).size();
  const size_t room = limits::kMaxToolSchemaBytes - empty;
  EXPECT_TRUE(Apply(ReadTools, json::array{Tool("f", std::string(room, 'a'))}).status);
  EXPECT_FALSE(Apply(ReadTools, json::array{Tool("f", std::string(room + 1, 'a'))}).status);
}

TEST(Readers, ToolChoice) {
  EXPECT_TRUE(Reads(ReadToolChoice, R"("auto")"));
  EXPECT_TRUE(Reads(ReadToolChoice, R"("none")"));
  EXPECT_EQ(Apply(ReadToolChoice, "required").params.tool_choice, ToolChoice::kRequired);
  const auto named =
      Apply(ReadToolChoice, json::parse(R"({"type":"function","function":{"name":"g"}})"));
  EXPECT_EQ(named.params.tool_choice, ToolChoice::kNamed);
  EXPECT_EQ(named.params.tool_name, "g");
  const auto allowed = Apply(ReadToolChoice, json::parse(R"({"type":"allowed_tools","allowed_tools":
      {"mode":"required","tools":[{"type":"function","function":{"name":"f"}},
                                  {"type":"function","function":{"name":"g"}}]}})"));
  EXPECT_TRUE(allowed.status);
  EXPECT_EQ(allowed.params.tool_choice, ToolChoice::kRequired);
  EXPECT_EQ(allowed.params.allowed_tools, (std::vector<std::string>{"f", "g"}));
  const std::pair<const char*, const char*> bad_lists[] = {
      {"null", "p.allowed_tools"},
      {R"({"mode":"none","tools":[{"type":"function","function":{"name":"f"}}]})",
       "p.allowed_tools.mode"},
      {R"({"tools":[{"type":"function","function":{"name":"f"}}]})", "p.allowed_tools.mode"},
      {R"({"mode":"auto","tools":[]})", "p.allowed_tools.tools"},
      {R"({"mode":"auto"})", "p.allowed_tools.tools"},
      {R"({"mode":"auto","tools":[{"type":"mcp","server_label":"x"}]})",
       "p.allowed_tools.tools[0]"}};
  for (const auto& [inner, field] : bad_lists) {
    const auto refused = Apply(ReadToolChoice, json::object{{"type", "allowed_tools"},
                                                            {"allowed_tools", json::parse(inner)}});
    ASSERT_FALSE(refused.status) << inner;
    EXPECT_EQ(refused.status.error().field, field);
  }
  for (const char* bad :
       {R"("always")", "5", R"({"type":"function"})", R"({"function":{"name":"g"}})",
        R"({"type":"function","function":{"name":7}})", "{}"}) {
    EXPECT_FALSE(Reads(ReadToolChoice, bad)) << bad;
  }
}

TEST(Readers, TemplateKwargsCannotReplaceTheRequest) {
  EXPECT_TRUE(Reads(ReadChatTemplateKwargs, R"({"date_string":"01 Jan 2000"})"));
  EXPECT_FALSE(Reads(ReadChatTemplateKwargs, R"({"messages":[]})"));
  EXPECT_FALSE(Reads(ReadChatTemplateKwargs, "[]"));
}

}  // namespace
}  // namespace vivace::server
