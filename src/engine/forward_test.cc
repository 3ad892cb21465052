// Which rows a step computes in its last layer, on every tier this machine has.
#include "engine/forward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/make_forward.h"
#include "engine/testing/tiny_model.h"

namespace vivace {
namespace {

using ::testing::ElementsAre;
using testing::TinyModel;

constexpr int32_t kBlock = 16;
constexpr size_t kLayers = 3;

// Rows of each call, as a tier's table of ops in front of the tier's own sees them.
struct Calls {
  std::vector<int32_t> qkv, attention, project, gate_up;
};
Calls calls;
const kernels::BlockOps* counted;

kernels::BlockOps Counting(const kernels::BlockOps& ops) {
  counted = &ops;
  calls = {};
  kernels::BlockOps counting = ops;
  counting.norm_qkv = [](const kernels::NormQkvArgs& a, kernels::Workspace w, ThreadPool& pool) {
    calls.qkv.push_back(a.step.num_rows);
    counted->norm_qkv(a, w, pool);
  };
  counting.attention = [](const kernels::AttentionArgs& a, kernels::Workspace w, ThreadPool& pool) {
    calls.attention.push_back(a.step.num_rows);
    counted->attention(a, w, pool);
  };
  counting.project_residual = [](const kernels::ProjectResidualArgs& a, kernels::Workspace w,
                                 ThreadPool& pool) {
    calls.project.push_back(a.num_rows);
    counted->project_residual(a, w, pool);
  };
  counting.norm_gate_up = [](const kernels::NormGateUpArgs& a, kernels::Workspace w,
                             ThreadPool& pool) {
    calls.gate_up.push_back(a.num_rows);
    counted->norm_gate_up(a, w, pool);
  };
  return counting;
}

struct Item {
  int32_t sequence;
  int32_t count;
  LogitRows rows;
  bool sample;
};

// A model of three layers, and steps over sequences that may share their first blocks.
class Runner {
 public:
  Runner(const model::ModelFile& file, Isa isa, kernels::KvDType kv)
      : file_(file), ops_(Counting(kernels::GetBlockOps(isa))) {
    EngineConfig config = testing::TestConfig(isa);
    config.kv_cache_dtype = kv;
    const MemoryPlan plan = testing::MakePlan(config, file.spec(), ops_, pool_.size());
    forward_ = testing::MakeForward(plan, file.spec(), file, ops_, &pool_);
  }

  // The next tokens of each; returns the logits of all rows that are to have some.
  std::vector<std::vector<float>> Step(const std::vector<Item>& items) {
    StepPlan step;
    for (const Item& item : items) Add(item, &step);
    forward_->Prepare(step);
    forward_->Run(step);
    int32_t rows = 0;
    for (const PlanItem& item : step.items) rows += item.end_logit_row() - item.first_logit_row();
    std::vector<std::vector<float>> logits;
    for (int32_t row = 0; row < rows; ++row) {
      const float* at = forward_->Logits({&row, 1});
      logits.emplace_back(at, at + file_.spec().vocab);
      TokenId best;
      forward_->Argmax({&row, 1}, &best);
      EXPECT_EQ(best, std::ranges::max_element(logits.back()) - logits.back().begin());
    }
    return logits;
  }

  static constexpr int32_t kShared = 10;  // blocks at the beginning of every sequence

  // Sequence 0 has computed the shared blocks: the others go on behind them, as after a prefix hit.
  void FindShared() { std::fill_n(computed_ + 1, 3, kShared * kBlock); }

 private:
  void Add(const Item& item, StepPlan* step) {
    int32_t& computed = computed_[item.sequence];
    const int32_t blocks = (computed + item.count + kBlock - 1) / kBlock;
    step->items.push_back({.slot = SeqSlot(item.sequence),
                           .first_token = static_cast<int32_t>(step->tokens.size()),
                           .num_tokens = item.count,
                           .first_position = computed,
                           .first_block = static_cast<int32_t>(step->block_ids.size()),
                           .num_blocks = blocks,
                           .logit_rows = item.rows,
                           .sample = item.sample});
    for (int32_t i = 0; i < item.count; ++i)
      step->tokens.push_back(Token(item.sequence, computed++));
    for (int32_t i = 0; i < blocks; ++i)
      step->block_ids.emplace_back(i < kShared ? i : 40 * (item.sequence + 1) + i);
  }
  static TokenId Token(int32_t sequence, int32_t position) {
    const int32_t own = position < kShared * kBlock ? 0 : sequence + 1;
    return (position * 31 + own * 57 + position * position * 7) % 260;
  }

  const model::ModelFile& file_;
  const kernels::BlockOps ops_;
  ThreadPool pool_{2};
  std::unique_ptr<Forward> forward_;
  int32_t computed_[4] = {};
};

class ForwardTest : public ::testing::TestWithParam<Isa> {
 protected:
  static const model::ModelFile& Model() {
    static const TinyModel* const model = new TinyModel({.layers = kLayers,
                                                         .hidden = 96,
                                                         .heads = 6,
                                                         .kv_heads = 2,
                                                         .ffn = 160,
                                                         .context = 1024,
                                                         .matrices = DType::kQ4_0,
                                                         .embedding = DType::kQ8_0,
                                                         .biases = true});
    return model->file();
  }
  std::vector<kernels::KvDType> KvDTypes() const {
    using enum kernels::KvDType;
    if (GetParam() == Isa::kReference) return {kF32};
    return {kF32, kBF16, kI8};
  }
};
INSTANTIATE_TEST_SUITE_P(Tiers, ForwardTest, ::testing::ValuesIn(testing::Tiers()),
                         [](const auto& info) { return std::string(Name(info.param)); });

constexpr Item Chunk(int32_t sequence, int32_t count) {
  return {sequence, count, LogitRows::kNone, false};
}
constexpr Item Last(int32_t sequence, int32_t count) {
  return {sequence, count, LogitRows::kLast, true};
}
constexpr Item All(int32_t sequence, int32_t count) {
  return {sequence, count, LogitRows::kAll, true};
}

TEST_P(ForwardTest, TheLastLayerComputesRowsWithLogitsOnly) {
  Runner runner(Model(), GetParam(), KvDTypes().back());
  EXPECT_EQ(runner.Step({Chunk(0, 160)}).size(), 0u);
  EXPECT_THAT(calls.qkv, ElementsAre(160, 160, 160)) << "K and V of every row in every layer";
  EXPECT_THAT(calls.attention, ElementsAre(160, 160));
  EXPECT_THAT(calls.project, ElementsAre(160, 160, 160, 160));
  EXPECT_THAT(calls.gate_up, ElementsAre(160, 160));

  calls = {};
  runner.FindShared();
  EXPECT_EQ(runner.Step({Last(0, 1), Chunk(1, 30), Last(2, 20), All(3, 7)}).size(), 9u);
  EXPECT_THAT(calls.qkv, ElementsAre(58, 58, 58));
  EXPECT_THAT(calls.attention, ElementsAre(58, 58, 9));
  EXPECT_THAT(calls.project, ElementsAre(58, 58, 58, 58, 9, 9));
  EXPECT_THAT(calls.gate_up, ElementsAre(58, 58, 9));

  calls = {};
  EXPECT_EQ(runner.Step({Last(0, 1), Last(2, 1)}).size(), 2u);
  EXPECT_THAT(calls.attention, ElementsAre(2, 2, 2));
}

// Bit for bit, with chunks, decodes, shared beginnings and rows dropped before and between.
TEST_P(ForwardTest, RowsWithLogitsAreThoseOfAFullComputation) {
  for (const kernels::KvDType kv : KvDTypes()) {
    SCOPED_TRACE(Name(kv));
    Runner full(Model(), GetParam(), kv);
    std::vector<std::vector<std::vector<float>>> want(4);  // [sequence][position]
    for (int32_t i = 0; i < 4; ++i) want[static_cast<size_t>(i)] = full.Step({All(i, 230)});

    Runner runner(Model(), GetParam(), kv);
    int32_t computed[4] = {};
    const auto check = [&](const std::vector<Item>& items) {
      const auto got = runner.Step(items);
      size_t row = 0;
      for (const Item& item : items) {
        int32_t& end = computed[item.sequence];
        end += item.count;
        const int32_t wanted = item.rows == LogitRows::kAll    ? item.count
                               : item.rows == LogitRows::kLast ? 1
                                                               : 0;
        for (int32_t position = end - wanted; position < end; ++position) {
          ASSERT_LT(row, got.size());
          EXPECT_EQ(got[row++],
                    want[static_cast<size_t>(item.sequence)][static_cast<size_t>(position)])
              << "sequence " << item.sequence << " at " << position;
        }
      }
      EXPECT_EQ(row, got.size());
    };
    check({Chunk(0, Runner::kShared * kBlock)});
    runner.FindShared();
    std::fill_n(computed + 1, 3, Runner::kShared * kBlock);
    check({Chunk(0, 10), Last(1, 10)});
    check({Last(1, 1), Chunk(0, 7), Last(2, 11)});
    check({Last(1, 1), Last(2, 1), Chunk(0, 9), Last(3, 15)});
    check({Last(1, 1), Last(2, 1), Last(3, 1), All(0, 20)});
    check({Last(1, 1), Chunk(2, 12), Last(3, 30), Last(0, 1)});
    check({Chunk(2, 10)});
    check({Last(0, 1), Last(2, 2), Last(3, 1)});
  }
}

}  // namespace
}  // namespace vivace
