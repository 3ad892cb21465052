#include "engine/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vivace {
namespace {

using ::testing::HasSubstr;

constexpr size_t kGiB = size_t{1} << 30;
constexpr size_t kWeights = 100u << 20;

// 2 layers of 2 kv heads of 64 in fp32: 2 * 2 * 16 * 64 * 2 * 4 B = 32 KiB a block.
constexpr size_t kBlockBytes = 32u << 10;

model::ModelSpec Spec(int32_t context = 4096) {
  model::ModelSpec spec;
  spec.vocab = 1000;
  spec.hidden = 256;
  spec.context = context;
  model::LayerSpec layer;
  layer.attention.heads = 4;
  layer.attention.kv_heads = 2;
  layer.attention.head_dim = 64;
  layer.mlp.dense.ffn = 512;
  spec.layers = {layer, layer};
  return spec;
}

Result<MemoryPlan> Plan(const EngineConfig& config, size_t available, int32_t context = 4096) {
  return PlanMemory(config, Spec(context), kernels::GetBlockOps(Isa::kReference), kWeights, 2,
                    available);
}

TEST(MemoryPlanTest, CountsEveryByte) {
  EngineConfig config;
  config.num_kv_blocks = 300;
  const auto plan = Plan(config, 4 * kGiB);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->limits.num_blocks, 300);
  EXPECT_EQ(plan->kv_bytes, 300 * kBlockBytes);
  EXPECT_EQ(plan->limits.max_model_len, 4096);
  EXPECT_EQ(plan->logits_stride, 1008);
  EXPECT_GT(plan->workspace_bytes, 0u);
}

// Latent attention keeps one vector of each token, experts need a router's scratch and sums.
TEST(MemoryPlanTest, CountsLatentsAndExperts) {
  const auto plan = [](const model::ModelSpec& spec) {
    EngineConfig config;
    config.num_kv_blocks = 300;
    return PlanMemory(config, spec, kernels::GetBlockOps(Isa::kReference), kWeights, 2, 4 * kGiB);
  };
  model::ModelSpec spec = Spec();
  const MemoryPlan plain = plan(spec).value();
  for (model::LayerSpec& layer : spec.layers) {
    model::LatentSpec& latent = layer.attention.latent.emplace();
    latent.rank = 64;
    latent.nope_dims = 48;
    latent.rope_dims = 16;
    latent.value_dims = 32;
    latent.kv_a.weight = {.name = "kv_a", .rows = 80, .cols = 256};
    latent.q_b.weight = {.name = "q_b", .rows = 4 * 64, .cols = 256};
    latent.kv_norm.weight = {.name = "kv_norm", .rows = 1, .cols = 64};
    latent.k_b.resize(4);
    latent.v_b.resize(4);
    layer.attention.rope.dims = 16;
  }
  const MemoryPlan latent = plan(spec).value();
  EXPECT_EQ(latent.kv.kv_heads, 1);
  EXPECT_EQ(latent.kv_block_bytes, 16u * 80 * sizeof(float));
  EXPECT_EQ(latent.query_cols, 4 * 80);
  EXPECT_EQ(latent.attended_cols, 4 * 64);
  EXPECT_EQ(latent.shape.latent_outputs, 4 * 64 + 80);

  model::MoeSpec& moe = spec.layers[1].mlp.moe.emplace();
  moe.router.experts = 16;
  moe.router.top_k = 4;
  moe.experts.resize(16);
  for (model::FeedForwardSpec& expert : moe.experts) {
    expert.ffn = 128;
    expert.up.weight = {.name = "up", .rows = 128, .cols = 256};
  }
  const MemoryPlan experts = plan(spec).value();
  const size_t sums = sizeof(float) * 256 * static_cast<size_t>(experts.shape.max_rows);
  EXPECT_EQ(experts.activation_bytes, latent.activation_bytes + sums);
  EXPECT_GT(experts.workspace_bytes, plain.workspace_bytes);

  spec.layers[0].attention.latent.reset();  // heads of 2 x 64 beside one of 80
  const auto mixed = plan(spec);
  ASSERT_FALSE(mixed.has_value());
  EXPECT_EQ(mixed.error().reason, "unsupported_head");
}

// A gated delta rule in the first of three layers: what it keeps of a sequence is 2 MiB and the
// last three inputs of its convolution.
model::ModelSpec RecurrentSpec() {
  model::ModelSpec spec = Spec();
  model::LayerSpec layer = spec.layers[0];
  layer.attention = {};
  model::RecurrentSpec& recurrent = layer.recurrent.emplace();
  recurrent.geometry = {.kind = kernels::RecurrentKind::kGatedDelta,
                        .heads = 32,
                        .key_heads = 16,
                        .key_dim = 128,
                        .value_dim = 128,
                        .conv_width = 4};
  for (const int32_t rows : {3 * 4096, 64}) {
    recurrent.input.emplace_back().weight = {.name = "input", .rows = rows, .cols = 256};
  }
  for (model::WeightSpec* weight : {&recurrent.conv_weight, &recurrent.decay, &recurrent.dt_bias}) {
    weight->name = "vector";
  }
  spec.layers.insert(spec.layers.begin(), layer);
  return spec;
}
constexpr size_t kStateBytes = sizeof(float) * (32 * 128 * 128 + 3 * (2 * 2048 + 4096));

TEST(MemoryPlanTest, CountsRecurrentStates) {
  const auto plan = [](const EngineConfig& config, const model::ModelSpec& spec) {
    return PlanMemory(config, spec, kernels::GetBlockOps(Isa::kReference), kWeights, 2, 4 * kGiB);
  };
  EngineConfig config;
  config.max_num_seqs = 10;
  config.num_kv_blocks = 300;
  const MemoryPlan plain = plan(config, Spec()).value();
  EXPECT_EQ(plain.state_bytes, 0u);
  EXPECT_FALSE(plain.limits.recurrent);
  EXPECT_TRUE(plain.notes.empty());
  const auto got = plan(config, RecurrentSpec());
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->state_bytes, 10 * kStateBytes);
  EXPECT_TRUE(got->limits.recurrent);
  EXPECT_EQ(got->kv_bytes, plain.kv_bytes) << "only layers with attention have cache blocks";
  EXPECT_EQ(got->groups.layers_per_block, 2);
  EXPECT_EQ(got->groups.groups.at(0).layers, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(got->query_cols, 4096);
  EXPECT_GT(got->workspace_bytes, plain.workspace_bytes);
  ASSERT_EQ(got->notes.size(), 1u);
  EXPECT_THAT(got->notes[0], HasSubstr("no prefix caching"));
  config.enable_prefix_caching = false;
  EXPECT_TRUE(plan(config, RecurrentSpec())->notes.empty()) << "nobody asked for it";
}

TEST(MemoryPlanTest, RecurrentStatesThatDoNotFit) {
  const auto plan = [](const EngineConfig& config, size_t available) {
    return PlanMemory(config, RecurrentSpec(), kernels::GetBlockOps(Isa::kReference), kWeights, 2,
                      available);
  };
  // 64 of them are 134 MiB: a quarter of what is left is less.
  EngineConfig config;
  const auto lowered = plan(config, kGiB / 2);
  ASSERT_TRUE(lowered) << lowered.error().message;
  EXPECT_LT(lowered->limits.max_sequences, 64);
  EXPECT_GT(lowered->limits.max_sequences, 1);
  EXPECT_EQ(lowered->state_bytes, static_cast<size_t>(lowered->limits.max_sequences) * kStateBytes);
  EXPECT_LT(lowered->state_bytes, kGiB / 2 / 4);
  EXPECT_THAT(lowered->notes.at(0), HasSubstr("instead of 64"));
  EXPECT_THAT(lowered->notes.at(0), HasSubstr("--max-num-seqs"));
  EXPECT_EQ(plan(config, 16 * kGiB)->limits.max_sequences, 64);
  EXPECT_EQ(plan(config, 0)->limits.max_sequences, 64) << "nothing is known of the memory";

  config.max_num_seqs = 512;
  config.max_num_batched_tokens = 512;
  const auto refused = plan(config, kGiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "max-num-seqs");
  EXPECT_THAT(refused.error().message, HasSubstr("states of 512 sequences take 1.0 GiB"));
  config.max_num_seqs = 100;
  EXPECT_TRUE(plan(config, kGiB));
}

// One RoPE table for each kind of rotation, and a scratch of the vocabulary for each thread.
TEST(MemoryPlanTest, CountsTablesAndScratch) {
  const auto plan = [](const model::ModelSpec& spec, int threads = 2) {
    return PlanMemory(EngineConfig(), spec, kernels::GetBlockOps(Isa::kReference), kWeights,
                      threads, kGiB)
        .value();
  };
  model::ModelSpec spec = Spec();
  const MemoryPlan none = plan(spec);
  for (model::LayerSpec& layer : spec.layers) layer.attention.rope.dims = 64;
  const MemoryPlan one = plan(spec);
  spec.layers[1].attention.rope.theta = 5e5f;
  const MemoryPlan two = plan(spec);
  const size_t table = (512 + 4096) * 64 * sizeof(float);
  EXPECT_EQ(one.table_bytes, none.table_bytes + table);
  EXPECT_EQ(two.table_bytes, one.table_bytes + table);
  EXPECT_LT(two.limits.num_blocks, none.limits.num_blocks) << "the cache makes room for them";
  EXPECT_GE(plan(spec, 3).table_bytes, two.table_bytes + 1000 * 3 * sizeof(float));
}

TEST(MemoryPlanTest, BytesGiveWholeBlocks) {
  EngineConfig config;
  config.kv_cache_memory_bytes = 400 * kBlockBytes + kBlockBytes - 1;
  const auto plan = Plan(config, 4 * kGiB);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->limits.num_blocks, 400);
}

TEST(MemoryPlanTest, ByDefaultNeverMoreThanAllSequencesNeed) {
  EngineConfig config;
  config.max_num_seqs = 2;
  const auto plan = Plan(config, 1000 * kGiB);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->limits.num_blocks, 2 * 4096 / 16);
}

TEST(MemoryPlanTest, ByDefaultLeavesRoom) {
  EngineConfig config;
  for (const size_t available : {kGiB, 2 * kGiB}) {
    const auto plan = Plan(config, available);
    ASSERT_TRUE(plan.has_value());
    EXPECT_LT(plan->kv_bytes + kWeights + plan->workspace_bytes + plan->activation_bytes +
                  plan->table_bytes,
              available);
  }
}

TEST(MemoryPlanTest, AShortCacheShortensTheDefaultLengthOnly) {
  EngineConfig config;
  config.num_kv_blocks = 10;
  const auto plan = Plan(config, 4 * kGiB);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->limits.max_model_len, 160);

  config.max_model_len = 161;
  const auto refused = Plan(config, 4 * kGiB);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(refused.error().field, "max-model-len");
  EXPECT_THAT(refused.error().message, HasSubstr("160 tokens"));
  EXPECT_THAT(refused.error().message, HasSubstr("161"));
  config.max_model_len = 160;
  EXPECT_TRUE(Plan(config, 4 * kGiB).has_value());
}

TEST(MemoryPlanTest, LongerThanTheModelIsRefused) {
  EngineConfig config;
  config.max_model_len = 4097;
  const auto refused = Plan(config, 4 * kGiB);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().field, "max-model-len");
  EXPECT_THAT(refused.error().message, HasSubstr("4097"));
  EXPECT_THAT(refused.error().message, HasSubstr("4096"));
  config.max_model_len = 4096;
  EXPECT_TRUE(Plan(config, 4 * kGiB).has_value());
}

TEST(MemoryPlanTest, MoreThanTheMachineHasIsRefused) {
  EngineConfig config;
  config.num_kv_blocks = 1 << 20;  // 32 GiB
  const auto blocks = Plan(config, 4 * kGiB);
  ASSERT_FALSE(blocks.has_value());
  EXPECT_EQ(blocks.error().field, "num-kv-blocks");
  EXPECT_THAT(blocks.error().message, HasSubstr("32.0 GiB"));

  config.num_kv_blocks = 0;
  config.kv_cache_memory_bytes = 8 * static_cast<int64_t>(kGiB);
  const auto bytes = Plan(config, 4 * kGiB);
  ASSERT_FALSE(bytes.has_value());
  EXPECT_EQ(bytes.error().field, "kv-cache-memory-bytes");

  config.kv_cache_memory_bytes = 1000;
  const auto too_few = Plan(config, 4 * kGiB);
  ASSERT_FALSE(too_few.has_value());
  EXPECT_THAT(too_few.error().message, HasSubstr("32.0 KiB"));

  const auto nothing_left = Plan(EngineConfig{}, kWeights);
  ASSERT_FALSE(nothing_left.has_value());
  EXPECT_EQ(nothing_left.error().code, ErrorCode::kResourceExhausted);
}

TEST(MemoryPlanTest, TheKvTypeIsTheTiersOrWhatIsAskedFor) {
  const auto plan = [](Isa isa, std::optional<kernels::KvDType> dtype) {
    EngineConfig config;
    config.kv_cache_dtype = dtype;
    return PlanMemory(config, Spec(), kernels::GetBlockOps(isa), kWeights, 2, 4 * kGiB);
  };
  EXPECT_EQ(plan(Isa::kReference, std::nullopt)->kv.dtype, kernels::KvDType::kF32);
  EXPECT_TRUE(plan(Isa::kReference, kernels::KvDType::kF32).has_value());
  const auto refused = plan(Isa::kReference, kernels::KvDType::kI8);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().field, "kv-cache-dtype");
  EXPECT_THAT(refused.error().message, HasSubstr("reference kernels have no int8"));
  // What is wrong with the head is not blamed on the type.
  model::ModelSpec odd = Spec();
  for (model::LayerSpec& layer : odd.layers) layer.attention.head_dim = 63;
  EngineConfig int8_config;
  int8_config.kv_cache_dtype = kernels::KvDType::kI8;
  const auto odd_head =
      PlanMemory(int8_config, odd, kernels::GetBlockOps(Isa::kReference), kWeights, 2, 4 * kGiB);
  ASSERT_FALSE(odd_head.has_value());
  EXPECT_EQ(odd_head.error().reason, "unsupported_head");
  if (!Supported(Isa::kAvx2)) return;
  const auto bf16 = plan(Isa::kAvx2, std::nullopt), int8 = plan(Isa::kAvx2, kernels::KvDType::kI8);
  ASSERT_TRUE(bf16.has_value() && int8.has_value());
  EXPECT_EQ(bf16->kv.dtype, kernels::KvDType::kBF16);
  EXPECT_EQ(int8->kv.dtype, kernels::KvDType::kI8);
  EXPECT_LT(int8->kv_block_bytes, bf16->kv_block_bytes * 6 / 10);
}

TEST(MemoryPlanTest, HugeContextsCostNothingByThemselves) {
  EngineConfig config;
  const auto plan = Plan(config, 4 * kGiB, INT32_MAX);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_LT(plan->kv_bytes, 4 * kGiB);
  EXPECT_LE(plan->limits.max_model_len, 1 << 20);
}

TEST(MemoryPlanTest, UnknownMemoryStillServesOneSequence) {
  const auto plan = Plan(EngineConfig{}, 0);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->limits.max_model_len, 4096);
  EXPECT_EQ(plan->limits.num_blocks, 4096 / 16);
}

TEST(MemoryPlanTest, LogitsStaySmallForAnyVocabulary) {
  EngineConfig config;
  config.max_num_seqs = 4096;
  config.max_num_batched_tokens = 4096;
  model::ModelSpec spec = Spec();
  spec.vocab = 1 << 20;
  const auto plan =
      PlanMemory(config, spec, kernels::GetBlockOps(Isa::kReference), kWeights, 2, 64 * kGiB);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->logit_rows, 8);
}

// Four layers with a window and two without: blocks of two layers, which all groups share.
TEST(MemoryPlanTest, WindowsNeedLessOfTheCache) {
  model::ModelSpec spec = Spec();
  spec.layers.resize(6, spec.layers[0]);
  for (const size_t layer : {0u, 1u, 3u, 4u}) spec.layers[layer].attention.window = 256;
  EngineConfig config;
  config.max_num_batched_tokens = 512;
  config.max_num_seqs = 1;
  const auto plan = [&] {
    return PlanMemory(config, spec, kernels::GetBlockOps(Isa::kReference), kWeights, 2, 4 * kGiB);
  };
  const MemoryPlan by_default = plan().value();
  ASSERT_EQ(by_default.groups.groups.size(), 3u);
  EXPECT_EQ(by_default.groups.layers_per_block, 2);
  EXPECT_EQ(by_default.limits.kv_windows.size(), 3);
  EXPECT_EQ(by_default.limits.kv_windows[0], 0);
  EXPECT_EQ(by_default.limits.kv_windows[2], 256);
  // 4096 tokens of the full group, and 255 + 512 of each window, which may touch 49 blocks.
  EXPECT_EQ(by_default.limits.num_blocks, 256 + 2 * 49);
  EXPECT_EQ(by_default.kv_bytes, (256 + 2 * 49) * kBlockBytes);
  EXPECT_EQ(by_default.limits.max_model_len, 4096);

  config.num_kv_blocks = 200;
  EXPECT_EQ(plan()->limits.max_model_len, (200 - 2 * 49) * 16);
  config.num_kv_blocks = 2;
  const auto refused = plan();
  ASSERT_FALSE(refused.has_value()) << "a block for each group is the least";
  EXPECT_EQ(refused.error().field, "max-model-len");
  // Sequences no longer than the window never leave it: one group, as without windows.
  config.num_kv_blocks = 0;
  config.max_model_len = 256;
  EXPECT_EQ(plan()->groups.groups.size(), 1u);
  EXPECT_EQ(plan()->limits.num_blocks, 16);
}

TEST(AvailableMemoryTest, ReadsThisMachine) { EXPECT_GT(AvailableMemory(), size_t{1} << 20); }

}  // namespace
}  // namespace vivace
