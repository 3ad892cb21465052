// What a sequence's recurrent states stay clear of: other sequences, chunks, being set back, and
// who had the slot before.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <semaphore>
#include <string>
#include <tuple>
#include <vector>

#include "engine/engine.h"
#include "engine/testing/tiny_model.h"
#include "support/paths.h"

namespace vivace {
namespace {

const std::string kTiny = vivace::testing::SourceDir() + "/../shared/models/tiny/";
constexpr int32_t kOutputs = 40;
using Answers = std::vector<std::vector<TokenId>>;

// Prompts of several lengths, some of which begin alike.
std::vector<std::vector<TokenId>> Prompts(const std::string& family) {
  std::ifstream file(kTiny + family + "/reference.json");
  const auto json = boost::json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  std::vector<std::vector<TokenId>> prompts;
  for (const auto& c : json.at("cases").as_array()) {
    const auto ids = boost::json::value_to<std::vector<TokenId>>(c.at("prompt_ids"));
    prompts.push_back(ids);
    prompts.emplace_back(ids.begin(), ids.end() - 1);
    prompts.emplace_back(ids.begin() + 1, ids.end());
  }
  return prompts;
}

class RecurrentStates : public ::testing::TestWithParam<std::tuple<Isa, const char*>> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kTiny)) GTEST_SKIP() << "not on this machine: " << kTiny;
  }
  std::string family() const { return std::get<1>(GetParam()); }
  EngineConfig Config() const { return testing::TestConfig(std::get<0>(GetParam())); }

  void StartEngine(const EngineConfig& config) {
    engine_.reset();
    const auto file = model::OpenModel(kTiny + family());
    ASSERT_TRUE(file) << file.error().message;
    auto executor = CreateCpuExecutor(config, *file, {}, {});
    ASSERT_TRUE(executor) << executor.error().message;
    auto engine = Engine::Start(config, std::move(*executor), {});
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = std::move(*engine);
    engine_->OnReady([this] { news_.release(); });
  }

  // Sampled, so that a token shows small differences of the state.
  RequestPtr Submit(const std::vector<TokenId>& prompt) {
    GenerationRequest request;
    request.prompt = prompt;
    request.sampling.max_tokens = kOutputs;
    request.sampling.temperature = 1.0f;
    request.sampling.seed = 7;
    request.sampling.seeded = true;
    const auto submitted = engine_->Submit(std::move(request), nullptr);
    EXPECT_TRUE(submitted) << submitted.error().message;
    return *submitted;
  }

  std::vector<TokenId> Collect(const RequestPtr& request) {
    std::vector<TokenId> tokens;
    std::vector<RequestPtr> ready;
    TokenStream& stream = *request->choices[0];
    while (true) {
      const auto news = stream.Read();
      tokens.insert(tokens.end(), news.begin(), news.end());
      if (stream.finish_reason() != FinishReason::kNone) return tokens;
      if (!news_.try_acquire_for(std::chrono::seconds(20))) {
        ADD_FAILURE() << "no news";
        return tokens;
      }
      engine_->TakeReady(&ready);
      ready.clear();
    }
  }

  // One after the other, all of them in the slot that the one before left.
  Answers Alone() {
    Answers answers;
    for (const auto& prompt : Prompts(family())) answers.push_back(Collect(Submit(prompt)));
    return answers;
  }
  Answers Together() {
    std::vector<RequestPtr> requests;
    for (const auto& prompt : Prompts(family())) requests.push_back(Submit(prompt));
    Answers answers;
    for (const RequestPtr& request : requests) answers.push_back(Collect(request));
    return answers;
  }

  std::counting_semaphore<> news_{0};
  std::unique_ptr<Engine> engine_;
};
INSTANTIATE_TEST_SUITE_P(Tiers, RecurrentStates,
                         ::testing::Combine(::testing::ValuesIn(testing::Tiers()),
                                            ::testing::Values("granitemoehybrid", "lfm2",
                                                              "qwen3_next")),
                         [](const auto& info) {
                           return std::string(Name(std::get<0>(info.param))) + "_" +
                                  std::get<1>(info.param);
                         });

TEST_P(RecurrentStates, AnswersAreThoseOfASequenceAlone) {
  EngineConfig config = Config();
  StartEngine(config);
  const Answers alone = Alone();
  ASSERT_EQ(alone.size(), 9u);
  for (const auto& answer : alone) EXPECT_EQ(answer.size(), size_t{kOutputs});
  EXPECT_NE(alone[0], alone[1]) << "the last token of a prompt counts";
  EXPECT_EQ(Together(), alone) << "batched";

  config.max_num_batched_tokens = 23;
  StartEngine(config);
  EXPECT_EQ(Together(), alone) << "in chunks";

  // A cache that holds the longest of them and little more.
  config.max_num_seqs = 4;
  config.num_kv_blocks = 12;
  StartEngine(config);
  EXPECT_EQ(Together(), alone) << "set back";
  EXPECT_GT(engine_->stats().preemptions, 0);
}

// A cached prefix has no state to go on from.
TEST_P(RecurrentStates, NothingIsTakenFromThePrefixCache) {
  EngineConfig config = Config();
  ASSERT_TRUE(config.enable_prefix_caching);
  StartEngine(config);
  const auto prompt = Prompts(family())[3];
  const RequestPtr first = Submit(prompt), second = Submit(prompt);
  const auto want = Collect(first);
  EXPECT_EQ(Collect(second), want);
  const RequestPtr third = Submit(prompt);
  EXPECT_EQ(Collect(third), want);
  EXPECT_EQ(third->cached_tokens.load(), 0);
  EXPECT_EQ(engine_->stats().prefix_queries, 0);
}

}  // namespace
}  // namespace vivace
