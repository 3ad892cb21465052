// Conversations of Responses and of Anthropic's messages, as chat's.
#include "server/params/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/limits.h"

namespace vivace::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The body has to outlive what is read of it.
struct Parsed {
  json::value body;
  Result<RequestParams> params;
};

Parsed Parse(Endpoint endpoint, std::string_view text) {
  Parsed parsed{json::parse(text), {}};
  parsed.params = ParseParams(parsed.body, {endpoint, 1000});
  return parsed;
}

std::string Turns(Endpoint endpoint, std::string_view text) {
  const Parsed parsed = Parse(endpoint, text);
  if (!parsed.params) return parsed.params.error().message;
  return json::serialize(*parsed.params->messages);
}

Error ErrorOf(Endpoint endpoint, std::string_view text) {
  const Parsed parsed = Parse(endpoint, text);
  if (parsed.params) {
    ADD_FAILURE() << text;
    return {};
  }
  return parsed.params.error();
}

std::vector<std::string> Ignored(Endpoint endpoint, std::string_view text) {
  const Parsed parsed = Parse(endpoint, text);
  if (!parsed.params) return {parsed.params.error().message};
  return parsed.params->ignored;
}

TEST(ResponsesInput, TextAndInstructions) {
  EXPECT_EQ(Turns(kResponses, R"({"input":"Hi"})"), R"([{"role":"user","content":"Hi"}])");
  EXPECT_EQ(Turns(kResponses, R"({"input":"Hi","instructions":"Be brief"})"),
            R"([{"role":"system","content":"Be brief"},{"role":"user","content":"Hi"}])");
}

// Reasoning, text and calls of one turn are one message; outputs are tools'.
TEST(ResponsesInput, ItemsOfATurnAreOneMessage) {
  EXPECT_EQ(
      Turns(kResponses, R"({"input":[
        {"role":"developer","content":"d"},
        {"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]},
        {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},
        {"type":"message","id":"msg_1","role":"assistant","status":"completed",
         "content":[{"type":"output_text","text":"b","annotations":[],"logprobs":[]}]},
        {"type":"function_call","call_id":"c1","name":"f","arguments":"{\"x\":1}"},
        {"type":"function_call","call_id":"c2","name":"g","arguments":""},
        {"type":"function_call_output","call_id":"c1","output":"one"},
        {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"two"}]},
        {"role":"assistant","content":"e"},
        {"role":"assistant","content":"f"}]})"),
      R"([{"role":"developer","content":"d"},)"
      R"({"role":"user","content":[{"type":"text","text":"a"}]},)"
      R"({"reasoning_content":"hm","content":"b","tool_calls":[)"
      R"({"id":"c1","type":"function","function":{"name":"f","arguments":{"x":1}}},)"
      R"({"id":"c2","type":"function","function":{"name":"g","arguments":{}}}],"role":"assistant"},)"
      R"({"role":"tool","tool_call_id":"c1","content":"one"},)"
      R"({"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"two"}]},)"
      R"({"content":"e","role":"assistant"},{"content":"f","role":"assistant"}])");
}

TEST(ResponsesInput, RefusesByPath) {
  struct Case {
    const char* body;
    const char* field;
    const char* message;
  };
  const Case cases[] = {
      {R"({"input":[]})", "input", "is empty"},
      {R"({"input":5})", "input", "a string or a list"},
      {R"({"input":[5]})", "input[0]", "must be an object"},
      {R"({"input":["a"]})", "input[0]", "must be an object"},
      {R"({"input":[{"role":"user"}]})", "input[0].content", "is required"},
      {R"({"input":[{"role":"robot","content":"a"}]})", "input[0].role", "must be user"},
      {R"({"input":[{"role":"user","content":[{"type":"input_image","image_url":"u"}]}]})",
       "input[0].content[0].type", "text only"},
      {R"({"input":[{"type":"item_reference","id":"x"}]})", "input[0].type", "nothing is stored"},
      {R"({"input":[{"type":"web_search_call"}]})", "input[0].type", "web_search_call"},
      {R"({"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"[1]"}]})",
       "input[0].arguments", "JSON object"},
      {R"({"input":"a","previous_response_id":"r"})", "previous_response_id", "nothing is stored"},
      {R"({"input":"a","tools":[{"type":"web_search"}]})", "tools[0].type", "no tools of its own"},
      {R"({"input":"a","tools":[{"type":"function"}]})", "tools[0].name", "letters"},
      {R"({"input":"a","tools":[{"type":"function","name":"f","parameters":[]}]})",
       "tools[0].parameters", "a JSON Schema object"},
      {R"({"input":"a","tool_choice":"x"})", "tool_choice", "\"name\": …"},
      {R"({"input":"a","tool_choice":{"type":"allowed_tools","mode":"x","tools":[]}})",
       "tool_choice.mode", "auto"},
      {R"({"input":"a","tool_choice":{"type":"allowed_tools","mode":"auto","tools":[1]}})",
       "tool_choice.tools[0]", "\"name\": …"},
      {R"({"input":"a","text":{"format":{"type":"json_schema","name":"s"}}})", "text.format",
       "needs a \"schema\""},
      {R"({"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\""}]})",
       "input[0].arguments", "JSON object"},
      {R"({"input":"a","text":{"format":{"type":"json_schema","name":5,"schema":{}}}})",
       "text.format.name", "a string, not an integer"},
      {R"({"input":"a","text":{"format":{"type":"json_schema","name":"s","schema":"x"}}})",
       "text.format.schema", "an object"},
      {R"({"input":"a","truncation":"x"})", "truncation", "auto"},
      {R"({"instructions":"a"})", "input", "required"},
  };
  for (const Case& c : cases) {
    const Error error = ErrorOf(kResponses, c.body);
    EXPECT_EQ(error.field, c.field) << c.body;
    EXPECT_THAT(error.message, HasSubstr(c.message)) << c.body;
  }
}

TEST(ResponsesInput, ReportsWhatNobodyReads) {
  EXPECT_THAT(Ignored(kResponses, R"({"input":[{"role":"user","content":"a","foo":1},
              {"role":"user","content":"b","foo":2}],"text":{"verbosity":"low"},
              "reasoning":{"summary":"auto"},"include":["reasoning.encrypted_content"],
              "truncation":"auto"})"),
              ElementsAre("input[0].foo", "text.verbosity", "reasoning.summary",
                          "include.reasoning.encrypted_content", "truncation"));
}

TEST(ResponsesInput, ToolsAreChats) {
  const Parsed parsed = Parse(kResponses, R"({"input":"a","tools":[
      {"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true}]})");
  ASSERT_TRUE(parsed.params) << parsed.params.error().message;
  for (const char* type : {"adaptive", "disabled"}) {
    EXPECT_THAT(
        Ignored(kMessages,
                fmt::format(R"({{"max_tokens":4,"messages":[{{"role":"user","content":"a"}}],)"
                            R"("thinking":{{"type":"{}","budget_tokens":1024}}}})",
                            type)),
        ElementsAre("thinking.budget_tokens"));
  }
  EXPECT_EQ(json::serialize(*parsed.params->tools),
            R"([{"type":"function","function":{"name":"f","description":"d",)"
            R"("parameters":{"type":"object"},"strict":true}}])");
}

// As json.loads reads what a model wrote.
TEST(ResponsesInput, OfArgumentsThatAMemberHasTwiceTheLastCount) {
  EXPECT_THAT(Turns(kResponses, R"({"input":[{"type":"function_call","call_id":"c","name":"f",
                  "arguments":"{\"a\":1,\"a\":{\"b\":2,\"b\":3}}"}]})"),
              HasSubstr(R"("arguments":{"a":{"b":3}})"));
}

TEST(ResponsesInput, NestedMembersThatNobodyReads) {
  EXPECT_THAT(Ignored(kResponses, R"({"input":"a",
                  "text":{"format":{"type":"json_schema","name":"n","description":"d",
                          "schema":{"zz":1},"strict":true,"zz":1}},
                  "tools":[{"type":"function","name":"f","parameters":{"zz":1}},
                           {"type":"function","name":"g","yy":1}],
                  "tool_choice":{"type":"function","name":"f","xx":1}})"),
              ElementsAre("text.format.zz", "tools[1].yy", "tool_choice.xx"));
}

// What a response object says again of its request.
TEST(ResponsesInput, Echo) {
  const Parsed parsed =
      Parse(kResponses, R"({"input":"a","metadata":{"k":"v"},"temperature":0.5,"store":false})");
  ASSERT_TRUE(parsed.params);
  const json::value echo = json::parse("{" + parsed.params->echoed + "}");
  EXPECT_EQ(echo.at("metadata"), json::value({{"k", "v"}}));
  EXPECT_EQ(echo.at("temperature").to_number<double>(), 0.5);
  EXPECT_EQ(echo.at("store"), false);
  EXPECT_EQ(echo.at("tools").as_array().size(), 0u);
  EXPECT_EQ(echo.at("text").at("format").at("type"), "text");
  EXPECT_TRUE(echo.at("instructions").is_null());
  // What is too long to say again is left out, not said to be absent.
  const std::string long_text(limits::kMaxEchoedBytes, 'x');
  const Parsed longer = Parse(kResponses, R"({"input":"a","instructions":")" + long_text + "\"}");
  ASSERT_TRUE(longer.params);
  EXPECT_FALSE(json::parse("{" + longer.params->echoed + "}").as_object().contains("instructions"));
}

TEST(BlockMessages, BlocksOfATurn) {
  EXPECT_EQ(
      Turns(kMessages, R"({"max_tokens":4,"system":[{"type":"text","text":"s"}],"messages":[
        {"role":"user","content":"a"},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},
          {"type":"text","text":"b"},{"type":"tool_use","id":"t1","name":"f","input":{"x":1}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1",
          "content":[{"type":"text","text":"one"}]},{"type":"text","text":"c"},
          {"type":"text","text":"d"}]}]})"),
      R"([{"role":"system","content":[{"type":"text","text":"s"}]},)"
      R"({"role":"user","content":"a"},)"
      R"({"reasoning_content":"hm","content":"b","tool_calls":[{"id":"t1","type":"function",)"
      R"("function":{"name":"f","arguments":{"x":1}}}],"role":"assistant"},)"
      R"({"role":"tool","tool_call_id":"t1","content":[{"type":"text","text":"one"}]},)"
      R"({"role":"user","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]}])");
}

// As Anthropic joins them; templates that want turns to alternate would refuse them otherwise.
TEST(BlockMessages, NeighboursOfOneRoleAreOneTurn) {
  for (const Endpoint endpoint : {kMessages, kCountTokens}) {
    EXPECT_EQ(Turns(endpoint, R"({"max_tokens":4,"messages":[
        {"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]},
        {"role":"assistant","content":"c"},{"role":"assistant","content":"d"},
        {"role":"user","content":"e"}]})"),
              R"([{"role":"user","content":[{"type":"text","text":"a"},)"
              R"({"type":"text","text":"b"}]},{"content":"cd","role":"assistant"},)"
              R"({"role":"user","content":"e"}])");
  }
  EXPECT_EQ(Turns(kMessages, R"({"max_tokens":4,"messages":[{"role":"user","content":"a"},
      {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]},
      {"role":"user","content":"b"}]})"),
            R"([{"role":"user","content":"a"},{"tool_calls":[{"id":"t","type":"function",)"
            R"("function":{"name":"f","arguments":{}}}],"role":"assistant"},)"
            R"({"role":"tool","tool_call_id":"t","content":"r"},{"role":"user","content":"b"}])");
}

TEST(BlockMessages, ALastTurnOfTheAssistantsIsContinued) {
  const Parsed open = Parse(kMessages, R"({"max_tokens":4,"messages":[
      {"role":"user","content":"a"},{"role":"assistant","content":"so"}]})");
  ASSERT_TRUE(open.params);
  EXPECT_TRUE(open.params->continue_final_message);
  const Parsed closed =
      Parse(kMessages, R"({"max_tokens":4,"messages":[{"role":"user","content":"a"}]})");
  EXPECT_FALSE(closed.params->continue_final_message);
}

TEST(BlockMessages, RefusesByPath) {
  struct Case {
    const char* members;
    const char* field;
    const char* message;
  };
  const Case cases[] = {
      {R"("messages":[])", "messages", "is empty"},
      {R"("messages":"a")", "messages", "a list"},
      {R"("messages":[{"role":"system","content":"a"}])", "messages[0].role", "`system`"},
      {R"("messages":[{"role":"user","content":[{"type":"image","source":{}}]}])",
       "messages[0].content[0].type", "text only"},
      {R"("messages":[{"role":"user","content":[{"type":"tool_use","id":"a","name":"f"}]}])",
       "messages[0].content[0].type", "tool_result"},
      {R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f"}]}])",
       "messages", "tool_result must follow"},
      {R"("messages":[{"role":"user","content":"a"}],"tool_choice":{"type":"some"})",
       "tool_choice.type", "auto, any"},
      {R"("messages":[{"role":"user","content":"a"}],"tool_choice":{"type":"tool"})",
       "tool_choice.name", "required"},
      {R"("messages":[{"role":"user","content":"a"}],"tools":[{"type":"bash_20250124","name":"b"}])",
       "tools[0].type", "input_schema"},
      {R"("messages":[{"role":"user","content":"a"}],"tools":[{"name":"a b"}])", "tools[0].name",
       "letters"},
      {R"("messages":[{"role":"user","content":"a"}],"tools":[{"name":"b","input_schema":[]}])",
       "tools[0].input_schema", "a JSON Schema object"},
      {R"("messages":[{"role":"user","content":"a"}],"thinking":{"type":"on"})", "thinking.type",
       "enabled"},
      {R"("messages":[{"role":"user","content":"a"}],"thinking":{"type":"enabled","budget_tokens":0})",
       "thinking.budget_tokens", "at least 1"},
      {R"("messages":[{"role":"user","content":"a"}],"stop_sequences":[""])", "stop_sequences",
       "empty"},
      {R"("messages":[{"role":"user","content":"a"}],"system":5)", "system", "list"},
  };
  for (const Case& c : cases) {
    const Error error = ErrorOf(kMessages, fmt::format(R"({{"max_tokens":4,{}}})", c.members));
    EXPECT_EQ(error.field, c.field) << c.members;
    EXPECT_THAT(error.message, HasSubstr(c.message)) << c.members;
  }
  EXPECT_EQ(ErrorOf(kMessages, R"({"messages":[{"role":"user","content":"a"}]})").field,
            "max_tokens");
  EXPECT_TRUE(Parse(kCountTokens, R"({"messages":[{"role":"user","content":"a"}]})").params);
}

TEST(BlockMessages, CacheMarksAreReportedOnce) {
  EXPECT_THAT(Ignored(kMessages, R"({"max_tokens":4,"messages":[
          {"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},
                                    {"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}],
          "metadata":{"user_id":"u"}})"),
              ElementsAre("messages[0].content[0].cache_control", "metadata"));
}

TEST(BlockMessages, NamesOfToolsAreAsLongAsAnthropics) {
  const auto read = [](size_t bytes) {
    return Parse(kMessages, fmt::format(R"({{"max_tokens":4,"messages":[{{"role":"user",)"
                                        R"("content":"a"}}],"tools":[{{"name":"{}"}}]}})",
                                        std::string(bytes, 'n')))
        .params.has_value();
  };
  EXPECT_TRUE(read(128));
  EXPECT_FALSE(read(129));
}

TEST(BlockMessages, NotesOnTextsAreReportedWhereThereAreAny) {
  static constexpr char kTexts[] =
      R"({{"max_tokens":4,"system":[{{"type":"text","text":"s","citations":[]}}],
      "messages":[{{"role":"user","content":[{{"type":"text","text":"a","citations":{0}}}]}}]}})";
  for (const char* none : {"[]", "null"}) {
    EXPECT_THAT(Ignored(kMessages, fmt::format(kTexts, none)), ElementsAre()) << none;
  }
  EXPECT_THAT(Ignored(kMessages, fmt::format(kTexts, R"([{"a":1}])")),
              ElementsAre("messages[0].content[0].citations"));
}

TEST(ResponsesInput, NotesOnTextsAreReportedWhereThereAreAny) {
  static constexpr char kTexts[] =
      R"({{"input":[{{"role":"user","content":"a"}},{{"role":"assistant",
      "content":[{{"type":"output_text","text":"b","annotations":{}}}]}}]}})";
  EXPECT_THAT(Ignored(kResponses, fmt::format(kTexts, "[]")), ElementsAre());
  EXPECT_THAT(Ignored(kResponses, fmt::format(kTexts, R"([{"type":"url_citation"}])")),
              ElementsAre("input[1].content[0].annotations"));
}

TEST(BlockMessages, ToolsAndThinking) {
  const Parsed parsed = Parse(kMessages, R"({"max_tokens":4,
      "messages":[{"role":"user","content":"a"}],"thinking":{"type":"disabled"},
      "tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}]})");
  ASSERT_TRUE(parsed.params) << parsed.params.error().message;
  EXPECT_EQ(parsed.params->thinking, false);
  // Rows of chat's that these are read by.
  for (const char* members :
       {R"("tool_choice":{"type":"auto","disable_parallel_tool_use":true})",
        R"("thinking":{"type":"enabled","budget_tokens":1024.0})",
        R"("tool_choice":{"type":"none"})", R"("thinking":{"type":"enabled","budget_tokens":1024})",
        R"("thinking":{"type":"adaptive"},"output_config":{"effort":"low"})"}) {
    const Parsed more =
        Parse(kMessages,
              fmt::format(R"({{"max_tokens":4,"messages":[{{"role":"user","content":"a"}}],{}}})",
                          members));
    EXPECT_TRUE(more.params) << members << more.params.error().message;
  }
  for (const char* type : {"adaptive", "disabled"}) {
    EXPECT_THAT(
        Ignored(kMessages,
                fmt::format(R"({{"max_tokens":4,"messages":[{{"role":"user","content":"a"}}],)"
                            R"("thinking":{{"type":"{}","budget_tokens":1024}}}})",
                            type)),
        ElementsAre("thinking.budget_tokens"));
  }
  EXPECT_EQ(json::serialize(*parsed.params->tools),
            R"([{"type":"function","function":{"name":"f","description":"d",)"
            R"("parameters":{"type":"object"}}}])");
}

}  // namespace
}  // namespace vivace::server
