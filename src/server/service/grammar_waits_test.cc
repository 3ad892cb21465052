// Requests that wait for their grammar: seen while they do, and ended by their limits and clients.
#include "server/service/grammar_waits.h"

#include <gmock/gmock.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "server/testing/service_harness.h"

namespace vivace::server {
namespace {

using testing::FakeExchange;
using ::testing::HasSubstr;
using testing::ServiceTest;

class AnyOutput final : public CompiledGrammar {
 public:
  int32_t shortest_tokens() const override { return 1; }
  size_t output_bytes() const override { return 0; }
  std::unique_ptr<TokenConstraint> NewConstraint(const ConstraintOptions&) const override {
    return nullptr;
  }
};

// Compiles when it is told to, and counts.
class SlowCompiler final : public GrammarCompiler {
 public:
  void Prepare() override {}
  Result<std::shared_ptr<const CompiledGrammar>> Compile(const GrammarSpec& spec) override {
    std::unique_lock lock(mutex_);
    ++compiled_;
    changed_.wait_for(lock, std::chrono::seconds(10), [this] { return open_; });
    if (refuses) return Fail(ErrorCode::kInvalidArgument, "grammar_too_costly", spec.field, "no");
    return std::make_shared<AnyOutput>();
  }
  Result<std::shared_ptr<const CompiledGrammar>> Find(const GrammarSpec& spec) override {
    return Fail(ErrorCode::kUnavailable, std::string(kGrammarNotReady), spec.field, "later");
  }

  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  int compiled() {
    const std::lock_guard lock(mutex_);
    return compiled_;
  }
  bool refuses = false;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int compiled_ = 0;
};

class GrammarWaitsTest : public ServiceTest {
 protected:
  explicit GrammarWaitsTest(
      std::shared_ptr<SlowCompiler> compiler = std::make_shared<SlowCompiler>())
      : ServiceTest(testing::kTestTemplate, {}, 0, compiler), compiler_(std::move(compiler)) {}
  ~GrammarWaitsTest() override { compiler_->Open(); }

  // Returns when it waits.
  std::shared_ptr<FakeExchange> AskInVain(const std::string& members = "") {
    return Post(
        "/v1/completions",
        R"({"prompt":"x","max_tokens":2,"guided_regex":"a+","request_id":"mine")" + members + "}");
  }
  std::string Metrics() { return Send("GET", "/metrics")->body(); }
  json::value Requests() { return Json(*Send("GET", "/v1/requests")).at("data"); }

  std::shared_ptr<SlowCompiler> compiler_;
};

constexpr char kWaiting[] = "vivace:num_requests_waiting_for_grammar{model_name=\"m\"} ";
constexpr char kAllWaiting[] = "vllm:num_requests_waiting{model_name=\"m\"} ";

TEST_F(GrammarWaitsTest, SeenWhileItWaitsAndInItsTimeline) {
  const auto exchange = AskInVain();
  EXPECT_FALSE(exchange->complete());
  EXPECT_THAT(Metrics(), HasSubstr(std::string(kWaiting) + "1\n"));
  EXPECT_THAT(Metrics(), HasSubstr(std::string(kAllWaiting) + "1\n"));
  const json::value waiting = Requests();
  ASSERT_EQ(waiting.as_array().size(), 1u);
  EXPECT_EQ(waiting.at(0).at("id"), "mine");
  EXPECT_EQ(waiting.at(0).at("state"), "grammar");
  compiler_->Open();
  ASSERT_TRUE(http_.RunPosted());
  EXPECT_THAT(Metrics(), HasSubstr(std::string(kWaiting) + "0\n"));
  RunEngine();
  ASSERT_EQ(exchange->status(), 200) << exchange->body();
  EXPECT_EQ(Json(*exchange).at("id"), "cmpl-mine");
  EXPECT_THAT(exchange->header("server-timing"), HasSubstr("grammar;dur="));
  const json::value timeline = Json(*Send("GET", "/v1/requests/mine/timeline"));
  EXPECT_EQ(timeline.at("state"), "ended");
  EXPECT_GT(timeline.at("times").at("grammar_ms").to_number<double>(), 0);
  EXPECT_EQ(Requests().as_array().size(), 1u);
  EXPECT_EQ(service_->open_requests(), 0);
}

TEST_F(GrammarWaitsTest, ItsDeadlineEndsTheWait) {
  for (const char* limit : {"deadline_ms", "max_queue_ms"}) {
    SCOPED_TRACE(limit);
    const bool deadline = limit[0] == 'd';
    const auto exchange = AskInVain(std::string(",\"") + limit + "\":1");
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (compiler_->compiled() == 0 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    while (!exchange->complete() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      http_.RunTimers();
    }
    ASSERT_EQ(exchange->status(), deadline ? 504 : 503) << exchange->body();
    EXPECT_EQ(ErrorOf(*exchange).at("code"), deadline ? "deadline_exceeded" : "queue_timeout");
    EXPECT_EQ(exchange->answers(), 1);
    EXPECT_THAT(Metrics(), HasSubstr(std::string(kWaiting) + "0\n"));
    EXPECT_EQ(Requests().at(0).at("state"), "ended");
    // Its place is held while something of it is in preparation.
    EXPECT_EQ(service_->open_requests(), deadline ? 1 : 2);
  }
  compiler_->Open();
  ASSERT_TRUE(http_.RunPosted());
  ASSERT_TRUE(http_.RunPosted());
  EXPECT_EQ(service_->open_requests(), 0);
  EXPECT_EQ(compiler_->compiled(), 1);  // nobody compiles for those who were answered
  EXPECT_TRUE(engine_.submitted().empty());
}

TEST_F(GrammarWaitsTest, ItsClientLeaves) {
  const auto exchange = AskInVain();
  exchange->Close();
  EXPECT_THAT(Metrics(), HasSubstr(std::string(kWaiting) + "0\n"));
  EXPECT_THAT(Metrics(), HasSubstr("vivace:clients_gone_total{model_name=\"m\"} 1\n"));
  EXPECT_EQ(Requests().at(0).at("outcome"), "gone");
  compiler_->Open();
  ASSERT_TRUE(http_.RunPosted());
  EXPECT_EQ(service_->open_requests(), 0);
  EXPECT_EQ(exchange->answers(), 0);
  EXPECT_THAT(Metrics(), HasSubstr("vivace:clients_gone_total{model_name=\"m\"} 1\n"));
}

TEST_F(GrammarWaitsTest, AGrammarThatIsRefused) {
  compiler_->refuses = true;
  const auto exchange = AskInVain();
  compiler_->Open();
  ASSERT_TRUE(http_.RunPosted());
  EXPECT_EQ(exchange->status(), 400);
  EXPECT_EQ(ErrorOf(*exchange).at("param"), "guided_regex");
  EXPECT_EQ(Requests().at(0).at("outcome"), "error");
  EXPECT_EQ(service_->open_requests(), 0);
}

TEST_F(GrammarWaitsTest, TheServerEnds) {
  const auto exchange = AskInVain();
  service_->EndAll();
  EXPECT_EQ(exchange->status(), 503);
  compiler_->Open();
  ASSERT_TRUE(http_.RunPosted());
  EXPECT_EQ(exchange->answers(), 1);
}

}  // namespace
}  // namespace vivace::server
