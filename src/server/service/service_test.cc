// What the service refuses and shows: routes, broken bodies, admission, health, small endpoints.
#include "server/service/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/clock.h"
#include "base/limits.h"
#include "server/service/health.h"
#include "server/testing/prometheus.h"
#include "server/testing/service_harness.h"
#include "support/paths.h"

namespace vivace::server {
namespace {

using testing::FakeExchange;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kSpaceHello;
using ::testing::Not;
using testing::PrometheusPage;
using testing::ServiceTest;

constexpr char kChatPath[] = "/v1/chat/completions";
constexpr char kGoodChat[] = R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":2})";

using RoutesTest = ServiceTest;

TEST_F(RoutesTest, ModelsPathsAndMethods) {
  struct Case {
    const char* method;
    const char* path;
    int status;
    const char* allow;
  };
  const Case cases[] = {
      {"GET", "/v1/models", 200, ""},
      {"HEAD", "/v1/models", 200, ""},
      {"GET", "/v1/models/m", 200, ""},
      {"GET", "/v1/models/other-name", 200, ""},
      {"GET", "/v1/models/other%2Dname", 200, ""},
      {"GET", "/v1/models/nope", 404, ""},
      {"GET", "/v1/models/", 404, ""},
      {"GET", "/health", 200, ""},
      {"HEAD", "/health", 200, ""},
      {"GET", "/ready", 200, ""},
      {"GET", "/live", 200, ""},
      {"GET", "/version", 200, ""},
      {"GET", "/", 200, ""},
      {"POST", "/v1/nope", 404, ""},
      {"GET", "/v1/chat", 404, ""},
      {"GET", "/%00", 404, ""},
      {"GET", kChatPath, 405, "POST"},
      {"DELETE", "/v1/models", 405, "GET, HEAD"},
      {"PUT", "/tokenize", 405, "POST"},
      {"OPTIONS", "/metrics", 405, "GET, HEAD"},
  };
  for (const Case& c : cases) {
    const auto exchange = Send(c.method, c.path);
    EXPECT_EQ(exchange->status(), c.status) << c.method << ' ' << c.path;
    EXPECT_EQ(exchange->header("allow"), c.allow) << c.path;
    if (c.status >= 400) ErrorOf(*exchange);
  }
  EXPECT_EQ(ErrorOf(*Send("GET", "/v1/models/nope")).at("code").as_string(), "model_not_found");
  const json::value list = Json(*Send("GET", "/v1/models"));
  EXPECT_EQ(list.at("data").as_array().size(), 2u);
  EXPECT_EQ(list.at("data").at(0).at("id").as_string(), "m");
  EXPECT_EQ(list.at("data").at(0).at("max_model_len").as_int64(), 512);
}

TEST_F(RoutesTest, ModelOfTheBody) {
  const auto body = [](const char* model) {
    return fmt::format(
        R"({{"model":{},"messages":[{{"role":"user","content":"Hi"}}],"max_tokens":1}})", model);
  };
  EXPECT_EQ(Ask(kChatPath, body("\"m\""))->status(), 200);
  EXPECT_EQ(Ask(kChatPath, body("\"other-name\""))->status(), 200);
  EXPECT_EQ(Ask(kChatPath, kGoodChat)->status(), 200);
  const auto unknown = Post(kChatPath, body("\"nope\""));
  EXPECT_EQ(unknown->status(), 404);
  EXPECT_EQ(ErrorOf(*unknown).at("param").as_string(), "model");
  EXPECT_EQ(ErrorOf(*unknown).at("code").as_string(), "model_not_found");
  EXPECT_EQ(Post(kChatPath, body("5"))->status(), 400);
  EXPECT_EQ(Ask(kChatPath, body("null"))->status(), 200);  // as if it were absent
}

TEST_F(RoutesTest, BrokenBodies) {
  const std::string deep(100'000, '[');
  const std::string deep_end(100'000, ']');
  const std::string bodies[] = {
      "",
      "{:",
      "{\"model\":\"m\"",
      "[]",
      "null",
      "\"x\"",
      "{\"prompt\":\"x\",\"model\":\"m\"}garbage",
      "{\"model\":\"m\",\"prompt\":\"x\",\"y\":" + deep + deep_end + "}",
      fmt::format("{{\"tools\":{}{}}}", std::string(3000, '['), std::string(3000, ']')),
      "{\"prompt\":NaN}",
      "{\"prompt\":\"x\",\"max_tokens\":1,\"max_tokens\":2}",
      "{\"prompt\":\"x\",\"temperature\":1e400}",
      "{\"prompt\":\"\xFF\"}",
      deep};
  for (const std::string& body : bodies) {
    const auto exchange = Post("/v1/completions", body);
    EXPECT_EQ(exchange->status(), 400) << body.substr(0, 60);
    ErrorOf(*exchange);
    EXPECT_EQ(Ask("/v1/completions", R"({"prompt":"x","max_tokens":1})")->status(), 200);
  }
  EXPECT_EQ(Ask("/v1/completions", R"({"prompt":"x","max_tokens":1,"foo":1})")->status(), 200);
}

TEST_F(RoutesTest, ExplicitNullsAreAbsent) {
  const std::string plain = R"({"messages":[{"role":"user","content":"Hi"}],"temperature":0)";
  const json::value expected = Json(*Ask(kChatPath, plain + "}"));
  std::string nulls = plain;
  for (const char* name :
       {"max_tokens", "max_completion_tokens", "stop", "tools", "tool_choice", "response_format",
        "logit_bias", "logprobs", "top_logprobs", "n", "seed", "top_p", "user", "stream",
        "stream_options", "presence_penalty", "frequency_penalty"}) {
    nulls += fmt::format(R"(,"{}":null)", name);
  }
  const json::value with_nulls = Json(*Ask(kChatPath, nulls + "}"));
  EXPECT_EQ(with_nulls.at("choices"), expected.at("choices"));
  EXPECT_FALSE(with_nulls.as_object().contains("vivace"));
  const json::value empties =
      Json(*Ask(kChatPath, plain + R"(,"stop":[],"logit_bias":{},"tools":[]})"));
  EXPECT_EQ(empties.at("choices"), expected.at("choices"));
  EXPECT_EQ(Post(kChatPath, R"({"messages":null})")->status(), 400);
}

// Ids outside the vocabulary, in every field, while another request runs.
TEST_F(RoutesTest, BadIdsHarmNobody) {
  const auto running = Post("/v1/completions", R"({"prompt":"x","max_tokens":5})");
  struct Bad {
    const char* member;
    const char* field;
  };
  const Bad cases[] = {
      {R"("prompt":"x","logit_bias":{"267":5})", "logit_bias"},
      {R"("prompt":"x","logit_bias":{"-1":5})", "logit_bias"},
      {R"("prompt":"x","logit_bias":{"AI":5})", "logit_bias"},
      {R"("prompt":"x","logit_bias":{"5":"5"})", "logit_bias.5"},
      {R"("prompt":"x","stop_token_ids":[267],"min_tokens":1)", "stop_token_ids[0]"},
      {R"("prompt":"x","stop_token_ids":[-1])", "stop_token_ids[0]"},
      {R"("prompt":[-1])", "prompt[0]"},
      {R"("prompt":[267])", "prompt[0]"},
      {R"("prompt":[5279552648203111001])", "prompt[0]"},
      {R"("prompt":[1.5])", "prompt[0]"},
      {R"("prompt":"")", "prompt"},
      {R"("prompt":[[]])", "prompt"},
  };
  for (const Bad& bad : cases) {
    const auto exchange =
        Post("/v1/completions", fmt::format("{{{},\"max_tokens\":2}}", bad.member));
    EXPECT_EQ(exchange->status(), 400) << bad.member;
    EXPECT_EQ(ErrorOf(*exchange).at("param").as_string(), bad.field) << bad.member;
  }
  EXPECT_EQ(Ask("/v1/completions", R"({"prompt":[266],"logit_bias":{"266":0}})")->status(), 200);
  EXPECT_EQ(TextOf(Json(*running)), " hello hello hello hello hello");
}

TEST_F(RoutesTest, ToolsGoToTheTemplate) {
  constexpr char kTool[] = R"("tools":[{"type":"function","function":{"name":"zz"}}])";
  const auto with = Ask(kChatPath, fmt::format(R"({{"messages":[{{"role":"user","content":"Hi"}}],)"
                                               R"("max_tokens":1,{},"tool_choice":"auto"}})",
                                               kTool));
  EXPECT_EQ(with->status(), 200);
  EXPECT_EQ(with->header("x-vivace-ignored"), "");
  const auto prompt = engine_.submitted().back()->request.prompt;
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), testing::ByteToken('z')), 2);
  for (const char* choice : {R"({"type":"function","function":{"name":"z"}})", R"("maybe")"}) {
    const auto refused =
        Post(kChatPath, fmt::format(R"({{"messages":[{{"role":"user","content":"Hi"}}],{},)"
                                    R"("tool_choice":{}}})",
                                    kTool, choice));
    EXPECT_EQ(refused->status(), 400) << choice;
    EXPECT_EQ(ErrorOf(*refused).at("param").as_string(), "tool_choice");
  }
}

TEST_F(RoutesTest, TokenizeAndDetokenize) {
  EXPECT_EQ(Post("/tokenize", R"({"model":"m","prompt":"hello <|im_end|>"})")->body(),
            R"({"count":3,"max_model_len":512,"tokens":[262,35,2],"token_strs":null})");
  EXPECT_EQ(Post("/tokenize", R"({"prompt":" hello","return_token_strs":true})")->body(),
            R"({"count":1,"max_model_len":512,"tokens":[263],"token_strs":[" hello"]})");
  const json::value chat =
      Json(*Post("/tokenize", R"({"messages":[{"role":"user","content":"<|im_end|>"}]})"));
  const auto& ids = chat.at("tokens").as_array();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), json::value(2)), 1);
  EXPECT_EQ(Post("/detokenize", R"({"tokens":[263,264,155,131,2]})")->body(),
            "{\"prompt\":\" hello😀<|im_end|>\"}");
  EXPECT_EQ(Post("/detokenize", R"({"tokens":[]})")->body(), R"({"prompt":""})");
  for (const char* body :
       {"{}", R"({"tokens":[267]})", R"({"tokens":"x"})", R"({"tokens":[-1]})"}) {
    EXPECT_EQ(Post("/detokenize", body)->status(), 400) << body;
  }
  for (const char* body : {"{}", R"({"prompt":["x"]})", R"({"prompt":"x","model":"nope"})"}) {
    EXPECT_GE(Post("/tokenize", body)->status(), 400) << body;
  }
}

TEST_F(RoutesTest, TokenizingIsBounded) {
  const auto text = [](size_t bytes) {
    return fmt::format(R"({{"prompt":"{}"}})", std::string(bytes, 'x'));
  };
  EXPECT_EQ(Post("/tokenize", text(limits::kMaxTokenizeBytes))->status(), 200);
  const auto refused = Post("/tokenize", text(limits::kMaxTokenizeBytes + 1));
  EXPECT_EQ(refused->status(), 400);
  EXPECT_THAT(refused->body(), HasSubstr("2097153 bytes; at most 2097152"));
  const auto chat = Post("/tokenize", fmt::format(R"({{"messages":[{{"role":"user","content":)"
                                                  R"("{}"}}]}})",
                                                  std::string(limits::kMaxTokenizeBytes, 'x')));
  EXPECT_EQ(chat->status(), 400);
  EXPECT_EQ(ErrorOf(*chat).at("param").as_string(), "messages");
  std::string ids = "5";
  for (size_t i = 1; i < limits::kMaxDetokenizeTokens; ++i) ids += ",5";
  EXPECT_EQ(Post("/detokenize", fmt::format(R"({{"tokens":[{}]}})", ids))->status(), 200);
  const auto many = Post("/detokenize", fmt::format(R"({{"tokens":[{},5]}})", ids));
  EXPECT_EQ(many->status(), 400);
  EXPECT_THAT(many->body(), HasSubstr("524289 tokens; at most 524288"));
}

TEST_F(RoutesTest, MembersWithoutEffectAreNamed) {
  const auto named = [&](const char* path, const char* body) {
    const auto exchange = Ask(path, body);
    EXPECT_EQ(exchange->status(), 200) << exchange->body();
    return exchange->header("x-vivace-ignored");
  };
  EXPECT_EQ(named("/tokenize", R"({"prompt":"a","foo":1})"), "foo");
  EXPECT_EQ(named("/tokenize", R"({"prompt":"a","add_special_tokens":false,)"
                               R"("return_token_strs":true,"truncate_prompt_tokens":1})"),
            "");
  for (const char* member :
       {R"("chat_template_kwargs":{"a":1})", R"("documents":[{"a":"b"}])",
        R"("tools":[{"type":"function","function":{"name":"f"}}])", R"("reasoning_effort":"low")",
        R"("continue_final_message":true)", R"("add_generation_prompt":false)"}) {
    const std::string name(member + 1, std::string_view(member).find(':') - 2);
    EXPECT_EQ(named("/tokenize", fmt::format(R"({{"prompt":"a",{}}})", member).c_str()), name);
    const auto strict =
        Ask("/tokenize", fmt::format(R"({{"prompt":"a",{},"strict":true}})", member));
    EXPECT_EQ(strict->status(), 400) << member;
    EXPECT_EQ(ErrorOf(*strict).at("param").as_string(), name);
  }
  EXPECT_EQ(named("/detokenize", R"({"tokens":[5],"foo":1})"), "foo");
  constexpr char kMessages[] =
      R"({"messages":[{"role":"user","content":"a","foo":1,"name":"n"},)"
      R"({"role":"user","content":"b","foo":2,"bar":3,"refusal":null}],"max_tokens":1})";
  EXPECT_EQ(named(kChatPath, kMessages), "messages[0].foo,messages[1].bar,messages[0].name");
}

TEST_F(RoutesTest, LogprobsOfAnAnswerAreBounded) {
  const auto body = [](int n, int alternatives, int tokens, bool stream) {
    return fmt::format(R"({{"prompt":"x","n":{},"logprobs":{},"max_tokens":{},"stream":{}}})", n,
                       alternatives, tokens, stream);
  };
  for (const bool stream : {false, true}) {
    // 100 x 200 x (1 + 19) is the limit itself.
    EXPECT_EQ(Ask("/v1/completions", body(100, 19, 200, stream))->status(), 200);
    const auto refused = Post("/v1/completions", body(100, 19, 201, stream));
    EXPECT_EQ(refused->status(), 400);
    EXPECT_EQ(ErrorOf(*refused).at("param").as_string(), "logprobs");
    EXPECT_THAT(refused->body(), HasSubstr("402000 log-probabilities"));
    EXPECT_THAT(refused->body(), HasSubstr("at most 400000"));
  }
  EXPECT_EQ(service_->open_requests(), 0);
  EXPECT_EQ(Ask("/v1/completions", R"({"prompt":"x","n":100,"max_tokens":201})")->status(), 200);
}

TEST_F(RoutesTest, HealthFollowsTheHeartbeat) {
  engine_.figures.step_started_ns = SteadyNanos();
  EXPECT_EQ(Send("GET", "/health")->status(), 200);
  engine_.figures.step_started_ns = SteadyNanos() - (kHungStepSeconds + 2) * kNanosPerSecond;
  const auto hung = Send("GET", "/health");
  EXPECT_EQ(hung->status(), 503);
  EXPECT_EQ(ErrorOf(*hung).at("code").as_string(), "engine_unavailable");
  EXPECT_EQ(Send("GET", "/live")->status(), 200);
  engine_.figures.step_started_ns = 0;
  EXPECT_EQ(Send("GET", "/ready")->status(), 200);
}

TEST_F(RoutesTest, MetricsCountRequestsAndNeverClientNames) {
  const auto page = [&] { return PrometheusPage(Send("GET", "/metrics")->body()); };
  EXPECT_THAT(page().problems(), IsEmpty());
  Ask(kChatPath, kGoodChat);
  Ask(kChatPath, R"({"messages":[{"role":"user","content":"Hi"}],"max_tokens":2,"stream":true})");
  Post(kChatPath, R"({"model":"a\"b\nc","messages":[{"role":"user","content":"Hi"}]})");
  Send("GET", "/nowhere");
  const PrometheusPage after = page();
  EXPECT_THAT(after.problems(), IsEmpty());
  EXPECT_EQ(after.Value("vllm:request_success_total", {{"finished_reason", "length"}}), 2);
  EXPECT_EQ(after.Value("vllm:e2e_request_latency_seconds_count"), 2);
  EXPECT_EQ(after.Value("vllm:inter_token_latency_seconds_count"), 2);
  EXPECT_EQ(after.Value("vivace:requests_rejected_total", {{"reason", "invalid"}}), 1);
  EXPECT_EQ(after.Value("vivace:requests_rejected_total", {{"reason", "no_route"}}), 1);
  const auto exchange = Send("GET", "/metrics");
  EXPECT_THAT(exchange->header("content-type"), HasSubstr("text/plain; version=0.0.4"));
  EXPECT_THAT(exchange->body(), Not(HasSubstr("a\\\"b")));
}

// A body is as long as the client likes, an answer may take minutes.
TEST_F(RoutesTest, TheBodyDoesNotOutliveItsPreparation) {
  const auto exchange = Post(kChatPath, kGoodChat);
  EXPECT_FALSE(exchange->complete());
  EXPECT_EQ(exchange->request().body, "");
  RunEngine();
  EXPECT_EQ(exchange->status(), 200);
}

TEST_F(RoutesTest, ResetPrefixCache) {
  EXPECT_EQ(Send("POST", "/reset_prefix_cache")->status(), 200);
  EXPECT_EQ(engine_.resets(), 1);
}

class SmallQueueTest : public ServiceTest {
 protected:
  SmallQueueTest()
      : ServiceTest(testing::kTestTemplate, {.max_requests = 2, .max_prep_bytes = 100}) {}
};

TEST_F(SmallQueueTest, FullIsRefusedFromTheHeaders) {
  const auto first = Post(kChatPath, kGoodChat);
  const auto second = Post(kChatPath, kGoodChat);
  const auto third = Send("POST", kChatPath, kGoodChat);
  EXPECT_EQ(third->status(), 503);
  EXPECT_EQ(ErrorOf(*third).at("code").as_string(), "server_is_overloaded");
  EXPECT_NE(third->header("retry-after"), "");
  EXPECT_EQ(Send("GET", "/health")->status(), 200);
  RunEngine();
  EXPECT_EQ(first->status(), 200);
  EXPECT_EQ(second->status(), 200);
  EXPECT_EQ(Ask(kChatPath, kGoodChat)->status(), 200);
}

// A header promises; only what has come holds a place.
TEST_F(SmallQueueTest, BodiesOnTheirWayHoldNoPlace) {
  testing::FakeExchange upload("POST", kChatPath, std::string(100, ' '));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(service_->Check(upload.request()).status, 0);
  EXPECT_EQ(service_->open_requests(), 0);
  const auto first = Post(kChatPath, kGoodChat);
  const auto second = Post(kChatPath, kGoodChat);
  // Its body ends when the places are taken.
  const auto late = std::make_shared<testing::FakeExchange>("POST", kChatPath, kGoodChat);
  service_->Handle(late);
  EXPECT_EQ(late->status(), 503);
  EXPECT_EQ(ErrorOf(*late).at("code").as_string(), "server_is_overloaded");
  RunEngine();
  EXPECT_EQ(first->status(), 200);
  EXPECT_EQ(second->status(), 200);
}

TEST_F(SmallQueueTest, ChoicesTakePlaces) {
  const auto first = Post(kChatPath, kGoodChat);
  const auto many = Post(kChatPath, R"({"messages":[{"role":"user","content":"Hi"}],"n":2})");
  EXPECT_EQ(many->status(), 503);
  EXPECT_EQ(service_->open_requests(), 1);
  RunEngine();
  EXPECT_EQ(first->status(), 200);
  // Alone it may be larger than the queue.
  EXPECT_EQ(Ask(kChatPath, R"({"messages":[{"role":"user","content":"Hi"}],"n":3,"max_tokens":1})")
                ->status(),
            200);
  EXPECT_EQ(service_->open_requests(), 0);
}

TEST_F(SmallQueueTest, BytesInPreparationAreBounded) {
  const std::string body =
      fmt::format(R"({{"prompt":"{}","max_tokens":1}})", std::string(150, 'x'));
  const auto first = Send("POST", "/v1/completions", body);  // alone: let in whatever its size
  const auto second = Send("POST", "/v1/completions", body);
  EXPECT_EQ(second->status(), 503);
  ASSERT_TRUE(http_.RunPosted());
  RunEngine();
  EXPECT_EQ(first->status(), 200);
  EXPECT_EQ(Ask("/v1/completions", body)->status(), 200);
}

class StrictTemplateTest : public ServiceTest {
 protected:
  StrictTemplateTest()
      : ServiceTest(
            "{%- for m in messages -%}{%- if m.role == 'system' -%}"
            "{{ raise_exception('System role not supported') }}{%- endif -%}"
            "{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}"
            "{{ raise_exception('roles must alternate') }}{%- endif -%}"
            "<{{ m.role }}>{{ m.content }}{%- endfor -%}") {}
};

TEST_F(StrictTemplateTest, TheTemplatesOwnSentenceIsA400) {
  for (const char* stream : {"false", "true"}) {
    const auto two =
        Post(kChatPath, fmt::format(R"({{"stream":{},"messages":[{{"role":"user","content":"a"}},)"
                                    R"({{"role":"user","content":"b"}}]}})",
                                    stream));
    EXPECT_EQ(two->status(), 400);
    EXPECT_THAT(two->body(), HasSubstr("roles must alternate"));
    const auto system = Post(
        kChatPath, fmt::format(R"({{"stream":{},"messages":[{{"role":"system","content":"a"}},)"
                               R"({{"role":"user","content":"b"}}]}})",
                               stream));
    EXPECT_EQ(system->status(), 400);
    EXPECT_THAT(system->body(), HasSubstr("System role not supported"));
  }
}

TEST_F(RoutesTest, ContentAsParts) {
  const auto prompt_of = [&](const char* content) {
    const auto exchange = Ask(
        kChatPath,
        fmt::format(R"({{"messages":[{{"role":"user","content":{}}}],"max_tokens":1}})", content));
    EXPECT_EQ(exchange->status(), 200) << exchange->body();
    return testing::TestTokenizer()->Decode(engine_.submitted().back()->request.prompt, false);
  };
  EXPECT_EQ(prompt_of(R"([{"type":"text","text":"Hi"}])"), prompt_of(R"("Hi")"));
  EXPECT_THAT(prompt_of(R"([{"type":"text","text":"Alpha"},{"type":"text","text":"Beta"}])"),
              HasSubstr("Alpha\nBeta"));
  EXPECT_THAT(prompt_of("[]"), HasSubstr("user\n<|im_end|>"));
  EXPECT_EQ(Post(kChatPath, R"({"messages":[{"role":"user","content":[{"type":"image_url",)"
                            R"("image_url":{"url":"data:,"}}]}]})")
                ->status(),
            400);
}

TEST_F(RoutesTest, ContinueFinalMessage) {
  Ask(kChatPath,
      R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"so"}],)"
      R"("continue_final_message":true,"max_tokens":1})");
  EXPECT_TRUE(testing::TestTokenizer()
                  ->Decode(engine_.submitted().back()->request.prompt, false)
                  .ends_with("<|im_start|>assistant\nso"));
}

// The handed corpus of bad requests, where it is there.
TEST_F(RoutesTest, HandedBadRequests) {
  const std::filesystem::path dir =
      std::filesystem::path(vivace::testing::SourceDir()) / "../shared/cases/bad";
  std::ifstream in(dir / "manifest.json", std::ios::binary);
  if (!in) GTEST_SKIP() << "needs ../shared/cases/bad";
  const json::value manifest = json::parse(std::string{std::istreambuf_iterator<char>(in), {}});
  int run = 0;
  for (const auto& entry : manifest.at("cases").as_array()) {
    const std::string name(entry.at("name").as_string());
    if (!name.starts_with("api/")) continue;
    // Compiled in a process of its own, and so tests/e2e/test_bad_http.py's.
    if (name.starts_with("api/schema_") || name.starts_with("api/grammar_")) continue;
    std::ifstream file(dir / name, std::ios::binary);
    const std::string body{std::istreambuf_iterator<char>(file), {}};
    const auto exchange = Ask(std::string(entry.at("route").as_string()), body);
    const auto& allowed = entry.at("status").as_array();
    EXPECT_NE(std::find(allowed.begin(), allowed.end(), json::value(exchange->status())),
              allowed.end())
        << name << ' ' << exchange->status() << ' ' << exchange->body().substr(0, 300);
    if (exchange->status() >= 400) ErrorOf(*exchange);
    EXPECT_EQ(service_->open_requests(), 0) << name;
    run += 1;
  }
  EXPECT_GT(run, 30);
}

}  // namespace
}  // namespace vivace::server
