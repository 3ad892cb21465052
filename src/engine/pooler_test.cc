// Pooled hidden states of small models, on every tier this machine has.
#include "engine/pooler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>

#include "engine/testing/make_forward.h"
#include "engine/testing/plan_driver.h"
#include "engine/testing/tiny_model.h"
#include "support/paths.h"

namespace vivace {
namespace {

using testing::MakeExecutor;
using testing::PlanDriver;
using testing::TestConfig;

std::vector<TokenId> Prompt(uint32_t seed, size_t length) {
  std::mt19937 engine(seed);
  std::vector<TokenId> tokens(length);
  for (TokenId& token : tokens) token = static_cast<TokenId>(engine() % 260);
  return tokens;
}

class PoolerTest : public ::testing::TestWithParam<Isa> {
 protected:
  static const model::ModelFile& Model() {
    static auto* const model = new testing::TinyModel(
        {.layers = 2, .hidden = 64, .heads = 4, .kv_heads = 2, .head_dim = 16, .context = 512});
    return model->file();
  }
};
INSTANTIATE_TEST_SUITE_P(Tiers, PoolerTest, ::testing::ValuesIn(testing::Tiers()),
                         [](const auto& info) { return std::string(Name(info.param)); });

// Alone, chunked, beside others that are drawn from or pooled, with other thread counts.
TEST_P(PoolerTest, VectorsDoNotDependOnTheBatch) {
  const auto prompt = Prompt(1, 40);
  const auto executor = MakeExecutor(TestConfig(GetParam(), 1), Model());
  const auto other = MakeExecutor(TestConfig(GetParam(), 3), Model());
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
    PlanDriver alone(executor.get());
    alone.Pool(alone.AddPooled(prompt, pooling));
    ASSERT_EQ(alone[0].pooled.size(), 64u);
    PlanDriver chunked(other.get(), /*reverse_blocks=*/true);
    chunked.Pool(chunked.AddPooled(prompt, pooling), 17);
    EXPECT_EQ(chunked[0].pooled, alone[0].pooled);

    PlanDriver batch(other.get());
    for (uint32_t i = 0; i < 8; ++i) {
      if (i == 3) {
        batch.AddPooled(prompt, pooling);
      } else if (i % 2 == 0) {
        batch.AddPooled(Prompt(100 + i, 1 + i * 3), i % 4 == 0 ? Pooling::kMean : Pooling::kLast);
      } else {
        batch.Add(Prompt(100 + i, 1 + i * 3), {});
      }
    }
    while (batch[3].pooled.empty()) {
      std::vector<std::pair<int32_t, int32_t>> parts;
      for (int32_t i = 0; i < 8; ++i) {
        const int32_t next = batch.Next(i, i == 3 ? 15 : 6);
        if (next > 0) parts.emplace_back(i, next);
      }
      batch.Step(parts);
    }
    EXPECT_EQ(batch[3].pooled, alone[0].pooled);
  }
}

// A mean is that of the vectors that each beginning of the prompt ends with.
TEST_P(PoolerTest, TheMeanIsOverTheLastOfEachBeginning) {
  const auto prompt = Prompt(2, 6);
  const auto executor = MakeExecutor(TestConfig(GetParam()), Model());
  PlanDriver driver(executor.get());
  std::vector<double> sum(64);
  for (size_t length = 1; length <= prompt.size(); ++length) {
    const int32_t i = driver.AddPooled(
        {prompt.begin(), prompt.begin() + static_cast<ptrdiff_t>(length)}, Pooling::kLast);
    driver.Pool(i);
    for (size_t k = 0; k < sum.size(); ++k) sum[k] += driver[i].pooled[k];
  }
  PlanDriver whole(executor.get());
  whole.Pool(whole.AddPooled(prompt, Pooling::kMean));
  for (size_t k = 0; k < sum.size(); ++k) {
    EXPECT_EQ(whole[0].pooled[k], static_cast<float>(sum[k] / 6.0));
  }
}

// The vector of the last token, times the output matrix, is the token's logits: with tied and own
// heads, RMSNorm and LayerNorm.
TEST(PoolerReferenceTest, TheLastVectorIsWhatTheHeadReads) {
  for (const std::string family : {"llama", "granite", "starcoder2"}) {
    const std::string path = vivace::testing::SourceDir() + "/../shared/models/tiny/" + family;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "not on this machine: " << path;
    auto file = model::OpenModel(path);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    const kernels::BlockOps& ops = kernels::GetBlockOps(Isa::kReference);
    ThreadPool pool(1);
    const model::ModelSpec& spec = file->spec();
    const MemoryPlan plan = testing::MakePlan(TestConfig(Isa::kReference), spec, ops, pool.size());
    const auto forward = testing::MakeForward(plan, spec, *file, ops, &pool);
    StepPlan step;
    for (TokenId token = 1; token <= 9; ++token) step.tokens.push_back(token * 7 % spec.vocab);
    step.items = {{.slot = SeqSlot(0),
                   .num_tokens = 9,
                   .num_blocks = 1,
                   .logit_rows = LogitRows::kPoolLast,
                   .pool_ends = true}};
    step.block_ids.emplace_back(0);
    forward->Prepare(step);
    forward->Run(step);
    const int32_t row = 0;
    const float* logits = forward->Logits({&row, 1});
    const std::vector<float> want(logits, logits + spec.vocab);
    Pooler pooler(plan.limits, &pool);
    pooler.Take(step, forward.get());
    StepResult result;
    pooler.Finish(&result);
    ASSERT_EQ(result.pooled.size(), 1u);
    const std::span<const float> hidden = result.pooled[0].values;
    ASSERT_EQ(hidden.size(), static_cast<size_t>(spec.hidden));
    std::vector<float> head(static_cast<size_t>(spec.vocab) * hidden.size());
    ASSERT_TRUE(file->ReadVector(spec.lm_head.weight, head.data()).has_value());
    double error = 0, power = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      const double got =
          std::inner_product(hidden.begin(), hidden.end(),
                             head.begin() + static_cast<ptrdiff_t>(i * hidden.size()), 0.0);
      error += (got - want[i]) * (got - want[i]);
      power += static_cast<double>(want[i]) * want[i];
    }
    EXPECT_GT(power, 0);
    EXPECT_LT(std::sqrt(error / power), 1e-5) << family;
  }
}

}  // namespace
}  // namespace vivace
