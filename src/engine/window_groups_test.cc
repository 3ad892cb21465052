// Models with sliding windows in a cache that keeps only what the windows see: scheduler, cache and
// kernels together, on every tier this machine has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "engine/forward.h"
#include "engine/testing/make_forward.h"
#include "engine/testing/tiny_model.h"
#include "sched/scheduler.h"

namespace vivace {
namespace {

using testing::TinyModel;

constexpr int32_t kBlocks = 60;
constexpr int32_t kModelLen = 400;
constexpr int32_t kOutputs = 24;
// Reading from there does not go unnoticed.
constexpr BlockId kNowhere{1 << 28};

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<std::vector<float>> logits;  // each token was drawn from
  bool operator==(const Answer&) const = default;
};
using Answers = std::map<SeqKey, Answer>;

// A scheduler and a model, without threads or sampling between them.
class Server {
 public:
  // `windows` of the layers, over what the file says. With `keep_all` the cache has one group,
  // which keeps every position; the windows are then masks only.
  Server(const model::ModelFile& file, const std::vector<int32_t>& windows, Isa isa,
         kernels::KvDType kv, bool keep_all)
      : ops_(kernels::GetBlockOps(isa)) {
    model::ModelSpec spec = file.spec();
    EngineConfig config = testing::TestConfig(isa);
    config.kv_cache_dtype = kv;
    config.max_num_seqs = 4;
    config.max_num_batched_tokens = 64;
    config.max_model_len = kModelLen;
    config.num_kv_blocks = keep_all ? 500 : kBlocks;
    if (!keep_all) SetWindows(windows, &spec);
    const MemoryPlan plan = testing::MakePlan(config, spec, ops_, pool_.size());
    SetWindows(windows, &spec);
    vocab_ = spec.vocab;
    forward_ = testing::MakeForward(plan, spec, file, ops_, &pool_);
    scheduler_ = std::make_unique<Scheduler>(
        SchedulerConfig{.max_num_seqs = plan.limits.max_sequences,
                        .max_num_batched_tokens = plan.limits.max_batched_tokens,
                        .max_model_len = plan.limits.max_model_len,
                        .kv = {.num_blocks = plan.limits.num_blocks,
                               .block_size = plan.limits.block_size,
                               .enable_prefix_caching = true,
                               .windows = plan.limits.kv_windows}});
  }

  void Add(SeqKey key, const std::vector<TokenId>& prompt, int32_t max_tokens) {
    NewSequence sequence;
    sequence.key = sequence.group = key;
    sequence.prompt = prompt;
    sequence.max_tokens = max_tokens;
    scheduler_->Add(sequence);
  }

  Answers Drain() {
    while (!scheduler_->idle()) Step();
    return std::move(answers_);
  }

  const Scheduler& scheduler() const { return *scheduler_; }
  int64_t num_left() const { return num_left_; }  // places that the windows had left, in all steps

 private:
  static void SetWindows(const std::vector<int32_t>& windows, model::ModelSpec* spec) {
    for (size_t i = 0; i < windows.size(); ++i) spec->layers[i].attention.window = windows[i];
  }

  void Step() {
    scheduler_->Plan(&plan_, &changes_);
    for (const PlanChanges::Bound& bound : changes_.bound) keys_[bound.slot] = bound.key;
    forward_->Prepare(plan_);
    for (BlockId& block : plan_.block_ids) {
      if (block.valid()) continue;
      block = kNowhere;
      ++num_left_;
    }
    forward_->Run(plan_);
    result_.Clear();
    result_.step = plan_.step;
    int32_t row = 0;
    for (size_t i = 0; i < plan_.items.size(); ++i) {
      if (!plan_.items[i].sample) continue;
      const float* logits = forward_->Logits({&row, 1});
      ++row;
      Answer& answer = answers_[keys_[plan_.items[i].slot]];
      answer.logits.emplace_back(logits, logits + vocab_);
      answer.tokens.push_back(static_cast<TokenId>(std::ranges::max_element(answer.logits.back()) -
                                                   answer.logits.back().begin()));
      result_.sampled.push_back(
          {.item = static_cast<int32_t>(i), .token = answer.tokens.back(), .error = {}});
    }
    scheduler_->Commit(plan_, result_, &effects_);
    ASSERT_EQ(scheduler_->CheckInvariants(), "");
  }

  const kernels::BlockOps& ops_;
  ThreadPool pool_{2};
  int32_t vocab_ = 0;
  std::unique_ptr<Forward> forward_;
  std::unique_ptr<Scheduler> scheduler_;
  std::map<SeqSlot, SeqKey> keys_;
  StepPlan plan_;
  PlanChanges changes_;
  StepResult result_;
  Effects effects_;
  Answers answers_;
  int64_t num_left_ = 0;
};

class WindowGroupsTest : public ::testing::TestWithParam<Isa> {
 protected:
  static const model::ModelFile& Model() {
    static const TinyModel* const model = new TinyModel({.layers = 6,
                                                         .hidden = 64,
                                                         .heads = 4,
                                                         .kv_heads = 2,
                                                         .ffn = 96,
                                                         .context = 1024,
                                                         .matrices = DType::kQ8_0});
    return model->file();
  }
  std::vector<kernels::KvDType> KvDTypes() const {
    using enum kernels::KvDType;
    if (GetParam() == Isa::kReference) return {kF32};
    return {kF32, kBF16, kI8};
  }
};
INSTANTIATE_TEST_SUITE_P(Tiers, WindowGroupsTest, ::testing::ValuesIn(testing::Tiers()),
                         [](const auto& info) { return std::string(Name(info.param)); });

struct Request {
  std::vector<TokenId> prompt;
  int32_t outputs;
};

// Streams that outgrow the cache together, then prompts of which some begin alike.
std::vector<Request> Requests() {
  constexpr size_t kStreams = 4, kPrompts = 6;
  std::mt19937 random(7);
  const auto fill = [&](size_t size, std::vector<TokenId> prompt) {
    while (prompt.size() < size) prompt.push_back(static_cast<TokenId>(random() % 260));
    return prompt;
  };
  std::vector<Request> requests;
  for (size_t i = 0; i < kStreams; ++i) requests.push_back({fill(10 + i, {}), 150});
  const std::vector<TokenId> shared = fill(150, {});
  for (size_t i = 0; i < kPrompts; ++i) {
    requests.push_back(
        {fill(175 + 25 * i, i % 3 == 2 ? std::vector<TokenId>() : shared), kOutputs});
  }
  return requests;
}

// Bit for bit: chunks, decodes, prefix hits and preemptions, in a cache that could not keep the
// longest of the sequences whole.
TEST_P(WindowGroupsTest, AnswersAreThoseOfACacheThatKeepsEverything) {
  const auto requests = Requests();
  int64_t hits = 0, preemptions = 0;
  for (const std::vector<int32_t>& windows : {std::vector<int32_t>{40, 40, 0, 40, 40, 0},
                                              {16, 70, 70, 0, 16, 0},
                                              {33, 33, 33, 33, 33, 33}}) {
    for (const kernels::KvDType kv : KvDTypes()) {
      SCOPED_TRACE(::testing::Message()
                   << Name(kv) << ", windows of " << windows[0] << " and " << windows[2]);
      Server whole(Model(), windows, GetParam(), kv, /*keep_all=*/true);
      Server small(Model(), windows, GetParam(), kv, /*keep_all=*/false);
      for (size_t i = 0; i < requests.size(); ++i) {
        whole.Add(i, requests[i].prompt, requests[i].outputs);
        small.Add(i, requests[i].prompt, requests[i].outputs);
      }
      const Answers want = whole.Drain();
      EXPECT_TRUE(small.Drain() == want);
      EXPECT_EQ(whole.num_left(), 0);
      EXPECT_GT(small.num_left(), 1000) << "windows leave blocks behind";
      EXPECT_EQ(want.size(), requests.size());
      EXPECT_EQ(want.at(0).tokens.size(), 150u);
      hits += small.scheduler().stats().prefix_hits;
      preemptions += small.scheduler().stats().preemptions;
    }
    if (GetParam() == Isa::kReference) break;  // it is slow, and alike for all windows
  }
  EXPECT_GT(hits, 0);
  EXPECT_GT(preemptions, 0);
  EXPECT_LT(LongestSequence(KvWindows{0, 0, 0}, 16, kBlocks, 64, kModelLen), 300 + kOutputs);
}

}  // namespace
}  // namespace vivace
