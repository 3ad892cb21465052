#include "kernels/block_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace vivace::kernels {
namespace {

constexpr int kHidden = 96, kFfn = 160, kVocab = 70, kThreads = 2;

std::vector<float> Random(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> values(count);
  for (auto& value : values) value = normal(random);
  return values;
}

struct Free {
  void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

Buffer Allocate(size_t bytes) {
  return Buffer(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64})));
}

// The linear block ops of one tier over F32 weights: tiers then differ by rounding alone.
class Model {
 public:
  explicit Model(Isa isa) : ops_(GetBlockOps(isa)) {
    Pack(kHidden, kHidden, 1, output_);
    Pack(kFfn, kHidden, 2, gate_up_);
    Pack(kFfn, kHidden, 3, gate_up_);
    Pack(kVocab, kHidden, 4, head_);
    const WorkspaceShape shape{.max_rows = 33,
                               .hidden = kHidden,
                               .max_cols = kFfn,
                               .qkv_rows = 96,
                               .ffn = kFfn,
                               .raw_ffn = 2 * kFfn,
                               .gate_rows = kFfn,
                               .max_context = 64,
                               .max_sequences = 4,
                               .threads = kThreads};
    workspace_bytes_ = ops_.workspace_bytes(shape);
    workspace_ = Allocate(workspace_bytes_);
  }

  std::vector<float> Embed(const std::vector<TokenId>& tokens) {
    std::vector<float> out(tokens.size() * kHidden);
    ops_.embed({.table = &head_.parts[0], .tokens = tokens, .scale = 0.5f, .out = out.data()},
               pool_);
    return out;
  }
  std::vector<float> ProjectResidual(const std::vector<float>& y, std::vector<float> x,
                                     const Norm& norm = {}, float scale = 1.0f) {
    ops_.project_residual({.y = y.data(),
                           .weight = &output_,
                           .norm = norm,
                           .scale = scale,
                           .num_rows = Rows(y),
                           .x = x.data()},
                          workspace(), pool_);
    return x;
  }
  // Of up alone if there is no gate; a LayerNorm with a bias in place of the RMSNorm if asked.
  std::vector<float> NormGateUp(const std::vector<float>& x, Activation activation,
                                bool gated = true, bool layer_norm = false) {
    std::vector<float> out(x.size() / kHidden * kFfn);
    MatrixGroup up;
    up.num_parts = 1;
    up.parts[0] = gate_up_.parts[1];
    ops_.norm_gate_up(
        {.x = x.data(),
         .norm = layer_norm ? layer_norm_ : Norm{.weight = norm_.data(), .eps = 1e-5f},
         .gate_up = gated ? &gate_up_ : &up,
         .activation = {activation, 1.7f, 2.0f},
         .num_rows = Rows(x),
         .out = out.data()},
        workspace(), pool_);
    return out;
  }
  // Of all ones: the gates themselves.
  std::vector<float> Gates(const std::vector<float>& x, bool layer_norm = false) {
    std::vector<float> y(x.size() / kHidden * kFfn, 1.0f);
    MatrixGroup gate;
    gate.num_parts = 1;
    gate.parts[0] = gate_up_.parts[0];
    ops_.gate({.x = x.data(),
               .norm = layer_norm ? layer_norm_ : Norm{.weight = norm_.data(), .eps = 1e-5f},
               .gate = &gate,
               .num_rows = Rows(x),
               .y = y.data()},
              workspace(), pool_);
    return y;
  }
  std::vector<float> LmHead(const std::vector<float>& x, const std::vector<int32_t>& rows,
                            float softcap = 0.0f) {
    constexpr int kStride = 80;
    std::vector<float> out(rows.size() * kStride, -1.0f);
    ops_.lm_head({.x = x.data(),
                  .rows = rows,
                  .norm = {.weight = norm_.data(), .eps = 1e-5f},
                  .head = &head_,
                  .softcap = softcap,
                  .logits = out.data(),
                  .logits_stride = kStride},
                 workspace(), pool_);
    return out;
  }
  std::vector<TokenId> LmHeadArgmax(const std::vector<float>& x, const std::vector<int32_t>& rows) {
    std::vector<TokenId> best(rows.size());
    ops_.lm_head_argmax({.x = x.data(),
                         .rows = rows,
                         .norm = {.weight = norm_.data(), .eps = 1e-5f},
                         .head = &head_,
                         .best = best.data()},
                        workspace(), pool_);
    return best;
  }

  const Norm& layer_norm() const { return layer_norm_; }

 private:
  void Pack(int rows, int cols, uint32_t seed, MatrixGroup& group) {
    const auto values = Random(static_cast<size_t>(rows * cols), seed);
    weights_.push_back(Allocate(ops_.packed_bytes(DType::kF32, rows, cols)));
    const WeightView view{DType::kF32, rows, cols,
                          reinterpret_cast<const std::byte*>(values.data())};
    ops_.pack(view, 0, (rows + kTileRows - 1) / kTileRows, weights_.back().get());
    group.parts[group.num_parts++] = {DType::kF32, rows, cols, weights_.back().get()};
  }
  static int32_t Rows(const std::vector<float>& x) {
    return static_cast<int32_t>(x.size()) / kHidden;
  }
  Workspace workspace() { return {workspace_.get(), workspace_bytes_}; }

  const BlockOps& ops_;
  std::vector<Buffer> weights_;
  MatrixGroup output_, gate_up_, head_;
  std::vector<float> norm_ = Random(kHidden, 9), norm_bias_ = Random(kHidden, 10);
  const Norm layer_norm_{NormKind::kLayer, norm_.data(), norm_bias_.data(), 1e-5f};
  size_t workspace_bytes_ = 0;
  Buffer workspace_;
  ThreadPool pool_{kThreads};
};

class BlockOpsTiers : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!Supported(GetParam())) GTEST_SKIP() << "this machine lacks " << Name(GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Tiers, BlockOpsTiers,
                         testing::Values(Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAvx512Bf16),
                         [](const auto& info) { return std::string(Name(info.param)); });

void ExpectClose(const std::vector<float>& got, const std::vector<float>& want, float tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << i;
  }
}

TEST_P(BlockOpsTiers, LinearBlocksAgreeWithTheReference) {
  Model tier(GetParam()), reference(Isa::kReference);
  EXPECT_EQ(tier.Embed({0, 69, 3}), reference.Embed({0, 69, 3})) << "a copy, scaled: exact";
  for (size_t rows : {1u, 2u, 13u, 33u}) {
    const auto x = Random(rows * kHidden, 20), y = Random(rows * kHidden, 21);
    ExpectClose(tier.ProjectResidual(y, x), reference.ProjectResidual(y, x), 1e-5f);
    for (Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
      ExpectClose(tier.NormGateUp(x, activation), reference.NormGateUp(x, activation), 2e-4f);
    }
    for (const bool layer_norm : {false, true}) {
      ExpectClose(tier.Gates(x, layer_norm), reference.Gates(x, layer_norm), 1e-4f);
    }
    const std::vector<int32_t> chosen{static_cast<int32_t>(rows) - 1, 0};
    ExpectClose(tier.LmHead(x, chosen), reference.LmHead(x, chosen), 1e-5f);
    EXPECT_TRUE(tier.LmHead(x, {}).empty());
  }
}

TEST_P(BlockOpsTiers, EveryKindOfMlpAndResidualAgreesWithTheReference) {
  Model tier(GetParam()), reference(Isa::kReference);
  for (size_t rows : {1u, 33u}) {
    const auto x = Random(rows * kHidden, 20), y = Random(rows * kHidden, 21);
    for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh, Activation::kGelu,
                                        Activation::kRelu2, Activation::kSwigluClamped}) {
      for (const bool layer_norm : {false, true}) {
        for (const bool gated : {false, true}) {
          // Gate and up reach some 40 here: what is rounded there is multiplied by the other.
          if (!gated && activation == Activation::kSwigluClamped) continue;
          ExpectClose(tier.NormGateUp(x, activation, gated, layer_norm),
                      reference.NormGateUp(x, activation, gated, layer_norm), 1e-3f);
        }
      }
    }
    for (const float scale : {1.0f, 0.5f}) {
      ExpectClose(tier.ProjectResidual(y, x, tier.layer_norm(), scale),
                  reference.ProjectResidual(y, x, reference.layer_norm(), scale), 1e-5f);
      ExpectClose(tier.ProjectResidual(y, x, {}, scale), reference.ProjectResidual(y, x, {}, scale),
                  1e-5f);
    }
    ExpectClose(tier.LmHead(x, {0}, 30.0f), reference.LmHead(x, {0}, 30.0f), 1e-5f);
  }
}

// Against what they are made of.
TEST(BlockOps, ResidualScalesAndSoftcaps) {
  Model model(Isa::kReference);
  const auto y = Random(2 * kHidden, 21);
  const std::vector<float> zeros(y.size());
  const auto plain = model.ProjectResidual(y, zeros);
  const auto scaled = model.ProjectResidual(y, zeros, {}, 0.25f);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_FLOAT_EQ(scaled[i], 0.25f * plain[i]);
  const auto logits = model.LmHead(y, {1}), capped = model.LmHead(y, {1}, 2.0f);
  for (size_t i = 0; i < kVocab; ++i) {
    EXPECT_NEAR(capped[i], 2 * std::tanh(logits[i] / 2), 1e-6);
  }
  EXPECT_EQ(capped.back(), -1.0f) << "what stands behind a row stays";
}

TEST(BlockOps, GatesAreSigmoidsOfTheirProducts) {
  Model model(Isa::kReference);
  const auto x = Random(3 * kHidden, 20), weight = Random(kFfn * kHidden, 2);
  const auto norm = Random(kHidden, 9), gates = model.Gates(x);
  for (size_t row = 0; row < 3; ++row) {
    double squares = 0;
    for (size_t k = 0; k < kHidden; ++k) squares += std::pow(double{x[row * kHidden + k]}, 2);
    const double scale = 1 / std::sqrt(squares / kHidden + 1e-5);
    for (size_t i = 0; i < kFfn; ++i) {
      double product = 0;
      for (size_t k = 0; k < kHidden; ++k) {
        product += double{weight[i * kHidden + k]} * double{x[row * kHidden + k]} * double{norm[k]};
      }
      ASSERT_NEAR(gates[row * kFfn + i], 1 / (1 + std::exp(-product * scale)), 1e-5) << i;
    }
  }
}

TEST_P(BlockOpsTiers, LmHeadArgmaxIsTheBestOfLmHead) {
  Model tier(GetParam());
  const auto x = Random(33 * kHidden, 20);
  const std::vector<int32_t> rows{32, 0, 7, 7, 19};
  const auto logits = tier.LmHead(x, rows);
  const auto best = tier.LmHeadArgmax(x, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto* row = logits.data() + i * logits.size() / rows.size();
    EXPECT_EQ(best[i], std::max_element(row, row + kVocab) - row);
  }
  EXPECT_TRUE(tier.LmHeadArgmax(x, {}).empty());
}

TEST(BlockOps, EveryTierOfTheMachineIsComplete) {
  for (Isa isa : kIsas) {
    if (!Supported(isa)) continue;
    const BlockOps& ops = GetBlockOps(isa);
    EXPECT_EQ(ops.isa, isa);
    EXPECT_TRUE(ops.can_pack && ops.packed_bytes && ops.pack && ops.kv_block_bytes &&
                ops.workspace_bytes && ops.embed && ops.norm_qkv && ops.latent_qkv &&
                ops.attention && ops.latent_values && ops.project_residual && ops.norm_gate_up &&
                ops.moe && ops.add_rows && ops.lm_head && ops.lm_head_argmax);
    EXPECT_EQ(ops.pack_version == GetBlockOps(Isa::kReference).pack_version,
              isa == Isa::kReference);
    EXPECT_EQ(ops.default_kv_dtype == KvDType::kF32, isa == Isa::kReference);
  }
}

}  // namespace
}  // namespace vivace::kernels
