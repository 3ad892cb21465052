// Embeddings, rerank and score over the whole service: shapes, order, limits, ends.
#include "server/service/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/limits.h"
#include "server/testing/service_harness.h"

namespace vivace::server {
namespace {

using ::testing::HasSubstr;

constexpr char kPath[] = "/v1/embeddings";

class EmbeddingTest : public testing::ServiceTest {
 protected:
  EmbeddingTest() {
    // A prompt's direction is its last token, its length that of the vector.
    engine_.pool = [](const GenerationRequest& request) {
      const double angle = request.prompt.back() * 0.1;
      const auto length = static_cast<double>(request.prompt.size());
      return std::vector<float>{static_cast<float>(length * std::cos(angle)),
                                static_cast<float>(length * std::sin(angle)), 0, 0};
    };
  }

  static std::vector<double> Vector(const json::value& item) {
    std::vector<double> vector;
    for (const auto& x : item.at("embedding").as_array()) vector.push_back(x.to_number<double>());
    return vector;
  }
};

TEST_F(EmbeddingTest, OpenAisShape) {
  const auto exchange = Ask(kPath, R"({"input":[[3,4,5],[6]],"model":"m","user":"u"})");
  ASSERT_EQ(exchange->status(), 200) << exchange->body();
  const json::value answer = Json(*exchange);
  EXPECT_EQ(answer.at("object").as_string(), "list");
  EXPECT_EQ(answer.at("model").as_string(), "m");
  EXPECT_THAT(std::string(answer.at("id").as_string()), HasSubstr("embd-"));
  ASSERT_EQ(answer.at("data").as_array().size(), 2u);
  for (int64_t i = 0; i < 2; ++i) {
    const json::value& item = answer.at("data").at(static_cast<size_t>(i));
    EXPECT_EQ(item.at("object").as_string(), "embedding");
    EXPECT_EQ(item.at("index").as_int64(), i);
    const auto vector = Vector(item);
    ASSERT_EQ(vector.size(), 4u);
    EXPECT_NEAR(vector[0], std::cos(i == 0 ? 0.5 : 0.6), 1e-6) << "of length 1";
  }
  EXPECT_EQ(answer.at("usage").at("prompt_tokens").as_int64(), 4);
  EXPECT_EQ(answer.at("usage").at("total_tokens").as_int64(), 4);
  EXPECT_EQ(exchange->header("x-vivace-ignored"), "user");
}

TEST_F(EmbeddingTest, EveryShapeOfInput) {
  for (const char* input : {R"("Hi")", R"(["Hi","Hi Hi"])", "[3,4]", "[[3],[4,5]]"}) {
    const auto exchange = Ask(kPath, fmt::format(R"({{"input":{}}})", input));
    EXPECT_EQ(exchange->status(), 200) << exchange->body();
  }
  EXPECT_EQ(Ask("/embeddings", R"({"input":"Hi"})")->status(), 200);
}

TEST_F(EmbeddingTest, DimensionsFormatAndLength) {
  const auto vector = [&](const char* extra) {
    const auto exchange = Ask(kPath, fmt::format(R"({{"input":[3,4]{}}})", extra));
    EXPECT_EQ(exchange->status(), 200) << exchange->body();
    return Json(*exchange).at("data").at(0);
  };
  EXPECT_EQ(Vector(vector(R"(,"dimensions":1)")), (std::vector<double>{1}));
  EXPECT_NEAR(Vector(vector(R"(,"normalize":false)"))[0], 2 * std::cos(0.4), 1e-6);
  // [1, 0] as float32.
  EXPECT_EQ(vector(R"(,"dimensions":1,"encoding_format":"base64")").at("embedding").as_string(),
            "AACAPw==");
}

TEST_F(EmbeddingTest, PoolingPriorityAndSaltReachTheEngine) {
  Ask(kPath, R"({"input":[3],"pooling":"last","priority":-2,"cache_salt":"s"})");
  Ask(kPath, R"({"input":[3]})");
  Ask(kPath, R"({"input":[3],"deadline_ms":60000})");
  EXPECT_EQ(engine_.submitted()[1]->request.deadline_ns, 0);
  EXPECT_GE(engine_.submitted()[2]->request.deadline_ns, 60'000'000'000);
  const GenerationRequest& first = engine_.submitted()[0]->request;
  EXPECT_EQ(first.pooling, Pooling::kLast);
  EXPECT_EQ(first.priority, -2);
  EXPECT_EQ(first.cache_salt, "s");
  EXPECT_EQ(engine_.submitted()[1]->request.pooling, Pooling::kMean);
}

TEST_F(EmbeddingTest, TruncationKeepsTheEndAndSaysSo) {
  const auto cut = Ask(kPath, R"({"input":[[3,4,5,6],[7]],"truncate_prompt_tokens":2})");
  ASSERT_EQ(cut->status(), 200) << cut->body();
  EXPECT_EQ(engine_.submitted()[0]->request.prompt, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ(cut->header("x-vivace-truncated-prompt-tokens"), "2");
  EXPECT_EQ(Json(*cut).at("vivace").at("truncated_prompt_tokens").as_int64(), 2);
  json::array longer;
  for (int i = 0; i < 600; ++i) longer.emplace_back(i % 9);
  const std::string text = json::serialize(longer);
  const auto refused = Ask(kPath, fmt::format(R"({{"input":{}}})", text));
  EXPECT_EQ(refused->status(), 400);
  EXPECT_EQ(ErrorOf(*refused).at("code").as_string(), "context_length_exceeded");
  EXPECT_EQ(
      Ask(kPath, fmt::format(R"({{"input":{},"truncate_prompt_tokens":-1}})", text))->status(),
      200);
  EXPECT_EQ(engine_.submitted().back()->request.prompt.size(), 512u);
}

TEST_F(EmbeddingTest, Refusals) {
  struct Case {
    const char* path;
    const char* body;
    const char* param;
  };
  const Case cases[] = {
      {kPath, R"({})", "input"},
      {kPath, R"({"input":null})", "input"},
      {kPath, R"({"input":""})", "input"},
      {kPath, R"({"input":[]})", "input"},
      {kPath, R"({"input":["a",1]})", "input[1]"},
      {kPath, R"({"input":[-1]})", "input[0]"},
      {kPath, R"({"input":{"a":1}})", "input"},
      {kPath, R"({"input":[3],"dimensions":5})", "dimensions"},
      {kPath, R"({"input":[3],"dimensions":0})", "dimensions"},
      {kPath, R"({"input":[3],"encoding_format":"int8"})", "encoding_format"},
      {kPath, R"({"input":[3],"pooling":"cls"})", "pooling"},
      {"/v1/rerank", R"({"documents":["a"]})", "query"},
      {"/v1/rerank", R"({"query":"a"})", "documents"},
      {"/v1/rerank", R"({"query":"a","documents":[{"title":"b"}]})", "documents[0]"},
      {"/v1/rerank", R"({"query":"a","documents":["b"],"top_n":-1})", "top_n"},
      {"/v1/score", R"({"text_1":"a"})", "text_2"},
      {"/v1/score", R"({"text_1":["a","b"],"text_2":["a"]})", "text_1"},
  };
  for (const Case& c : cases) {
    const auto exchange = Ask(c.path, c.body);
    EXPECT_EQ(exchange->status(), 400) << c.body;
    EXPECT_EQ(ErrorOf(*exchange).at("param").as_string(), c.param) << c.body;
  }
  EXPECT_EQ(Ask(kPath, R"({"input":[3],"model":"x"})")->status(), 404);
  EXPECT_TRUE(engine_.submitted().empty());
}

TEST_F(EmbeddingTest, ManyInputsGoAFewAtATime) {
  json::array inputs;
  for (int i = 0; i < 50; ++i) inputs.push_back(json::array{1, i % 9});
  const auto exchange = Post(kPath, json::serialize(json::object{{"input", inputs}}));
  EXPECT_EQ(engine_.running(), static_cast<int>(Embedding::kInputsAtOnce));
  RunEngine();
  ASSERT_EQ(exchange->status(), 200) << exchange->body();
  const json::value answer = Json(*exchange);
  ASSERT_EQ(answer.at("data").as_array().size(), 50u);
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_NEAR(Vector(answer.at("data").at(i))[0], std::cos(0.1 * static_cast<double>(i % 9)),
                1e-6);
  }
  EXPECT_EQ(service_->open_requests(), 0);
}

TEST_F(EmbeddingTest, AtTheLimitOfInputsAndPastIt) {
  const auto status = [&](size_t count) {
    json::array inputs(count, json::array{1});
    return Ask(kPath, json::serialize(json::object{{"input", inputs}}))->status();
  };
  EXPECT_EQ(status(limits::kMaxEmbeddingInputs), 200);
  EXPECT_EQ(status(limits::kMaxEmbeddingInputs + 1), 400);
}

TEST_F(EmbeddingTest, AFullQueueIsWaitedForIfSomethingOfOursIsInIt) {
  json::array inputs(20, json::array{1});
  const auto exchange = Post(kPath, json::serialize(json::object{{"input", inputs}}));
  engine_.refuse = Fail(ErrorCode::kResourceExhausted, "server_is_overloaded", "", "full");
  Step();
  EXPECT_FALSE(exchange->complete() && exchange->status() == 200);
  const auto other = Post(kPath, R"({"input":[1]})");
  EXPECT_EQ(other->status(), 503);
}

TEST_F(EmbeddingTest, WhatTheEngineEndsIsAnError) {
  engine_.fail_with = FinishReason::kError;
  EXPECT_EQ(Ask(kPath, R"({"input":[1]})")->status(), 500);
  engine_.fail_with = FinishReason::kDeadline;
  EXPECT_EQ(Ask(kPath, R"({"input":[1]})")->status(), 504);
  engine_.fail_with = FinishReason::kNone;
  engine_.pool = [](const GenerationRequest&) { return std::vector<float>{NAN, 0, 0, 0}; };
  EXPECT_EQ(Ask(kPath, R"({"input":[1]})")->status(), 500);
  EXPECT_EQ(service_->open_requests(), 0);
}

TEST_F(EmbeddingTest, AClientThatLeavesEndsItsInputs) {
  const auto exchange = Post(kPath, R"({"input":[[1],[2],[3]]})");
  EXPECT_EQ(engine_.running(), 3);
  exchange->Close();
  EXPECT_EQ(engine_.running(), 0);
  EXPECT_EQ(service_->open_requests(), 0);
}

TEST_F(EmbeddingTest, RerankIsBestFirst) {
  // Directions by the tokens of the texts: equal texts are nearest.
  const char body[] =
      R"({"query":"Hi","documents":["<|im_end|>",{"text":"Hi"},"Hi Hi"],"model":"m"})";
  const json::value answer = Json(*Ask("/v1/rerank", body));
  const auto& results = answer.at("results").as_array();
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].at("index").as_int64(), 1);
  EXPECT_NEAR(results[0].at("relevance_score").to_number<double>(), 1.0, 1e-6);
  EXPECT_EQ(results[0].at("document").at("text").as_string(), "Hi");
  EXPECT_EQ(results[2].at("index").as_int64(), 0);
  EXPECT_LT(results[2].at("relevance_score").to_number<double>(), 0.999);
  EXPECT_GT(answer.at("usage").at("total_tokens").as_int64(), 3);

  const json::value one =
      Json(*Ask("/v2/rerank",
                R"({"query":"Hi","documents":["Hi","Hi Hi"],"top_n":1,"return_documents":false})"));
  ASSERT_EQ(one.at("results").as_array().size(), 1u);
  EXPECT_FALSE(one.at("results").at(0).as_object().contains("document"));
}

TEST_F(EmbeddingTest, ScoresOneWithManyAndPairs) {
  const json::value many =
      Json(*Ask("/v1/score", R"({"text_1":"Hi","text_2":["Hi","<|im_end|>"]})"));
  ASSERT_EQ(many.at("data").as_array().size(), 2u);
  EXPECT_EQ(many.at("data").at(0).at("object").as_string(), "score");
  EXPECT_NEAR(many.at("data").at(0).at("score").to_number<double>(), 1.0, 1e-6);
  EXPECT_LT(many.at("data").at(1).at("score").to_number<double>(), 0.999);
  const json::value pairs = Json(
      *Ask("/score", R"({"text_1":["Hi","<|im_end|>"],"text_2":["<|im_end|>","<|im_end|>"]})"));
  ASSERT_EQ(pairs.at("data").as_array().size(), 2u);
  EXPECT_NEAR(pairs.at("data").at(1).at("score").to_number<double>(), 1.0, 1e-6);
  EXPECT_EQ(pairs.at("usage").at("completion_tokens").as_int64(), 0);
}

TEST_F(EmbeddingTest, LimitsOfTimeAreKept) {
  Post(kPath, R"({"input":[[3],[4]],"max_queue_ms":60000,"deadline_ms":86400000})");
  const GenerationRequest& first = engine_.submitted()[0]->request;
  const GenerationRequest& second = engine_.submitted()[1]->request;
  EXPECT_GT(first.max_queue_ns, 0);
  EXPECT_LE(first.max_queue_ns, 60'000'000'000);
  EXPECT_EQ(second.max_queue_ns, 0) << "the request waits in the queue with its first input";
  EXPECT_EQ(first.deadline_ns, second.deadline_ns);
  RunEngine();
  engine_.fail_with = FinishReason::kQueueTimeout;
  const auto waited = Ask("/v1/rerank", R"({"query":"a","documents":["b"],"max_queue_ms":5})");
  EXPECT_EQ(waited->status(), 503);
  EXPECT_EQ(ErrorOf(*waited).at("code").as_string(), "queue_timeout");
}

TEST_F(EmbeddingTest, WhatIsForeseenToBeLateIsRefusedAtOnce) {
  engine_.figures.queued_tokens = 500;
  engine_.figures.prompt_tokens_per_s = 100;
  const std::pair<const char*, const char*> requests[] = {
      {kPath, R"("input":[3])"},
      {"/v1/rerank", R"("query":"a","documents":["b"])"},
      {"/v1/score", R"("text_1":"a","text_2":"b")"}};
  for (const auto& [path, members] : requests) {
    for (const char* limit : {"max_queue_ms", "deadline_ms"}) {
      const auto refused = Post(path, fmt::format(R"({{{},"{}":4900}})", members, limit));
      EXPECT_EQ(refused->status(), 503) << path;
      EXPECT_EQ(ErrorOf(*refused).at("param").as_string(), limit) << path;
      EXPECT_EQ(refused->header("retry-after"), "5");
    }
  }
  EXPECT_TRUE(engine_.submitted().empty());
  EXPECT_EQ(service_->open_requests(), 0);
}

TEST_F(EmbeddingTest, CanBeLookedAt) {
  const auto get = [&](const std::string& path) { return Json(*Send("GET", path)); };
  json::array inputs;
  for (int i = 0; i < 200; ++i) inputs.push_back(json::array{1, 2});
  const auto exchange =
      Post(kPath, json::serialize(json::object{{"input", inputs}, {"request_id", "mine"}}));
  const json::value running = get("/v1/requests/mine/timeline");
  EXPECT_TRUE(running.at("status").is_null());
  EXPECT_EQ(running.at("path").as_string(), kPath);
  RunEngine();
  ASSERT_EQ(exchange->status(), 200) << exchange->body();
  EXPECT_THAT(exchange->header("server-timing"), HasSubstr("total;dur="));
  const json::value ended = get("/v1/requests/mine/timeline");
  EXPECT_EQ(ended.at("status").as_int64(), 200);
  EXPECT_EQ(ended.at("outcome").as_string(), "stop");
  EXPECT_EQ(ended.at("prompts").as_int64(), 200);
  EXPECT_EQ(ended.at("prompt_tokens").as_int64(), 400);
  EXPECT_EQ(ended.at("decode").as_array().size(), kMaxRecordedPrompts);
  EXPECT_EQ(ended.at("prompts_left_out").as_int64(),
            200 - static_cast<int64_t>(kMaxRecordedPrompts));
  const auto left = Post("/v1/score", R"({"text_1":"a","text_2":"b","request_id":"left"})");
  left->Close();
  EXPECT_EQ(get("/v1/requests/left").at("outcome").as_string(), "gone");
}

}  // namespace
}  // namespace vivace::server
