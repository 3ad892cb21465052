#include "bench/roofline.h"

#include <gtest/gtest.h>

#include <array>

namespace vivace::bench {
namespace {

// Two layers of hidden 8: 4 heads and 2 kv heads of 2 dims, ffn 16; vocabulary 100. Matrices cost
// half a byte a weight and are of integers; the head one byte a weight, of floats.
model::ModelSpec Tiny() {
  model::ModelSpec spec;
  spec.vocab = 100;
  spec.hidden = 8;
  spec.lm_head.weight = {"head", 100, 8};
  model::LayerSpec layer;
  layer.attention.heads = 4;
  layer.attention.kv_heads = 2;
  layer.attention.head_dim = 2;
  layer.attention.q.weight = {"q", 8, 8};
  layer.attention.k.weight = {"k", 4, 8};
  layer.attention.v.weight = {"v", 4, 8};
  layer.attention.o.weight = {"o", 8, 8};
  layer.mlp.dense.gate.weight = {"gate", 16, 8};
  layer.mlp.dense.up.weight = {"up", 16, 8};
  layer.mlp.dense.down.weight = {"down", 8, 16};
  spec.layers = {layer, layer};
  return spec;
}

ModelCost TinyCost() {
  // A block of 16 positions: 2 (K and V) x 2 kv heads x 2 dims x 16 x 2 bytes = 256.
  return CostOf(Tiny(), 256, 16, [](const model::WeightSpec& weight) {
    const auto weights = static_cast<size_t>(weight.rows) * static_cast<size_t>(weight.cols);
    return weight.name == "head" ? MatrixCost{weights, false} : MatrixCost{weights / 2, true};
  });
}

// Per layer: 64 + 32 + 32 + 64 + 3 x 128 = 576 weights.
constexpr double kHead = 800;
// All but the last layer's keys and values.
constexpr double kTail = 576 - 64, kBody = 576 + 64;

TEST(Roofline, AModelsPartsAddUp) {
  const ModelCost cost = TinyCost();
  EXPECT_EQ(cost.body.bytes, kBody / 2);
  EXPECT_EQ(cost.body.integer_macs, kBody);
  EXPECT_EQ(cost.body.float_macs, 0);
  EXPECT_EQ(cost.tail.bytes, kTail / 2);
  EXPECT_EQ(cost.tail.integer_macs, kTail);
  EXPECT_EQ(cost.head.bytes, kHead);
  EXPECT_EQ(cost.head.float_macs, kHead);
  ASSERT_EQ(cost.attention.size(), 2u);
  EXPECT_EQ(cost.attention[0].macs_per_position, 2 * 4 * 2);
  EXPECT_EQ(cost.attention[0].bytes_per_position, 16);
}

TEST(Roofline, DecodingReadsWeightsOnceAndEveryCache) {
  // Positions 9 and 99: they see 10 and 100.
  const std::array parts = {StepPart{9, 1, 1}, StepPart{99, 1, 1}};
  const StepCost cost = CostOf(TinyCost(), parts);
  EXPECT_EQ(cost.bytes, (kBody + kTail) / 2 + kHead + 2 * 16 * (10 + 100));
  EXPECT_EQ(cost.integer_macs, 2 * (kBody + kTail));
  EXPECT_EQ(cost.float_macs, 2 * kHead);
  EXPECT_EQ(cost.attention_macs, 2 * 16 * (10 + 100));
}

TEST(Roofline, APromptIsATriangleAndItsHeadOneRow) {
  const std::array whole = {StepPart{0, 4, 1}};
  const StepCost cost = CostOf(TinyCost(), whole);
  EXPECT_EQ(cost.integer_macs, 4 * kBody + kTail);
  EXPECT_EQ(cost.float_macs, kHead);
  EXPECT_EQ(cost.attention_macs, 16 * (1 + 2 + 3 + 4) + 16 * 4) << "a triangle, and its last row";
  EXPECT_EQ(cost.bytes, (kBody + kTail) / 2 + kHead + 2 * 16 * 4);

  const std::array first_chunk = {StepPart{0, 3, 0}};
  const StepCost chunk = CostOf(TinyCost(), first_chunk);
  EXPECT_EQ(chunk.float_macs, 0);
  EXPECT_EQ(chunk.integer_macs, 3 * kBody);
  EXPECT_EQ(chunk.bytes, kBody / 2 + 16 * 3) << "no logits: no head, nothing reads the last cache";
  EXPECT_EQ(chunk.attention_macs, 16 * (1 + 2 + 3));

  const std::array second_chunk = {StepPart{3, 1, 1}};
  EXPECT_EQ(CostOf(TinyCost(), second_chunk).attention_macs + chunk.attention_macs,
            cost.attention_macs);
}

TEST(Roofline, AWindowBoundsWhatIsSeen) {
  ModelCost cost = TinyCost();
  for (auto& layer : cost.attention) layer.window = 3;
  // Positions 0..4 see 1, 2, 3, 3, 3.
  const std::array prompt = {StepPart{0, 5, 1}};
  EXPECT_EQ(CostOf(cost, prompt).attention_macs, 16 * 12 + 16 * 3);
  // Position 50 sees 48..50.
  const std::array decode = {StepPart{50, 1, 1}};
  EXPECT_EQ(CostOf(cost, decode).attention_macs, 2 * 16 * 3);
  EXPECT_EQ(CostOf(cost, decode).bytes, (kBody + kTail) / 2 + kHead + 2 * 16 * 3);
}

TEST(Roofline, TheLongerSideBinds) {
  const StepCost cost = {.bytes = 100, .integer_macs = 40, .float_macs = 10, .attention_macs = 6};
  const StepRates rates = {.bytes = 50, .integer_macs = 40, .float_macs = 20, .attention_macs = 3};
  // Reading takes 2 s; computing 1 + 0.5 + 2.
  EXPECT_DOUBLE_EQ(LimitOf(cost, rates).seconds, 3.5);
  EXPECT_EQ(LimitOf(cost, rates).side, Side::kCompute);
  const StepRates slow_memory = {
      .bytes = 10, .integer_macs = 40, .float_macs = 20, .attention_macs = 3};
  EXPECT_DOUBLE_EQ(LimitOf(cost, slow_memory).seconds, 10);
  EXPECT_EQ(LimitOf(cost, slow_memory).side, Side::kBandwidth);
}

TEST(Roofline, WorkThatIsNotThereTakesNoTime) {
  const StepCost cost = {.bytes = 100, .integer_macs = 40};
  const StepRates rates = {.bytes = 100, .integer_macs = 40, .float_macs = 0, .attention_macs = 0};
  EXPECT_DOUBLE_EQ(LimitOf(cost, rates).seconds, 1);
}

MachineLimits SomeMachine() {
  MachineLimits limits;
  limits.threads = 2;
  limits.reads = {{1 << 20, 2, 400, 0}, {4 << 20, 2, 200, 0}};
  limits.macs = {{MacKind::kFp32Ymm, 2, 10},   {MacKind::kMaddubsYmm, 2, 20},
                 {MacKind::kDpbusdVex, 2, 40}, {MacKind::kFp32Zmm, 2, 15},
                 {MacKind::kDpbusdZmm, 2, 80}, {MacKind::kDpbf16Zmm, 2, 30},
                 {MacKind::kFp32Xmm, 2, 3},    {MacKind::kDpbusdZmm, 1, 45}};
  return limits;
}

TEST(Roofline, ATierIsHeldToItsOwnInstructions) {
  const MachineLimits limits = SomeMachine();
  const auto bf16 = kernels::KvDType::kBF16;
  EXPECT_EQ(RatesFor(limits, Isa::kAvx512, bf16, 2, 1 << 20).integer_macs, 80);
  EXPECT_EQ(RatesFor(limits, Isa::kAvx512, bf16, 2, 1 << 20).float_macs, 15);
  EXPECT_EQ(RatesFor(limits, Isa::kAvx512, bf16, 1, 1 << 20).integer_macs, 45);
  EXPECT_EQ(RatesFor(limits, Isa::kAvx512Bf16, bf16, 2, 1 << 20).float_macs, 30);
  EXPECT_EQ(RatesFor(limits, Isa::kAvxVnni, bf16, 2, 1 << 20).integer_macs, 40);
  EXPECT_EQ(RatesFor(limits, Isa::kAvx2, bf16, 2, 1 << 20).integer_macs, 20);
  EXPECT_EQ(RatesFor(limits, Isa::kAvx2, bf16, 2, 1 << 20).attention_macs, 10);
  EXPECT_EQ(RatesFor(limits, Isa::kAvx2, kernels::KvDType::kI8, 2, 1 << 20).attention_macs, 20);
  EXPECT_EQ(RatesFor(limits, Isa::kReference, bf16, 2, 1 << 20).integer_macs, 3);
}

TEST(MachineLimits, BandwidthBetweenTwoSizesLiesBetweenTheirs) {
  const MachineLimits limits = SomeMachine();
  EXPECT_EQ(limits.ReadRate(1 << 10, 2), 400);
  EXPECT_EQ(limits.ReadRate(1 << 20, 2), 400);
  EXPECT_DOUBLE_EQ(limits.ReadRate(2 << 20, 2), 300);
  EXPECT_EQ(limits.ReadRate(4 << 20, 2), 200);
  EXPECT_EQ(limits.ReadRate(1 << 30, 2), 200);
  EXPECT_EQ(limits.ReadRate(1 << 20, 1), 0) << "not measured";
}

}  // namespace
}  // namespace vivace::bench
