// Every model family against transformers' numbers (float32), as Hugging Face folders with small
// random weights: logits of the last four positions, greedy tokens, and the same bits in chunks.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "engine/forward.h"
#include "engine/testing/make_forward.h"
#include "engine/testing/tiny_model.h"
#include "formats/safetensors.h"
#include "support/paths.h"

namespace vivace {
namespace {

const std::string kTiny = vivace::testing::SourceDir() + "/../shared/models/tiny/";

constexpr const char* kFamilies[] = {"cohere2",    "deepseek_v2",      "deepseek_v3", "exaone4",
                                     "gemma2",     "gemma3_text",      "glm4",        "gpt_oss",
                                     "granite",    "granitemoehybrid", "lfm2",        "llama",
                                     "mistral",    "mixtral",          "olmo2",       "phi3",
                                     "qwen2",      "qwen2_moe",        "qwen3",       "qwen3_moe",
                                     "qwen3_next", "smollm3",          "starcoder2"};
constexpr int32_t kLastRows = 4;

struct Case {
  std::vector<TokenId> prompt, greedy;
  std::vector<double> margin;
  std::vector<float> logits;  // [kLastRows, vocab]
};

std::vector<Case> ReadCases(const std::string& folder) {
  std::ifstream file(folder + "/reference.json");
  const auto json = boost::json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  auto tensors = formats::SafetensorsFile::Open(folder + "/reference_logits.st");
  EXPECT_TRUE(tensors.has_value());
  std::vector<Case> cases;
  for (const auto& c : json.at("cases").as_array()) {
    Case& added = cases.emplace_back();
    added.prompt = boost::json::value_to<std::vector<TokenId>>(c.at("prompt_ids"));
    added.greedy = boost::json::value_to<std::vector<TokenId>>(c.at("greedy_ids"));
    added.margin = boost::json::value_to<std::vector<double>>(c.at("greedy_margin"));
    const auto* logits = tensors->FindTensor("logits_" + std::to_string(cases.size() - 1));
    added.logits.resize(logits->data.size() / sizeof(float));
    std::memcpy(added.logits.data(), logits->data.data(), logits->data.size());
  }
  return cases;
}

// A family's folder with another file as its configuration.
class FolderWithConfig {
 public:
  FolderWithConfig(const std::string& family, const std::string& config)
      : path_(std::filesystem::temp_directory_path() /
              ("vivace_family_" + std::to_string(getpid()) + "_" + family)) {
    std::filesystem::create_directories(path_);
    for (const auto& entry : std::filesystem::directory_iterator(kTiny + family)) {
      const auto name = entry.path().filename();
      if (name == "config.json" || name == "config.v4.json") continue;
      std::filesystem::create_symlink(std::filesystem::absolute(entry.path()), path_ / name);
    }
    std::filesystem::copy_file(kTiny + family + "/" + config, path_ / "config.json");
  }
  ~FolderWithConfig() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// One sequence through a model, without a scheduler.
class Runner {
 public:
  Runner(const model::ModelFile& file, Isa isa, kernels::KvDType kv) : vocab_(file.spec().vocab) {
    const kernels::BlockOps& ops = kernels::GetBlockOps(isa);
    EngineConfig config = testing::TestConfig(isa);
    config.kv_cache_dtype = kv;
    const MemoryPlan plan = testing::MakePlan(config, file.spec(), ops, pool_.size());
    groups_ = plan.limits.kv_windows.size();
    forward_ = testing::MakeForward(plan, file.spec(), file, ops, &pool_);
  }

  // A new sequence over the same memory.
  void Start(int32_t prompt_len) {
    computed_ = 0;
    forward_->Bind(SeqSlot(0), prompt_len);
  }

  // The next tokens; logits of the last `rows` of them.
  std::vector<float> Step(std::span<const TokenId> tokens, int32_t rows) {
    const auto count = static_cast<int32_t>(tokens.size());
    StepPlan step;
    step.tokens.assign(tokens.begin(), tokens.end());
    step.items = {{.slot = SeqSlot(0),
                   .num_tokens = count,
                   .first_position = computed_,
                   .num_blocks = kBlocks,
                   .logit_rows = LogitRows::kAll,
                   .sample = true}};
    for (int32_t i = 0; i < kBlocks * groups_; ++i) step.block_ids.emplace_back(i);
    computed_ += count;
    forward_->Prepare(step);
    forward_->Run(step);
    std::vector<float> logits;
    for (int32_t row = count - rows; row < count; ++row) {
      const float* at = forward_->Logits({&row, 1});
      logits.insert(logits.end(), at, at + vocab_);
      TokenId best = -1;
      forward_->Argmax({&row, 1}, &best);
      EXPECT_EQ(best, std::max_element(at, at + vocab_) - at);
    }
    return logits;
  }

 private:
  static constexpr int32_t kBlocks = 20;

  const int32_t vocab_;
  ThreadPool pool_{2};
  int32_t groups_ = 1;
  std::unique_ptr<Forward> forward_;
  int32_t computed_ = 0;
};

struct Distance {
  double largest = 0;   // of any logit
  double relative = 0;  // root mean square, over that of the logits
};

Distance Compare(const std::vector<float>& got, const std::vector<float>& want) {
  EXPECT_EQ(got.size(), want.size());
  Distance distance;
  double error = 0, power = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double d = std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
    distance.largest = d <= distance.largest ? distance.largest : d;  // a NaN stays
    error += d * d;
    power += static_cast<double>(want[i]) * static_cast<double>(want[i]);
  }
  distance.relative = std::sqrt(error / power);
  return distance;
}

class FamilyTest : public ::testing::TestWithParam<std::tuple<Isa, const char*>> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kTiny)) GTEST_SKIP() << "not on this machine: " << kTiny;
  }
  Isa isa() const { return std::get<0>(GetParam()); }
  std::string family() const { return std::get<1>(GetParam()); }
  // A tier that rounds the rows of products with BF16 weights to bf16, which these models have.
  bool rounds() const { return isa() == Isa::kAvx512Bf16; }
};
INSTANTIATE_TEST_SUITE_P(Tiers, FamilyTest,
                         ::testing::Combine(::testing::ValuesIn(testing::Tiers()),
                                            ::testing::ValuesIn(kFamilies)),
                         [](const auto& info) {
                           return std::string(Name(std::get<0>(info.param))) + "_" +
                                  std::get<1>(info.param);
                         });

TEST_P(FamilyTest, AgreesWithTransformers) {
  const auto cases = ReadCases(kTiny + family());
  for (const std::string config : {"config.json", "config.v4.json"}) {
    SCOPED_TRACE(config);
    const FolderWithConfig folder(family(), config);
    const auto file = model::OpenModel(folder.path());
    ASSERT_TRUE(file.has_value()) << file.error().message;
    Runner runner(*file, isa(), kernels::KvDType::kF32);
    for (size_t c = 0; c < cases.size(); ++c) {
      SCOPED_TRACE(::testing::Message() << "case " << c);
      const Case& want = cases[c];
      runner.Start(static_cast<int32_t>(want.prompt.size()));
      auto logits = runner.Step(want.prompt, kLastRows);
      const Distance distance = Compare(logits, want.logits);
      if (rounds()) {
        // Rows and queries rounded by 2^-9 / sqrt(3) of themselves, in some 7 products of each of
        // up to 6 layers, add up as a random walk: 0.11 % * sqrt(42) = 0.7 %, and an MLP may triple
        // it. Rounding may also turn the choice between two experts. That exchanges half of one of
        // the some 7 parts of a row, for one row of four: 0.7 * sqrt(1 / 7) / sqrt(4) = 13 %.
        const bool experts = file->spec().layers.back().mlp.moe.has_value();
        EXPECT_LT(distance.relative, experts ? 0.15 : 0.03);
      } else {
        EXPECT_LT(distance.largest, 2e-3);
      }
      for (size_t i = 0; i < want.greedy.size() && want.margin[i] > (rounds() ? 0.3 : 0.01); ++i) {
        const auto last = logits.end() - file->spec().vocab;
        const auto best = static_cast<TokenId>(std::max_element(last, logits.end()) - last);
        ASSERT_EQ(best, want.greedy[i]) << "token " << i << ", margin " << want.margin[i];
        logits = runner.Step({&best, 1}, 1);
      }
    }
  }
}

// Design rule 1, for all that families are made of.
TEST_P(FamilyTest, ChunksGiveTheSameBits) {
  const auto file = model::OpenModel(kTiny + family());
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto prompt = ReadCases(kTiny + family())[1].prompt;
  const auto count = static_cast<int32_t>(prompt.size());
  Runner runner(*file, isa(), kernels::GetBlockOps(isa()).default_kv_dtype);
  runner.Start(count);
  const auto whole = runner.Step(prompt, 1);
  for (const int32_t chunk : {1, 7, 50}) {
    runner.Start(count);
    std::vector<float> last;
    for (int32_t at = 0; at < count; at += chunk) {
      const auto some = std::span(prompt).subspan(static_cast<size_t>(at),
                                                  static_cast<size_t>(std::min(chunk, count - at)));
      last = runner.Step(some, 1);
    }
    EXPECT_TRUE(last == whole) << "chunks of " << chunk;
  }
}

}  // namespace
}  // namespace vivace
