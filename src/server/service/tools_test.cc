// Tools and reasoning through the whole service: a scripted engine writes what a model would.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "server/testing/service_harness.h"
#include "server/testing/typed_events.h"

namespace vivace::server {
namespace {

using testing::ByteToken;
using testing::Events;
using testing::kImEnd;
using testing::kTestTemplate;
using testing::ServiceTest;

constexpr char kChat[] = "/v1/chat/completions";
constexpr char kHermes[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if tools %}T={{ tools | length }}{% endif %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking %}<think>\n{% endif %}{% endif %}";
constexpr char kTools[] = R"("tools":[{"type":"function","function":{"name":"now"}},)"
                          R"({"type":"function","function":{"name":"weather","parameters":)"
                          R"({"type":"object","properties":{"city":{"type":"string"}}}}}])";

class ToolsTest : public ServiceTest {
 protected:
  explicit ToolsTest(std::string chat_template = kHermes) : ServiceTest(std::move(chat_template)) {}

  // The model writes `text` and ends.
  void Write(std::string text) {
    engine_.script = [text = std::move(text)](const GenerationRequest&, int32_t, int32_t index) {
      const auto i = static_cast<size_t>(index);
      return i < text.size() ? ByteToken(static_cast<unsigned char>(text[i])) : kImEnd;
    };
  }
  std::string Body(const std::string& members) const {
    return R"({"messages":[{"role":"user","content":"Hi"}])" +
           (members.empty() ? "" : "," + members) + "}";
  }
  json::value Whole(const std::string& members) {
    const auto exchange = Ask(kChat, Body(members));
    EXPECT_EQ(exchange->status(), 200) << exchange->body();
    return Json(*exchange);
  }
  json::value Message(const std::string& members) {
    return Whole(members).at("choices").at(0).at("message");
  }
  std::string PromptText() const {
    return testing::TestTokenizer()->Decode(engine_.submitted().back()->request.prompt, false);
  }
  // The message that a stream's deltas make, and how it ended.
  json::object Streamed(const std::string& members, std::string* finish) {
    const auto exchange = Ask(kChat, Body(members + R"(,"stream":true)"));
    json::object message = {{"content", ""}, {"reasoning", ""}};
    json::array calls;
    const auto add = [](json::value* to, const json::value* more) {
      if (more != nullptr && more->is_string()) {
        *to = std::string(to->as_string()) + std::string(more->as_string());
      }
    };
    for (const std::string& event : Events(exchange->body())) {
      if (event == "[DONE]") continue;
      const json::value chunk = json::parse(event);
      const json::value& choice = chunk.at("choices").at(0);
      const json::object& delta = choice.at("delta").as_object();
      add(&message["content"], delta.if_contains("content"));
      add(&message["reasoning"], delta.if_contains("reasoning"));
      if (const json::value* news = delta.if_contains("tool_calls")) {
        const json::value& call = news->at(0);
        const auto index = static_cast<size_t>(call.at("index").as_int64());
        if (call.as_object().contains("id")) {
          EXPECT_EQ(index, calls.size());
          calls.push_back(call);
        } else {
          EXPECT_EQ(index + 1, calls.size());
          add(&calls[index].at("function").at("arguments"), &call.at("function").at("arguments"));
        }
      }
      if (choice.at("finish_reason").is_string()) *finish = choice.at("finish_reason").as_string();
    }
    if (!calls.empty()) message["tool_calls"] = calls;
    return message;
  }
};

constexpr char kTwoCalls[] =
    "Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Gr\\u00e4z "
    "é\"}}\n"
    "</tool_call>\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";

TEST_F(ToolsTest, CallsOfAWholeAnswer) {
  Write(kTwoCalls);
  const json::value answer = Whole(kTools);
  const json::value& message = answer.at("choices").at(0).at("message");
  EXPECT_EQ(FinishOf(answer), "tool_calls");
  EXPECT_EQ(message.at("content").as_string(), "Let me see.");
  const json::array& calls = message.at("tool_calls").as_array();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].at("type").as_string(), "function");
  EXPECT_EQ(calls[0].at("function").at("name").as_string(), "weather");
  EXPECT_EQ(calls[0].at("function").at("arguments").as_string(), "{\"city\": \"Gr\\u00e4z é\"}");
  EXPECT_EQ(calls[1].at("function").at("name").as_string(), "now");
  EXPECT_TRUE(calls[0].at("id").as_string().starts_with("call_"));
  EXPECT_NE(calls[0].at("id"), calls[1].at("id"));
  EXPECT_EQ(PromptText().find("T=2") != std::string::npos, true);
}

// The model's last token within max_tokens completes the call: nothing is missing.
TEST_F(ToolsTest, ACallCompleteAtTheLimitIsWhole) {
  const std::string text = "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 1}}</tool_call>";
  Write(text);
  const size_t complete = text.find("1}") + 2;
  constexpr char kFlat[] = R"("tools":[{"type":"function","name":"now"}])";
  constexpr char kAnthropic[] = R"("tools":[{"name":"now","input_schema":{"type":"object"}}])";
  for (size_t limit = complete - 1; limit <= text.size(); ++limit) {
    const bool whole = limit >= complete;
    const std::string max = std::to_string(limit);
    const std::string chat = std::string(kTools) + R"(,"max_tokens":)" + max;
    EXPECT_EQ(FinishOf(Whole(chat)), whole ? "tool_calls" : "length") << limit;
    std::string finish;
    Streamed(chat, &finish);
    EXPECT_EQ(finish, whole ? "tool_calls" : "length") << limit;
    const auto messages =
        Ask("/v1/messages", Body(std::string(kAnthropic) + R"(,"max_tokens":)" + max));
    EXPECT_EQ(Json(*messages).at("stop_reason"), whole ? "tool_use" : "max_tokens") << limit;
    const auto responses = Ask("/v1/responses", R"({"input":"Hi",)" + std::string(kFlat) +
                                                    R"(,"max_output_tokens":)" + max + "}");
    EXPECT_EQ(Json(*responses).at("status"), whole ? "completed" : "incomplete") << limit;
    EXPECT_EQ(Json(*responses).at("output").at(0).at("status"), whole ? "completed" : "incomplete");
  }
}

TEST_F(ToolsTest, ContentIsNullBesideCallsOnly) {
  Write("<tool_call>{\"name\": \"now\"}</tool_call>");
  EXPECT_TRUE(Message(kTools).at("content").is_null());
  Write("Hi");
  EXPECT_FALSE(Message(kTools).as_object().contains("tool_calls"));
}

TEST_F(ToolsTest, AStreamMakesTheSameMessage) {
  for (const char* text : {kTwoCalls, "<think>\nHm\n</think>\n\nHi\n", "<tool_call>no</tool_call>",
                           "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 1"}) {
    Write(text);
    const json::value answer = Whole(kTools);
    const json::object& whole = answer.at("choices").at(0).at("message").as_object();
    std::string finish;
    const json::object streamed = Streamed(kTools, &finish);
    EXPECT_EQ(finish, FinishOf(answer));
    const json::value content =
        whole.at("content").is_null() ? json::value("") : whole.at("content");
    EXPECT_EQ(streamed.at("content"), content);
    const json::value* reasoning = whole.if_contains("reasoning");
    EXPECT_EQ(streamed.at("reasoning"), reasoning == nullptr ? json::value("") : *reasoning);
    EXPECT_EQ(streamed.contains("tool_calls"), whole.contains("tool_calls"));
    if (!whole.contains("tool_calls")) continue;
    const json::array& calls = whole.at("tool_calls").as_array();
    ASSERT_EQ(streamed.at("tool_calls").as_array().size(), calls.size());
    for (size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(streamed.at("tool_calls").at(i).at("function"), calls[i].at("function"));
    }
  }
}

// Where no grammar holds the model to it, what comes behind the first call is cut off.
TEST_F(ToolsTest, OneCallIsOneCall) {
  Write(std::string(kTwoCalls) + std::string(500, ' '));
  const std::string one = std::string(kTools) + R"(,"parallel_tool_calls":false)";
  const json::value answer = Whole(one);
  EXPECT_EQ(FinishOf(answer), "tool_calls");
  EXPECT_FALSE(answer.as_object().contains("vivace"));
  EXPECT_LT(answer.at("usage").at("completion_tokens").as_int64(),
            static_cast<int64_t>(sizeof(kTwoCalls)));
  const json::value& message = answer.at("choices").at(0).at("message");
  ASSERT_EQ(message.at("tool_calls").as_array().size(), 1u);
  EXPECT_EQ(message.at("tool_calls").at(0).at("function").at("arguments").as_string(),
            "{\"city\": \"Gr\\u00e4z é\"}");
  std::string finish;
  const json::object streamed = Streamed(one, &finish);
  EXPECT_EQ(finish, "tool_calls");
  ASSERT_EQ(streamed.at("tool_calls").as_array().size(), 1u);
  EXPECT_EQ(streamed.at("tool_calls").at(0).at("function"),
            message.at("tool_calls").at(0).at("function"));

  const auto messages = Ask("/v1/messages", Body(R"("max_tokens":400,"tools":[{"name":"now",)"
                                                 R"("input_schema":{"type":"object"}}],)"
                                                 R"("tool_choice":{"type":"auto",)"
                                                 R"("disable_parallel_tool_use":true})"));
  EXPECT_EQ(Json(*messages).at("stop_reason"), "tool_use");
  EXPECT_EQ(Json(*messages).at("content").as_array().size(), 2u);  // a text and a call
  const auto responses =
      Ask("/v1/responses", R"({"input":"Hi","tools":[{"type":"function","name":"now"}],)"
                           R"("parallel_tool_calls":false})");
  EXPECT_EQ(Json(*responses).at("status"), "completed");
  EXPECT_EQ(Json(*responses).at("output").as_array().size(), 2u);
}

TEST_F(ToolsTest, NoneTellsTheModelOfNoTools) {
  Write("<tool_call>{\"name\": \"now\"}</tool_call>");
  const json::value message = Message(std::string(kTools) + R"(,"tool_choice":"none")");
  EXPECT_EQ(message.at("content").as_string(), "<tool_call>{\"name\": \"now\"}</tool_call>");
  EXPECT_EQ(PromptText().find("T="), std::string::npos);
}

TEST_F(ToolsTest, OnlyAllowedToolsAreTold) {
  Write("Hello");
  const std::string tools(kTools);
  const auto choice = [](const char* mode, const char* name) {
    return fmt::format(R"(,"tool_choice":{{"type":"allowed_tools","allowed_tools":{{"mode":"{}",)"
                       R"("tools":[{{"type":"function","function":{{"name":"{}"}}}}]}}}})",
                       mode, name);
  };
  EXPECT_EQ(Message(tools + choice("auto", "weather")).at("content").as_string(), "Hello");
  EXPECT_NE(PromptText().find("T=1"), std::string::npos);
  const auto unknown = Post(kChat, Body(tools + choice("auto", "other")));
  EXPECT_EQ(unknown->status(), 400);
  EXPECT_EQ(ErrorOf(*unknown).at("param").as_string(), "tool_choice");
  EXPECT_EQ(Post(kChat, Body(choice("auto", "now").substr(1)))->status(), 400) << "no tools";

  // OpenAI's newer shape has no inner objects.
  const auto responses = Ask("/v1/responses", R"({"input":"Hi","tools":[
      {"type":"function","name":"now"},{"type":"function","name":"weather"}],"tool_choice":
      {"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"now"}]}})");
  EXPECT_EQ(responses->status(), 200) << responses->body();
  EXPECT_NE(PromptText().find("T=1"), std::string::npos);
  const auto other =
      Post("/v1/responses", R"({"input":"Hi","tools":[{"type":"function","name":"f"}],
      "tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp"}]}})");
  EXPECT_EQ(other->status(), 400);
}

TEST_F(ToolsTest, WhatCannotBeIsRefused) {
  const std::map<std::string, std::string> cases = {
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("tool_choice":{"type":"function","function":{"name":"g"}})", "tool_choice"},
      {std::string(kTools) + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})",
       "tool_choice"},
      {R"("tools":[{"type":"function","function":{"name":"a.b"}}])", "tools[0].function.name"},
      {R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":7}}}])",
       "tools[0].function.parameters"},
      {R"("functions":[{"name":"f"}])", "functions"},
      {R"("parallel_tool_calls":"no")", "parallel_tool_calls"},
      {R"("thinking_token_budget":-2)", "thinking_token_budget"},
      {R"("reasoning_effort":"huge")", "reasoning_effort"},
  };
  for (const auto& [members, field] : cases) {
    const auto exchange = Post(kChat, Body(members));
    EXPECT_EQ(exchange->status(), 400) << members;
    EXPECT_EQ(ErrorOf(*exchange).at("param").as_string(), field) << members;
  }
  EXPECT_EQ(Ask(kChat, Body(R"("tools":[],"tool_choice":"auto","max_tokens":1)"))->status(), 200);
}

TEST_F(ToolsTest, ThoughtsHaveAMemberOfTheirOwn) {
  Write("<think>\nHm é\n</think>\n\nHi");
  const json::value answer = Whole("\"n\":1");
  const json::value& message = answer.at("choices").at(0).at("message");
  EXPECT_EQ(message.at("content").as_string(), "Hi");
  EXPECT_EQ(message.at("reasoning").as_string(), "Hm é");
  EXPECT_EQ(message.at("reasoning_content"), message.at("reasoning"));
  const auto thought =
      answer.at("usage").at("completion_tokens_details").at("reasoning_tokens").as_int64();
  EXPECT_EQ(thought, static_cast<int64_t>(sizeof("\nHm é\n</think>")));  // and the mark's last byte
  EXPECT_FALSE(Message(R"("include_reasoning":false)").as_object().contains("reasoning"));
}

TEST_F(ToolsTest, AThoughtThatThePromptOpens) {
  Write("Hm\n</think>\n\nHi");
  const json::value message = Message(R"("reasoning_effort":"high")");
  EXPECT_EQ(message.at("reasoning").as_string(), "Hm");
  EXPECT_EQ(message.at("content").as_string(), "Hi");
  EXPECT_NE(PromptText().find("<think>"), std::string::npos);
  Write("Hi");
  EXPECT_EQ(Message(R"("reasoning_effort":"none")").at("content").as_string(), "Hi");
  EXPECT_EQ(PromptText().find("<think>"), std::string::npos);
  // The switch itself wins.
  Message(R"("reasoning_effort":"high","chat_template_kwargs":{"enable_thinking":false})");
  EXPECT_EQ(PromptText().find("<think>"), std::string::npos);
}

std::string NamesOf(const json::value& logprobs) {
  std::string text;
  for (const json::value& entry : logprobs.as_array()) text += entry.at("token").as_string();
  return text;
}

// Neither their log-probabilities nor their ids say what the text leaves out.
TEST_F(ToolsTest, ThoughtsThatAreLeftOutAreLeftOutOfEverything) {
  Write("Hm\n</think>\n\nHi");
  const std::string members = R"("reasoning_effort":"high","include_reasoning":false,)"
                              R"("logprobs":true,"return_token_ids":true)";
  const json::value whole = Whole(members);
  const json::value& choice = whole.at("choices").at(0);
  EXPECT_EQ(NamesOf(choice.at("logprobs").at("content")), "\n\nHi");
  const json::array& ids = choice.at("token_ids").as_array();
  ASSERT_EQ(ids.size(), 5u);  // and the end
  EXPECT_EQ(ids[2], ByteToken('H'));
  EXPECT_EQ(ids[3], ByteToken('i'));
  std::string names;
  for (const std::string& event : Events(Ask(kChat, Body(members + R"(,"stream":true)"))->body())) {
    if (event == "[DONE]") continue;
    const json::value logprobs = json::parse(event).at("choices").at(0).at("logprobs");
    if (!logprobs.is_null()) names += NamesOf(logprobs.at("content"));
  }
  EXPECT_EQ(names, "\n\nHi");
}

// Of the text alone, and the same in a stream: what its deltas carry, and what it says at the end.
TEST_F(ToolsTest, LogprobsOfResponsesAreTheTexts) {
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"<think>\nHm\n</think>\n\nHi <there>", {"Hi <there>"}},
      {"Hi\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>", {"Hi"}},
      {"Hi <tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\nBye <tool",
       {"Hi", "Bye <tool"}},
      {"<tool_call>{\"name\": \"now\"}</tool_call>", {}}};
  for (const auto& [text, stretches] : cases) {
    Write(text);
    const std::string body = R"({"input":"Hi","include":["message.output_text.logprobs"],)"
                             R"("tools":[{"type":"function","name":"now"}])";
    const json::value whole = Json(*Ask("/v1/responses", body + "}"));
    const testing::TypedEvents events(Ask("/v1/responses", body + R"(,"stream":true})")->body());
    std::vector<std::string> said(stretches.size());
    std::vector<json::array> whole_lists, stream_lists(stretches.size());
    for (const json::value& item : whole.at("output").as_array()) {
      if (item.at("type") != "message") continue;
      whole_lists.push_back(item.at("content").at(0).at("logprobs").as_array());
    }
    ASSERT_EQ(whole_lists.size(), stretches.size()) << text;
    std::string last;
    size_t at = 0;
    for (size_t i = 0; i < events.types.size(); ++i) {
      if (events.types[i] != "response.output_text.delta") continue;
      const json::value& event = events.data[i];
      const std::string id(event.at("item_id").as_string());
      if (!last.empty() && id != last) ++at;
      last = id;
      ASSERT_LT(at, stretches.size());
      for (const json::value& entry : event.at("logprobs").as_array()) {
        stream_lists[at].push_back(entry);
      }
    }
    for (size_t i = 0; i < stretches.size(); ++i) {
      EXPECT_EQ(stream_lists[i], whole_lists[i]) << text;
      EXPECT_THAT(NamesOf(whole_lists[i]), ::testing::HasSubstr(stretches[i])) << text;
      EXPECT_THAT(NamesOf(whole_lists[i]), ::testing::Not(::testing::HasSubstr("Hm"))) << text;
      EXPECT_THAT(NamesOf(whole_lists[i]), ::testing::Not(::testing::HasSubstr("name"))) << text;
    }
    const json::array& output = events.data.back().at("response").at("output").as_array();
    ASSERT_EQ(output.size(), whole.at("output").as_array().size());
    for (size_t i = 0; i < output.size(); ++i) {
      const json::value* content = output[i].as_object().if_contains("content");
      if (content == nullptr) continue;
      EXPECT_EQ(*content, whole.at("output").at(i).at("content")) << text;
    }
  }
}

TEST_F(ToolsTest, IdsAreNeverTheSame) {
  Write("<tool_call>{\"name\": \"now\"}</tool_call>");
  std::set<std::string> ids;
  const json::value answer = Whole(std::string(kTools) + R"(,"n":16)");
  for (const json::value& choice : answer.at("choices").as_array()) {
    ids.insert(std::string(choice.at("message").at("tool_calls").at(0).at("id").as_string()));
  }
  EXPECT_EQ(ids.size(), 16u);
}

// A template that knows no tools.
class DescribedToolsTest : public ToolsTest {
 protected:
  DescribedToolsTest()
      : ToolsTest("{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}") {}
};

// Their format has no marks.
TEST_F(DescribedToolsTest, OneCallIsOneCall) {
  for (const char* between : {"\n", "; ", ",\n"}) {
    const std::string call = R"({"name": "now", "arguments": {}})";
    for (const std::string& text : {call + between + call, "[" + call + ", " + call + "]"}) {
      Write(text);
      const json::value both = Message(kTools);
      ASSERT_EQ(both.at("tool_calls").as_array().size(), 2u) << text;
      const std::string one = std::string(kTools) + R"(,"parallel_tool_calls":false)";
      EXPECT_EQ(Message(one).at("tool_calls").as_array().size(), 1u) << text;
      std::string finish;
      EXPECT_EQ(Streamed(one, &finish).at("tool_calls").as_array().size(), 1u) << text;
      EXPECT_EQ(finish, "tool_calls");
    }
  }
}

// Where the output ends in the middle of the second, too.
TEST_F(DescribedToolsTest, TheBeginningOfACallThatIsNotWantedIsNoContent) {
  const std::string call = R"({"name": "now", "arguments": {}})";
  const std::string one = std::string(kTools) + R"(,"parallel_tool_calls":false)";
  for (size_t size = 1; size < call.size(); size += 4) {
    Write(call + "\n" + call.substr(0, size));
    const json::value message = Message(one);
    EXPECT_EQ(message.at("tool_calls").as_array().size(), 1u) << size;
    EXPECT_TRUE(message.at("content").is_null()) << size << ' ' << message.at("content");
    std::string finish;
    const json::object streamed = Streamed(one, &finish);
    EXPECT_EQ(finish, "tool_calls") << size;
    EXPECT_EQ(streamed.at("tool_calls").as_array().size(), 1u) << size;
  }
}

TEST_F(DescribedToolsTest, AreToldInASystemMessage) {
  Write("{\"name\": \"weather\", \"arguments\": {\"city\": \"Graz\"}}");
  const json::value answer = Whole(std::string(kTools) + R"(,"max_tokens":100)");
  EXPECT_EQ(FinishOf(answer), "tool_calls");
  EXPECT_FALSE(answer.as_object().contains("vivace"));
  const std::string prompt = PromptText();
  EXPECT_TRUE(prompt.starts_with("[system]You can call these functions:\n{\"name\":\"now\"}\n"));
  EXPECT_TRUE(prompt.ends_with("[user]Hi"));
}

TEST_F(DescribedToolsTest, CallsAndResultsOfTheConversationAreText) {
  Write("Fine");
  const auto exchange =
      Ask(kChat, R"({"messages":[{"role":"system","content":"S"},{"role":"user","content":"Hi"},)"
                 R"({"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",)"
                 R"("function":{"name":"now","arguments":"{}"}}]},)"
                 R"({"role":"tool","tool_call_id":"1","content":"noon"},)"
                 R"({"role":"tool","tool_call_id":"2","content":"night"}],"max_tokens":9})");
  EXPECT_EQ(exchange->status(), 200) << exchange->body();
  EXPECT_EQ(PromptText(),
            "[system]S[user]Hi[assistant]{\"name\":\"now\",\"arguments\":{}}"
            "[user]Result of the call:\n\nnoon\n\nResult of the call:\n\nnight");
}

}  // namespace
}  // namespace vivace::server
