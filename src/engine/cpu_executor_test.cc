// The CPU executor on a small random model, on every tier this machine has.
#include "engine/cpu_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "engine/testing/fake_constraint.h"
#include "engine/testing/plan_driver.h"
#include "engine/testing/tiny_model.h"
#include "support/paths.h"

namespace vivace {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeConstraint;
using testing::FakeRules;
using testing::MakeExecutor;
using testing::PlanDriver;
using testing::TestConfig;
using testing::TinyModel;

std::vector<TokenId> Prompt(uint32_t seed, size_t length) {
  std::mt19937 engine(seed);
  std::vector<TokenId> tokens(length);
  for (TokenId& token : tokens) token = static_cast<TokenId>(engine() % 260);
  return tokens;
}

SamplingParams Sampled(uint64_t seed) {
  SamplingParams params;
  params.temperature = 1.0f;
  params.top_p = 0.95f;
  params.seed = seed;
  params.logprobs = 3;
  return params;
}

class CpuExecutorTest : public ::testing::TestWithParam<Isa> {
 protected:
  // Heads in groups of 3, two layers, Q4_0: every kernel of a block-quantised model is used.
  static const model::ModelFile& Model() {
    static const TinyModel* const model = new TinyModel({.hidden = 96,
                                                         .heads = 6,
                                                         .kv_heads = 2,
                                                         .ffn = 160,
                                                         .context = 1024,
                                                         .matrices = DType::kQ4_0,
                                                         .embedding = DType::kQ8_0,
                                                         .biases = true});
    return model->file();
  }
};
INSTANTIATE_TEST_SUITE_P(Tiers, CpuExecutorTest, ::testing::ValuesIn(testing::Tiers()),
                         [](const auto& info) { return std::string(Name(info.param)); });

void ExpectSame(const PlanDriver::Sequence& got, const PlanDriver::Sequence& want) {
  EXPECT_EQ(got.output(), want.output());
  ASSERT_EQ(got.logprobs.size(), want.logprobs.size());
  for (size_t i = 0; i < got.logprobs.size(); ++i) {
    EXPECT_EQ(got.logprobs[i].chosen.logprob, want.logprobs[i].chosen.logprob)
        << "bit for bit, token " << i;
    EXPECT_EQ(got.logprobs[i].rank, want.logprobs[i].rank);
  }
}

// Design rule 1: alone, chunked, in other blocks, among others, with other thread counts.
TEST_P(CpuExecutorTest, AnswersDoNotDependOnTheBatch) {
  const auto prompt = Prompt(1, 150);
  const auto executor = MakeExecutor(TestConfig(GetParam(), 1), Model());
  PlanDriver alone(executor.get());
  alone.Finish(alone.Add(prompt, Sampled(5)), 12);
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(threads);
    const auto other = MakeExecutor(TestConfig(GetParam(), threads), Model());
    PlanDriver chunked(other.get(), /*reverse_blocks=*/true);
    chunked.Finish(chunked.Add(prompt, Sampled(5)), 12, 17);
    ExpectSame(chunked[0], alone[0]);

    PlanDriver batch(other.get());
    for (uint32_t i = 0; i < 32; ++i) {
      batch.Add(i == 20 ? prompt : Prompt(100 + i, 1 + i * 5), i == 20 ? Sampled(5) : Sampled(i));
    }
    for (int step = 0; batch[20].output().size() < 12; ++step) {
      std::vector<std::pair<int32_t, int32_t>> parts;
      for (int32_t i = 0; i < 32; ++i) parts.emplace_back(i, batch.Next(i, i == 20 ? 30 : 10));
      batch.Step(parts);
    }
    ExpectSame(batch[20], alone[0]);
  }
}

TEST_P(CpuExecutorTest, ARebindingContinuesWhereItStopped) {
  const auto prompt = Prompt(2, 40);
  SamplingParams params = Sampled(9);
  params.frequency_penalty = 1.5f;
  params.repetition_penalty = 1.3f;
  const auto executor = MakeExecutor(TestConfig(GetParam()), Model());
  PlanDriver whole(executor.get());
  whole.Finish(whole.Add(prompt, params), 20);
  // Preempted after 8 tokens: bound again with its history, computed again in one go.
  std::vector<TokenId> history(whole[0].tokens.begin(), whole[0].tokens.begin() + 48);
  PlanDriver resumed(executor.get());
  resumed.Add(history, params);
  executor->BindSlot(SeqSlot(0), {.params = params, .tokens = history, .prompt_len = 40});
  resumed.Finish(0, 12);
  EXPECT_EQ(resumed[0].tokens, whole[0].tokens);
}

// Constrained rows beside free ones, greedy and drawn: each as alone, and within its rules.
TEST_P(CpuExecutorTest, ConstrainedAnswersDoNotDependOnTheBatch) {
  const FakeRules rules{.vocab = 260, .length = 12};
  SamplingParams greedy;
  greedy.temperature = 0;
  for (const SamplingParams& params : {Sampled(5), greedy}) {
    const auto executor = MakeExecutor(TestConfig(GetParam(), 3), Model(), {});
    FakeConstraint own(rules);
    PlanDriver alone(executor.get());
    alone.Finish(alone.Add(Prompt(1, 30), params, 0, &own), 12);
    EXPECT_EQ(own.output(), alone[0].output());
    EXPECT_TRUE(alone[0].ended);
    for (size_t i = 0; i < 12; ++i) EXPECT_EQ(alone[0].output()[i] % 2, static_cast<int>(i % 2));

    std::vector<FakeConstraint> constraints(12, FakeConstraint(rules));
    PlanDriver batch(executor.get());
    std::vector<std::pair<int32_t, int32_t>> parts;
    for (uint32_t i = 0; i < 24; ++i) {
      const bool same = i == 6;
      parts.emplace_back(batch.Add(same ? Prompt(1, 30) : Prompt(100 + i, 1 + i), params, 0,
                                   i % 2 == 0 ? &constraints[i / 2] : nullptr),
                         1);
    }
    while (batch[6].output().size() < 12) {
      for (auto& [sequence, count] : parts) count = batch.Next(sequence, 9);
      batch.Step(parts);
    }
    ExpectSame(batch[6], alone[0]);
    EXPECT_EQ(constraints[3].output(), alone[0].output());
  }
}

// Output put down without sampling is what the sampler counts and the cache holds, computed at once
// or one by one.
TEST_P(CpuExecutorTest, AppendedOutputIsOutput) {
  SamplingParams params = Sampled(9);
  params.frequency_penalty = 1.5f;
  params.repetition_penalty = 1.3f;
  params.bad_words = {{3, 4, 5}, {7}};
  const std::vector<TokenId> appended = {3, 4, 9, 9, 200, 3, 4};
  const auto executor = MakeExecutor(TestConfig(GetParam()), Model());
  std::vector<std::vector<TokenId>> outputs;
  for (const int32_t chunk : {100, 1, 3}) {
    PlanDriver driver(executor.get());
    driver.Finish(driver.Add(Prompt(2, 40), params), 3);
    driver.Append(0, appended);
    driver.Finish(0, 20, chunk);
    outputs.push_back(driver[0].output());
  }
  EXPECT_EQ(outputs[1], outputs[0]);
  EXPECT_EQ(outputs[2], outputs[0]);
  // As when it was bound with it.
  std::vector<TokenId> history = Prompt(2, 40);
  history.insert(history.end(), outputs[0].begin(), outputs[0].begin() + 10);
  PlanDriver resumed(executor.get());
  resumed.Add(history, params);
  executor->BindSlot(SeqSlot(0), {.params = params, .tokens = history, .prompt_len = 40});
  resumed.Finish(0, 10);
  EXPECT_EQ(resumed[0].output(), std::vector<TokenId>(outputs[0].begin() + 10, outputs[0].end()));
}

TEST_P(CpuExecutorTest, PromptLogprobsAreThoseOfTheTokensDrawn) {
  const auto prompt = Prompt(3, 60);
  const auto executor = MakeExecutor(TestConfig(GetParam()), Model());
  SamplingParams params = Sampled(4);
  params.logprobs = 5;
  PlanDriver drawn(executor.get());
  drawn.Finish(drawn.Add(prompt, params), 70);
  // The same tokens as a prompt, in chunks: each position's numbers must come out the same bits.
  for (const int32_t chunk : {1000, 17}) {
    params.prompt_logprobs = 5;
    PlanDriver again(executor.get());
    again.Finish(again.Add(drawn[0].tokens, params), 1, chunk);
    ASSERT_EQ(again[0].prompt_logprobs.size(), drawn[0].tokens.size() - 1);
    for (size_t i = 0; i < drawn[0].logprobs.size(); ++i) {
      const LogprobRow& got = again[0].prompt_logprobs[prompt.size() - 1 + i];
      EXPECT_EQ(got.chosen.token, drawn[0].logprobs[i].chosen.token);
      EXPECT_EQ(got.chosen.logprob, drawn[0].logprobs[i].chosen.logprob);
      EXPECT_EQ(got.rank, drawn[0].logprobs[i].rank);
      const auto& top = again[0].prompt_top[prompt.size() - 1 + i];
      ASSERT_EQ(top.size(), 5u);
      for (size_t k = 0; k < 5; ++k) {
        EXPECT_EQ(top[k].token, drawn[0].top[i][k].token);
        EXPECT_EQ(top[k].logprob, drawn[0].top[i][k].logprob);
        EXPECT_LE(top[k].logprob, top[k > 0 ? k - 1 : 0].logprob);
      }
    }
  }
}

TEST_P(CpuExecutorTest, EosWaitsForMinTokens) {
  constexpr TokenId kEos = 7, kStop = 9;
  const auto executor = MakeExecutor(TestConfig(GetParam()), Model(), {kEos});
  SamplingParams params;
  params.temperature = 0;
  params.logit_bias = {{kEos, 100.0f}, {kStop, 90.0f}};
  params.stop_token_ids = {kStop};
  params.min_tokens = 3;
  PlanDriver driver(executor.get());
  driver.Finish(driver.Add(Prompt(4, 10), params), 5);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(driver[0].output()[static_cast<size_t>(i)], kEos);
    EXPECT_NE(driver[0].output()[static_cast<size_t>(i)], kStop);
  }
  EXPECT_EQ(driver[0].output()[3], kEos);
}

// Rows whose logits are never stored take the tokens of those whose logits are, in any company.
TEST_P(CpuExecutorTest, GreedyIsTheSameWithAndWithoutLogits) {
  const auto executor = MakeExecutor(TestConfig(GetParam()), Model(), {7});
  constexpr int32_t kOutput = 12;
  SamplingParams bare, stored, single;
  bare.temperature = stored.temperature = 0;
  stored.logprobs = 0;
  single.temperature = 1.5f;
  single.top_k = 1;
  PlanDriver driver(executor.get());
  for (uint32_t i = 0; i < 10; ++i) {
    for (const SamplingParams& params : {stored, bare, single}) {
      driver.Finish(driver.Add(Prompt(40 + i, 3 + i), params), kOutput);
    }
  }
  for (int32_t i = 0; i < 30; i += 3) {
    EXPECT_EQ(driver[i + 1].output(), driver[i].output());
    EXPECT_EQ(driver[i + 2].output(), driver[i].output());
  }
  // Greedy and drawn rows in one step; min_tokens moves a row from one kind to the other.
  SamplingParams late = bare;
  late.min_tokens = 4;
  PlanDriver mixed(executor.get());
  std::vector<std::pair<int32_t, int32_t>> parts;
  for (uint32_t i = 0; i < 10; ++i) {
    const SamplingParams& params = i % 3 == 0 ? Sampled(i) : i % 3 == 1 ? bare : late;
    parts.emplace_back(mixed.Add(Prompt(40 + i, 3 + i), params), 3 + static_cast<int32_t>(i));
  }
  for (int32_t step = 0; step < kOutput; ++step) {
    mixed.Step(parts);
    for (auto& [sequence, count] : parts) count = 1;
  }
  for (int32_t i = 1; i < 10; i += 3) EXPECT_EQ(mixed[i].output(), driver[3 * i].output());
  for (int32_t i = 2; i < 10; i += 3) {
    PlanDriver alone(executor.get());
    alone.Finish(alone.Add(Prompt(40 + static_cast<uint32_t>(i), 3 + static_cast<size_t>(i)), late),
                 kOutput);
    EXPECT_EQ(mixed[i].output(), alone[0].output());
  }
}

TEST_P(CpuExecutorTest, UnseededChoicesDifferAndSeededOnesDoNot) {
  const auto executor = MakeExecutor(TestConfig(GetParam()), Model());
  PlanDriver driver(executor.get());
  SamplingParams params;
  params.temperature = 1.5f;
  params.seed = 11;
  for (int32_t choice = 0; choice < 3; ++choice)
    driver.Finish(driver.Add(Prompt(5, 20), params, choice), 16);
  driver.Finish(driver.Add(Prompt(5, 20), params, 1), 16);
  EXPECT_NE(driver[0].output(), driver[1].output());
  EXPECT_NE(driver[1].output(), driver[2].output());
  EXPECT_EQ(driver[1].output(), driver[3].output());
}

TEST_P(CpuExecutorTest, ANanModelGivesErrorsAndLives) {
  const std::string path =
      vivace::testing::SourceDir() + "/../shared/cases/bad/gguf/model_nan_weights.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "not on this machine: " << path;
  auto file = model::OpenModel(path);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto executor = MakeExecutor(TestConfig(GetParam()), *file);
  PlanDriver driver(executor.get());
  SamplingParams params = Sampled(1);
  params.prompt_logprobs = 2;
  for (int i = 0; i < 3; ++i) driver.Add({1, 2, 3, 4}, params);
  SamplingParams greedy;
  greedy.temperature = 0;
  driver.Step({{0, 4}, {1, 4}, {2, 4}, {driver.Add({1, 2, 3, 4}, greedy), 4}});
  EXPECT_THAT(driver[3].errors, ElementsAre(SampleError::kNonFiniteLogits));
  EXPECT_EQ(driver[3].tokens.back(), -1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(driver[i].errors, ElementsAre(SampleError::kNonFiniteLogits));
    EXPECT_EQ(driver[i].tokens.back(), -1);
    ASSERT_EQ(driver[i].prompt_logprobs.size(), 3u);
    EXPECT_TRUE(std::isnan(driver[i].prompt_logprobs[0].chosen.logprob));
    EXPECT_EQ(driver[i].prompt_logprobs[0].num_top, 0);
  }
}

TEST_P(CpuExecutorTest, HonoursTheLimitsItReports) {
  EngineConfig config = TestConfig(GetParam());
  config.max_num_batched_tokens = 64;
  config.max_num_seqs = 64;
  config.max_model_len = 300;
  const auto executor = MakeExecutor(config, Model());
  EXPECT_EQ(executor->limits().max_batched_tokens, 64);
  EXPECT_EQ(executor->limits().max_sequences, 64);
  EXPECT_EQ(executor->limits().max_model_len, 300);
  // A full step of full width, every row with logits.
  PlanDriver driver(executor.get());
  SamplingParams params = Sampled(1);
  params.logprobs = 20;
  std::vector<std::pair<int32_t, int32_t>> parts;
  for (uint32_t i = 0; i < 64; ++i) parts.emplace_back(driver.Add(Prompt(i, 1), params), 1);
  driver.Step(parts);
  driver.Step(parts);
  for (int32_t i = 0; i < 64; ++i) EXPECT_EQ(driver[i].output().size(), 2u);
  // And a sequence to the last position.
  PlanDriver longest(executor.get());
  longest.Finish(longest.Add(Prompt(1, 290), params), 10);
  EXPECT_THAT(longest[0].errors, Each(SampleError::kNone));
}

TEST_P(CpuExecutorTest, TellsWhereTheTimeOfAStepWent) {
  const auto executor = MakeExecutor(TestConfig(GetParam()), Model());
  PlanDriver driver(executor.get());
  driver.Step({{driver.Add(Prompt(1, 20), Sampled(1)), 20}});
  const StepTimes times = executor->last_times();
  EXPECT_GT(times.kernel_ns, 0);
  EXPECT_GT(times.sample_ns, 0);
  EXPECT_LE(times.kernel_ns + times.sample_ns, times.total_ns);
}

TEST(CpuExecutorConfigTest, ProgressReachesItsTotal) {
  const TinyModel model;
  uint64_t last = 0, total = 0;
  const auto executor = CreateCpuExecutor(TestConfig(Isa::kReference), model.file(), {},
                                          [&](uint64_t done, uint64_t all) {
                                            EXPECT_GE(done, last);
                                            last = done;
                                            total = all;
                                            return true;
                                          });
  ASSERT_TRUE(executor.has_value());
  EXPECT_GT(total, 0u);
  EXPECT_EQ(last, total);
}

TEST(CpuExecutorConfigTest, LoadingEndsWhereItIsTold) {
  const TinyModel model;
  int calls = 0;
  const auto executor = CreateCpuExecutor(TestConfig(Isa::kReference), model.file(), {},
                                          [&](uint64_t, uint64_t) { return ++calls < 3; });
  ASSERT_FALSE(executor.has_value());
  EXPECT_EQ(executor.error().reason, "load_stopped");
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace vivace
