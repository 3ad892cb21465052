// The whole server on a real socket, with a scripted engine: it answers, drains and stops.
#include "server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "server/http/test_client.h"
#include "server/testing/fake_engine.h"
#include "server/testing/test_tokenizer.h"

namespace vivace::server {
namespace {

using testing::Answer;
using testing::Client;
using ::testing::HasSubstr;

class OpenAiServer : public ::testing::Test {
 protected:
  void Start(int shutdown_timeout_s) {
    ServerConfig config;
    config.http.port = 0;
    config.served_model_names = {"m"};
    config.shutdown_timeout_s = shutdown_timeout_s;
    ServerModel model;
    // Its steps are never turned: what is asked of it stays under way.
    model.engine = std::make_unique<testing::FakeEngine>(testing::kTestVocab, 512,
                                                         std::vector<TokenId>{testing::kImEnd});
    model.tokenizer = testing::TestTokenizer();
    model.eos_ids = {testing::kImEnd};
    auto server = Server::Create(config, std::move(model));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    thread_ = std::thread([this] { server_->Run(); });
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  void TearDown() override {
    if (thread_.joinable()) server_->StopNow();
    Join();
  }

  Answer Ask(std::string_view head) {
    Client client(server_->port());
    client.Send(head);
    return client.Read();
  }

  static constexpr char kHealth[] = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
  static constexpr char kGenerate[] =
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{\"prompt\":\"x\"}";

  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TEST_F(OpenAiServer, AnswersOnItsPort) {
  Start(30);
  EXPECT_EQ(Ask(kHealth).status, 200);
  const Answer refused =
      Ask("POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr(R"("param":"prompt")"));
  EXPECT_EQ(Ask("GET /nope HTTP/1.1\r\nHost: x\r\n\r\n").status, 404);
  // Without a chat template.
  const Answer chat =
      Ask("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 44\r\n\r\n"
          R"({"messages":[{"role":"user","content":"x"}]})");
  EXPECT_EQ(chat.status, 400);
  EXPECT_THAT(chat.body, HasSubstr("no_chat_template"));
}

TEST_F(OpenAiServer, AnIdleDrainIsOverAtOnce) {
  Start(30);
  EXPECT_EQ(Ask(kHealth).status, 200);
  server_->BeginDrain();
  server_->BeginDrain();
  Join();
}

TEST_F(OpenAiServer, ADrainsTimeoutEndsWhatIsLeft) {
  Start(0);
  Client client(server_->port());
  client.Send(kGenerate);
  // Until it is in the engine's hands.
  while (Ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
             .body.find("vllm:request_params_n_count{model_name=\"m\"} 1") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  server_->BeginDrain();
  const Answer answer = client.Read();
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("shutting_down"));
  Join();
}

TEST_F(OpenAiServer, StopNowDoesNotWait) {
  Start(3600);
  Client client(server_->port());
  client.Send(kGenerate);
  server_->BeginDrain();
  server_->StopNow();
  Join();
}

TEST(OpenAiServerConfig, NeedsAName) {
  EXPECT_EQ(Server::Create({}, {}).error().reason, "no_model_name");
}

TEST(OpenAiServerConfig, NamesAreText) {
  for (const char* name : {"", "a\nb", "\x7F", "\xFF", "caf\xC3"}) {
    ServerConfig config;
    config.served_model_names = {"m", name};
    EXPECT_EQ(Server::Create(config, {}).error().reason, "bad_model_name") << name;
  }
}

}  // namespace
}  // namespace vivace::server
