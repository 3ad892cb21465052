// Whole models against transformers' numbers (float32, weights dequantised): every weight format on
// every tier, and SmolLM2 token by token.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include "engine/forward.h"
#include "engine/testing/make_forward.h"
#include "engine/testing/plan_driver.h"
#include "engine/testing/tiny_model.h"
#include "support/paths.h"

namespace vivace {
namespace {

using testing::MakeExecutor;
using testing::PlanDriver;
using testing::TestConfig;

const std::string kShared = vivace::testing::SourceDir() + "/../shared/models/";
const std::string kSmolLm2 =
    vivace::testing::SourceDir() + "/models/SmolLM2-135M-Instruct.Q4_1.gguf";

boost::json::value ReadJson(const std::string& path) {
  std::ifstream file(path);
  return boost::json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
}

std::vector<TokenId> Ids(const boost::json::value& array) {
  return boost::json::value_to<std::vector<TokenId>>(array);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSlowBuild = true;
#else
constexpr bool kSlowBuild = false;
#endif

class ModelReferenceTest : public ::testing::TestWithParam<Isa> {
 protected:
  bool exact() const { return GetParam() == Isa::kReference; }
  bool bf16_dots() const { return GetParam() == Isa::kAvx512Bf16; }
};
INSTANTIATE_TEST_SUITE_P(Tiers, ModelReferenceTest, ::testing::ValuesIn(testing::Tiers()),
                         [](const auto& info) { return std::string(Name(info.param)); });

// Logits of the prompt's last token.
std::vector<float> LastLogits(const model::ModelFile& file, Isa isa, kernels::KvDType kv,
                              const std::vector<TokenId>& prompt) {
  const kernels::BlockOps& ops = kernels::GetBlockOps(isa);
  EngineConfig config = TestConfig(isa);
  config.kv_cache_dtype = kv;
  ThreadPool pool(2);
  const MemoryPlan plan = testing::MakePlan(config, file.spec(), ops, pool.size());
  const auto forward = testing::MakeForward(plan, file.spec(), file, ops, &pool);
  StepPlan step;
  step.tokens = prompt;
  const auto count = static_cast<int32_t>(prompt.size());
  step.items = {{.slot = SeqSlot(0),
                 .num_tokens = count,
                 .num_blocks = (count + 15) / 16,
                 .logit_rows = LogitRows::kLast,
                 .sample = true}};
  for (int32_t i = 0; i < (count + 15) / 16; ++i) step.block_ids.emplace_back(i);
  forward->Prepare(step);
  forward->Run(step);
  const int32_t row = 0;
  const float* logits = forward->Logits({&row, 1});
  return {logits, logits + file.spec().vocab};
}

struct Distance {
  double largest = 0;   // of any logit
  double relative = 0;  // root mean square, over that of the logits
};

Distance Compare(const std::vector<float>& got, const std::vector<float>& want) {
  Distance distance;
  double error = 0, power = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double d = std::abs(static_cast<double>(got[i]) - want[i]);
    distance.largest = std::max(distance.largest, d);
    error += d * d;
    power += static_cast<double>(want[i]) * want[i];
  }
  distance.relative = std::sqrt(error / power);
  return distance;
}

TEST_P(ModelReferenceTest, EveryWeightFormat) {
  if (!std::filesystem::exists(kShared)) GTEST_SKIP() << "not on this machine: " << kShared;
  const auto reference = ReadJson(kShared + "quant/reference.json");
  const auto prompt = Ids(reference.at("prompt_ids"));
  for (const std::string name : {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "IQ4_NL",
                                 "Q2_K", "Q4_K_M", "Q5_K_M", "Q6_K"}) {
    SCOPED_TRACE(name);
    const std::string file_name = "tiny-" + name + ".gguf";
    auto file = model::OpenModel(kShared + "quant/" + file_name);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    const auto want = boost::json::value_to<std::vector<float>>(
        reference.at("files").at(file_name).at("last_logits"));
    const auto distance = [&](kernels::KvDType kv) {
      const auto got = LastLogits(*file, GetParam(), kv, prompt);
      EXPECT_EQ(got.size(), want.size());
      return Compare(got, want);
    };
    const Distance fp32 = distance(kernels::KvDType::kF32);
    const bool int8 = !exact() && name.find('Q') != std::string::npos;
    if (bf16_dots() && name == "BF16") {
      // As below, with inputs rounded by 2^-9 / sqrt(3) of themselves: 0.11 % * sqrt(14) = 0.42 %.
      EXPECT_LT(fp32.relative, 0.0084);
    } else if (!int8) {
      EXPECT_LT(fp32.largest, 2e-3);
    } else {
      // Half a step of max/127 in each group of 32 inputs is 0.5 % of their rms for normal values;
      // the 14 matrices of the two layers add theirs up as a random walk: 0.5 % * sqrt(14) = 2 %.
      EXPECT_LT(fp32.relative, 0.04);
    }
    if (exact()) continue;
    // bf16 rounds K and V by up to 2^-9 of themselves; scores of a few units turn that into as many
    // times 2^-9 of a weight. Scores of this model reach 5. A tier of bf16 products rounds queries
    // and weights as well.
    const double roundings = bf16_dots() ? 12 : 6;
    EXPECT_LT(distance(kernels::KvDType::kBF16).relative, fp32.relative + roundings * 0x1p-9);
    // int8: 1/254 of a row's largest value, which is up to three times its rms.
    EXPECT_LT(distance(kernels::KvDType::kI8).relative, fp32.relative + 6 * 3 / 254.0);
  }
}

TEST_P(ModelReferenceTest, SmolLm2GreedyTokens) {
  if (!std::filesystem::exists(kShared)) GTEST_SKIP() << "not on this machine: " << kShared;
  if (!std::filesystem::exists(kSmolLm2)) GTEST_SKIP() << "not on this machine: " << kSmolLm2;
  if (kSlowBuild && exact()) GTEST_SKIP() << "the scalar tier takes minutes under a sanitizer";
  const auto reference = ReadJson(kShared + "smollm2_reference.json");
  auto file = model::OpenModel(kSmolLm2);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto executor = MakeExecutor(TestConfig(GetParam()), *file);
  PlanDriver driver(executor.get());
  SamplingParams params;
  params.temperature = 0;
  // All cases as one batch: the slow reference tier reads its weights once for all of them.
  const auto& cases = reference.at("cases").as_array();
  size_t longest = 0;
  std::vector<std::pair<int32_t, int32_t>> parts;
  for (const auto& c : cases) {
    const int32_t i = driver.Add(Ids(c.at("prompt_ids")), params);
    parts.emplace_back(i, driver.Next(i, 512));
    longest = std::max(longest, c.at("greedy_ids").as_array().size());
  }
  for (const auto& part : parts) driver.Step({part});
  for (auto& part : parts) part.second = 1;
  for (size_t step = 1; step < longest; ++step) driver.Step(parts);
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i);
    const auto want = Ids(cases[i].at("greedy_ids"));
    const auto margin = boost::json::value_to<std::vector<double>>(cases[i].at("margin"));
    const auto got = driver[static_cast<int32_t>(i)].output();
    for (size_t k = 0; k < want.size() && margin[k] >= (exact() ? 0.02 : 0.3); ++k) {
      ASSERT_EQ(got[k], want[k]) << "token " << k << ", margin " << margin[k];
    }
  }
}

// Mean log-likelihood of all tokens but the first.
double MeanLogLikelihood(const EngineConfig& config, const model::ModelFile& file,
                         const std::vector<TokenId>& ids) {
  const auto executor = MakeExecutor(config, file);
  PlanDriver driver(executor.get());
  SamplingParams params;
  params.temperature = 0;
  params.prompt_logprobs = 0;
  driver.Finish(driver.Add(ids, params), 1, 300);
  const auto& got = driver[0].prompt_logprobs;
  EXPECT_EQ(got.size(), ids.size() - 1);
  double sum = 0;
  for (const auto& row : got) sum += static_cast<double>(row.chosen.logprob);
  return sum / static_cast<double>(got.size());
}

TEST_P(ModelReferenceTest, SmolLm2MeanLogLikelihood) {
  if (!std::filesystem::exists(kShared)) GTEST_SKIP() << "not on this machine: " << kShared;
  if (!std::filesystem::exists(kSmolLm2)) GTEST_SKIP() << "not on this machine: " << kSmolLm2;
  if (kSlowBuild && exact()) GTEST_SKIP() << "the scalar tier takes minutes under a sanitizer";
  const auto reference = ReadJson(kShared + "smollm2_reference.json").at("long");
  auto ids = Ids(reference.at("ids"));
  // The scalar tier takes a second for a few tokens: a part of the text does for it.
  if (exact()) ids.resize(256);
  auto file = model::OpenModel(kSmolLm2);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto logprobs = boost::json::value_to<std::vector<double>>(reference.at("prompt_logprobs"));
  const auto count = static_cast<int64_t>(ids.size()) - 1;
  const double want =
      std::accumulate(logprobs.begin(), logprobs.begin() + count, 0.0) / static_cast<double>(count);
  EngineConfig config = TestConfig(GetParam());
  const double got = MeanLogLikelihood(config, *file, ids);
  EXPECT_NEAR(got, want, exact() ? 0.002 : 0.02);
  if (exact()) return;
  config.kv_cache_dtype = kernels::KvDType::kI8;
  const double int8 = MeanLogLikelihood(config, *file, ids);
  EXPECT_NEAR(int8, got, 0.01);
  RecordProperty("nll", std::to_string(-got) + ", int8 KV " + std::to_string(-int8) +
                            ", reference " + std::to_string(-want));
}

}  // namespace
}  // namespace vivace
