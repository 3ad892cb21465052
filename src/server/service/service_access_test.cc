// What of the service is guarded, and what a browser of another origin may read.
#include <gmock/gmock.h>

#include "server/testing/service_harness.h"

namespace vivace::server {
namespace {

using ::testing::Contains;
using testing::FakeExchange;
using ::testing::Key;
using ::testing::Pair;

class ServiceAccess : public testing::ServiceTest {
 protected:
  ServiceAccess() {
    ServedModel model;
    model.names = {"m"};
    model.tokenizer = testing::TestTokenizer();
    model.vocab = testing::kTestVocab;
    ServiceOptions options;
    options.keys = *LoadKeys({.api_keys = {"user"}, .admin_keys = {"admin"}});
    options.cors = *Cors::Make({.origins = {"https://a.example"}});
    guarded_ = std::make_unique<Service>(std::move(model), &engine_, std::move(options));
  }
  ~ServiceAccess() override { guarded_->StopPrep(); }

  HttpServer::Refusal Check(std::string method, std::string path, Headers headers = {}) {
    FakeExchange exchange(std::move(method), std::move(path), "");
    exchange.set_headers(std::move(headers));
    return guarded_->Check(exchange.request());
  }
  int StatusOf(std::string method, std::string path, const std::string& key = "") {
    Headers headers;
    if (!key.empty()) headers.emplace_back("authorization", "Bearer " + key);
    return Check(std::move(method), std::move(path), std::move(headers)).status;
  }

  std::unique_ptr<Service> guarded_;
};

TEST_F(ServiceAccess, EverythingButProbesAndThePageNeedsAKey) {
  for (const char* path : {"/health", "/ready", "/live", "/", "/web/app.js"}) {
    EXPECT_EQ(StatusOf("GET", path), 0) << path;
  }
  for (const char* path :
       {"/v1/models", "/v1/models/m", "/models", "/metrics", "/version", "/openapi.json",
        "/v1/requests", "/v1/requests/x/timeline", "/nowhere", "/v1/../health"}) {
    EXPECT_EQ(StatusOf("GET", path), 401) << path;
  }
  for (const char* path : {"/v1/completions", "/v1/chat/completions", "/v1/messages",
                           "/v1/embeddings", "/tokenize", "/detokenize", "/reset_prefix_cache"}) {
    EXPECT_EQ(StatusOf("POST", path), 401) << path;
    EXPECT_EQ(StatusOf("POST", path, "wrong"), 401) << path;
    EXPECT_EQ(StatusOf("OPTIONS", path), 401) << path;
  }
  EXPECT_EQ(StatusOf("GET", "/v1/models", "user"), 0);
  EXPECT_EQ(StatusOf("POST", "/v1/completions", "user"), 0);
  EXPECT_EQ(StatusOf("POST", "/reset_prefix_cache", "user"), 403);
  EXPECT_EQ(StatusOf("POST", "/reset_prefix_cache", "admin"), 0);
  EXPECT_EQ(StatusOf("GET", "/nowhere", "user"), 404);
}

TEST_F(ServiceAccess, NewKeysCountAtOnce) {
  guarded_->UseKeys(*LoadKeys({.api_keys = {"next"}}));
  EXPECT_EQ(StatusOf("GET", "/v1/models", "user"), 401);
  EXPECT_EQ(StatusOf("GET", "/v1/models", "next"), 0);
}

TEST_F(ServiceAccess, PagesOfAnotherOriginReadAnswersAndErrors) {
  const Headers origin = {{"origin", "https://a.example"}};
  const auto allowed = Pair("access-control-allow-origin", "https://a.example");
  EXPECT_THAT(Check("GET", "/v1/models", origin).headers, Contains(allowed));  // the 401
  EXPECT_THAT(Check("GET", "/health", origin).headers, Contains(allowed));     // of the answer
  Headers preflight = origin;
  preflight.emplace_back("access-control-request-method", "POST");
  const auto answer = Check("OPTIONS", "/v1/chat/completions", preflight);  // without a key
  EXPECT_EQ(answer.status, 204);
  EXPECT_THAT(answer.headers, Contains(allowed));
  EXPECT_THAT(Check("GET", "/health", {{"origin", "https://b.example"}}).headers,
              ::testing::Not(Contains(Key("access-control-allow-origin"))));
}

}  // namespace
}  // namespace vivace::server
