// The mixture-of-experts block on every tier: the reference against plain loops, the others against
// the reference, and bit for bit against themselves under any batch and thread count.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/block_ops.h"
#include "kernels/linear_fixture.h"

namespace vivace::kernels {
namespace {

using fixture::Bytes;
using fixture::MakeRows;
using fixture::MakeWeights;
using fixture::Matrix;

constexpr int kHidden = 96, kMaxRows = 70;

struct Shape {
  int experts = 12, top_k = 3, ffn = 64, shared_ffn = 0;
  bool shared_gate = false;
  bool gated = true;
  bool biases = false;
  DType dtype = DType::kF32;
  ActivationSpec activation = {};
};

// An MoE layer of random weights for one tier.
class Layer {
 public:
  Layer(Isa isa, const Shape& shape, int threads)
      : shape_(shape), linear_(GetLinearOps(isa)), ops_(GetBlockOps(isa)), pool_(threads) {
    router_.weight = Group({Make(DType::kF32, shape.experts, kHidden)});
    router_.top_k = shape.top_k;
    router_.normalize = true;
    for (int e = 0; e < shape.experts; ++e) experts_.push_back(Expert(shape.ffn));
    if (shape.shared_ffn > 0) shared_ = Expert(shape.shared_ffn);
    if (shape.shared_gate) gate_ = Group({Make(DType::kF32, 1, kHidden)});
    norm_ = MakeRows(1, kHidden, 5);
    const int ffn = std::max(shape.ffn, shape.shared_ffn);
    workspace_ = std::make_unique<Bytes>(
        ops_.workspace_bytes({.max_rows = kMaxRows,
                              .hidden = kHidden,
                              .max_cols = ffn,
                              .qkv_rows = 16,
                              .ffn = ffn,
                              .raw_ffn = Fused(shape.activation.kind) ? 0 : 2 * ffn,
                              .experts = shape.experts,
                              .top_k = shape.top_k,
                              .max_context = 16,
                              .max_sequences = 1,
                              .threads = threads}));
  }

  std::vector<float> Run(const std::vector<float>& x) {
    std::vector<float> out(x.size(), NAN);
    ops_.moe({.x = x.data(),
              .norm = {.weight = norm_.data(), .eps = 1e-5f},
              .router = &router_,
              .experts = experts_,
              .shared = shape_.shared_ffn > 0 ? &shared_ : nullptr,
              .shared_gate = shape_.shared_gate ? &gate_ : nullptr,
              .activation = shape_.activation,
              .num_rows = static_cast<int32_t>(x.size()) / kHidden,
              .out = out.data()},
             {workspace_->data(), workspace_->size()}, pool_);
    return out;
  }

  // By the definition, from the F32 weights.
  std::vector<double> Want(const float* x) const {
    std::vector<double> n(kHidden);
    double squares = 0;
    for (int k = 0; k < kHidden; ++k) squares += static_cast<double>(x[k]) * x[k] / kHidden;
    for (size_t k = 0; k < kHidden; ++k) n[k] = x[k] / std::sqrt(squares + 1e-5) * norm_[k];
    const auto logits = Product(router_.weight, 0, n);
    std::vector<size_t> order(logits.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return logits[a] > logits[b]; });
    order.resize(static_cast<size_t>(shape_.top_k));
    double sum = 0;
    for (const size_t e : order) sum += std::exp(logits[e]);
    std::vector<double> out(kHidden);
    const auto add = [&](const FeedForward& expert, double weight) {
      const auto y = FeedForwardOf(expert, n);
      for (size_t k = 0; k < out.size(); ++k) out[k] += weight * y[k];
    };
    for (const size_t e : order) add(experts_[e], std::exp(logits[e]) / sum);
    const double gate = shape_.shared_gate ? 1 / (1 + std::exp(-Product(gate_, 0, n)[0])) : 1;
    if (shape_.shared_ffn > 0) add(shared_, gate);
    return out;
  }

 private:
  struct Weight {
    std::unique_ptr<Matrix> packed;
    std::vector<std::byte> data;
  };

  const Matrix& Make(DType dtype, int rows, int cols) {
    auto data = MakeWeights(dtype, rows, cols, ++seed_);
    if (dtype == DType::kF32) {
      auto* values = reinterpret_cast<float*>(data.data());
      for (int i = 0; i < rows * cols; ++i) values[i] /= std::sqrt(static_cast<float>(cols));
    }
    weights_.push_back({std::make_unique<Matrix>(linear_, dtype, rows, cols, data), data});
    return *weights_.back().packed;
  }
  MatrixGroup Group(std::initializer_list<std::reference_wrapper<const Matrix>> parts) {
    MatrixGroup group;
    int outputs = 0;
    for (const Matrix& part : parts) {
      group.parts[group.num_parts++] = part.get();
      outputs += part.get().rows;
    }
    if (shape_.biases) {
      biases_.push_back(std::make_unique<std::vector<float>>(MakeRows(1, outputs, ++seed_)));
      group.bias = biases_.back()->data();
    }
    return group;
  }
  FeedForward Expert(int ffn) {
    FeedForward expert;
    if (shape_.gated) {
      const Matrix& gate = Make(shape_.dtype, ffn, kHidden);
      expert.gate_up = Group({gate, Make(shape_.dtype, ffn, kHidden)});
    } else {
      expert.gate_up = Group({Make(shape_.dtype, ffn, kHidden)});
    }
    expert.down = Group({Make(shape_.dtype, kHidden, ffn)});
    return expert;
  }

  std::vector<double> Product(const MatrixGroup& group, int part,
                              const std::vector<double>& x) const {
    const PackedMatrix& matrix = group.parts[part];
    const auto found = std::find_if(weights_.begin(), weights_.end(), [&](const Weight& w) {
      return w.packed->get().data == matrix.data;
    });
    const auto* values = reinterpret_cast<const float*>(found->data.data());
    const float* bias = group.bias ? group.bias + (part > 0 ? group.parts[0].rows : 0) : nullptr;
    std::vector<double> y;
    for (int n = 0; n < matrix.rows; ++n) {
      double sum = bias ? static_cast<double>(bias[n]) : 0;
      for (size_t k = 0; k < x.size(); ++k) sum += static_cast<double>(*values++) * x[k];
      y.push_back(sum);
    }
    return y;
  }
  std::vector<double> FeedForwardOf(const FeedForward& expert, const std::vector<double>& n) const {
    auto h = Product(expert.gate_up, 0, n);
    const auto up = shape_.gated ? Product(expert.gate_up, 1, n) : std::vector<double>(h.size(), 1);
    for (size_t k = 0; k < h.size(); ++k) {
      const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
      switch (shape_.activation.kind) {
        case Activation::kSwigluClamped: {
          const double limit = shape_.activation.limit, g = std::min(h[k], limit);
          h[k] = (std::clamp(up[k], -limit, limit) + 1) * g *
                 sigmoid(static_cast<double>(shape_.activation.alpha) * g);
          break;
        }
        case Activation::kRelu2:
          h[k] = h[k] > 0 ? h[k] * h[k] * up[k] : 0;
          break;
        default:
          h[k] = h[k] * sigmoid(h[k]) * up[k];
      }
    }
    return Product(expert.down, 0, h);
  }

  const Shape shape_;
  const LinearOps& linear_;
  const BlockOps& ops_;
  ThreadPool pool_;
  uint32_t seed_ = 100;
  std::vector<Weight> weights_;
  std::vector<std::unique_ptr<std::vector<float>>> biases_;
  Router router_;
  std::vector<FeedForward> experts_;
  FeedForward shared_;
  MatrixGroup gate_;
  std::vector<float> norm_;
  std::unique_ptr<Bytes> workspace_;
};

// Every kind of expert; more experts than one call takes.
std::vector<Shape> Shapes() {
  return {{},
          {.experts = 70, .top_k = 8, .shared_ffn = 160, .shared_gate = true},
          {.experts = 4, .top_k = 4, .shared_ffn = 32, .biases = true},
          {.experts = 8,
           .top_k = 2,
           .biases = true,
           .activation = {Activation::kSwigluClamped, 1.702f, 1.0f}},
          {.experts = 8, .top_k = 2, .gated = false, .activation = {Activation::kRelu2}}};
}

class MoeTiers : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!Supported(GetParam())) GTEST_SKIP() << "this machine lacks " << Name(GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Tiers, MoeTiers, testing::ValuesIn(kIsas),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST_P(MoeTiers, IsItsDefinition) {
  for (const Shape& shape : Shapes()) {
    Layer layer(GetParam(), shape, 2);
    for (const int rows : {1, 2, kMaxRows}) {
      const auto x = MakeRows(rows, kHidden, 3);
      const auto got = layer.Run(x);
      for (int row = 0; row < rows; ++row) {
        const auto want = layer.Want(x.data() + row * kHidden);
        for (size_t k = 0; k < kHidden; ++k) {
          // Sums of up to 160 products in fp32, twice.
          ASSERT_NEAR(got[static_cast<size_t>(row) * kHidden + k], want[k],
                      2e-5 * (1 + std::abs(want[k])))
              << "experts " << shape.experts << " rows " << rows << " row " << row;
        }
      }
    }
  }
}

// Design rule 1, and a NaN stays in its row.
TEST_P(MoeTiers, ARowDoesNotDependOnTheOthers) {
  for (Shape shape : Shapes()) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kQ4_0}) {
      shape.dtype = dtype;
      auto x = MakeRows(kMaxRows, kHidden, 4);
      Layer layer(GetParam(), shape, 1), threads(GetParam(), shape, 4);
      const auto all = threads.Run(x);
      x[kHidden * 7] = NAN;
      const auto poisoned = threads.Run(x);
      for (int row = 0; row < kMaxRows; ++row) {
        const auto from = x.begin() + row * kHidden;
        const auto alone = layer.Run({from, from + kHidden});
        const auto* want = all.data() + row * kHidden;
        const auto* beside = poisoned.data() + row * kHidden;
        for (size_t k = 0; k < kHidden; ++k) {
          if (row == 7) {
            ASSERT_TRUE(std::isnan(alone[k]) && std::isnan(beside[k]));
          } else {
            ASSERT_EQ(alone[k], want[k]) << "row " << row;
            ASSERT_EQ(beside[k], want[k]) << "row " << row;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace vivace::kernels
