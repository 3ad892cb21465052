// A whole service without sockets: real parsing, templates and tokenising, a scripted engine, a
// loop that the test turns.
#pragma once

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/service/service.h"
#include "server/testing/fake_engine.h"
#include "server/testing/fake_http.h"
#include "server/testing/test_tokenizer.h"

namespace vivace::server::testing {

inline constexpr char kTestTemplate[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if tools %}{{ tools[0].function.name }}{% endif %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

// The data lines of a stream, without "data: " and with "[DONE]" as the last.
inline std::vector<std::string> Events(const std::string& body) {
  std::vector<std::string> events;
  size_t at = 0;
  while (at < body.size()) {
    const size_t end = body.find("\n\n", at);
    if (end == std::string::npos || body.compare(at, 6, "data: ") != 0) {
      ADD_FAILURE() << "not an event: " << body.substr(at);
      return events;
    }
    events.push_back(body.substr(at + 6, end - at - 6));
    at = end + 2;
  }
  return events;
}

class ServiceTest : public ::testing::Test {
 protected:
  explicit ServiceTest(std::string chat_template = kTestTemplate, AdmissionLimits limits = {},
                       int ping_interval_ms = 0,
                       std::shared_ptr<GrammarCompiler> grammar = nullptr) {
    ServedModel model;
    model.names = {"m", "other-name"};
    model.tokenizer = TestTokenizer();
    model.chat_template = MakeTemplate(chat_template);
    model.eos_ids = {kImEnd};
    model.grammar = std::move(grammar);
    model.vocab = kTestVocab;
    model.max_model_len = engine_.limits().max_model_len;
    model.created_s = 1;
    model.longest_token_bytes = LongestTokenBytes(*model.tokenizer);
    engine_.script = [](const GenerationRequest&, int32_t, int32_t) { return kSpaceHello; };
    service_ = std::make_unique<Service>(
        std::move(model), &engine_,
        ServiceOptions{
            .prep_threads = 1, .ping_interval_ms = ping_interval_ms, .admission = limits});
    service_->Attach(&http_);
  }
  ~ServiceTest() override { service_->StopPrep(); }

  static std::shared_ptr<const ChatTemplate> MakeTemplate(const std::string& source) {
    auto parsed = ChatTemplate::Parse(source);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return std::make_shared<const ChatTemplate>(std::move(*parsed));
  }

  // Hands a request to the service as the HTTP layer does: its headers, then all of it. What prep
  // does is not waited for.
  std::shared_ptr<FakeExchange> Send(std::string method, std::string path, std::string body = "") {
    auto exchange =
        std::make_shared<FakeExchange>(std::move(method), std::move(path), std::move(body));
    HttpServer::Refusal refusal = service_->Check(exchange->request());
    if (refusal.status != 0) {
      exchange->Send(refusal.status, std::move(refusal.headers), std::move(refusal.body));
      return exchange;
    }
    exchange->set_ticket(std::move(refusal.ticket));
    service_->Handle(exchange);
    return exchange;
  }
  // And waits until it is prepared: refused, or in the engine.
  std::shared_ptr<FakeExchange> Post(std::string path, std::string body) {
    auto exchange = Send("POST", std::move(path), std::move(body));
    if (!exchange->complete()) {
      EXPECT_TRUE(http_.RunPosted());
    }
    return exchange;
  }
  // And turns the engine until it has nothing to do.
  std::shared_ptr<FakeExchange> Ask(std::string path, std::string body) {
    auto exchange = Post(std::move(path), std::move(body));
    RunEngine();
    return exchange;
  }
  void Step() {
    engine_.Step();
    http_.RunWake();
  }
  void RunEngine() {
    while (engine_.Step()) http_.RunWake();
    http_.RunWake();
  }

  static json::value Json(const FakeExchange& exchange) {
    boost::system::error_code ec;
    json::value value = json::parse(exchange.body(), ec);
    EXPECT_FALSE(ec) << exchange.body();
    return value;
  }
  static json::value ErrorOf(const FakeExchange& exchange) {
    const json::value body = Json(exchange);
    const auto* error = body.is_object() ? body.get_object().if_contains("error") : nullptr;
    if (error == nullptr) {
      ADD_FAILURE() << "no error: " << exchange.body();
      return json::object{{"param", ""}, {"code", ""}, {"message", ""}};
    }
    return *error;
  }
  // Text and finish reason of choice `i` of a completion.
  static std::string TextOf(const json::value& answer, size_t i = 0) {
    const json::value& choice = answer.at("choices").at(i);
    const auto* message = choice.get_object().if_contains("message");
    return std::string(message != nullptr ? message->at("content").as_string()
                                          : choice.at("text").as_string());
  }
  static std::string FinishOf(const json::value& answer, size_t i = 0) {
    return std::string(answer.at("choices").at(i).at("finish_reason").as_string());
  }

  FakeHttp http_;
  FakeEngine engine_{kTestVocab, 512, {kImEnd}};
  std::unique_ptr<Service> service_;
};

}  // namespace vivace::server::testing
