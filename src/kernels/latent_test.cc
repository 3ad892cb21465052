// Latent attention on every tier: the reference against attention over keys and values that are
// expanded, as the model's definition has it; the others against the reference; and bit for bit
// against themselves under any batch, chunking and thread count.
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
using fixture::Matrix;

struct Shape {
  int heads = 5, rank = 24, nope = 10, rope = 6, value = 12, hidden = 64;
  int q_rank = 20;  // 0: no q_a

  int head_in() const { return nope + rope; }
  int head() const { return rank + rope; }
};

// A matrix, its packed form and its values.
struct Weight {
  Weight(const LinearOps& linear, int rows, int cols, uint32_t seed)
      : cols(cols), values(MakeRows(rows, cols, seed)) {
    for (float& value : values) value /= std::sqrt(static_cast<float>(cols));
    std::vector<std::byte> data(values.size() * sizeof(float));
    std::memcpy(data.data(), values.data(), data.size());
    packed = std::make_unique<Matrix>(linear, DType::kF32, rows, cols, data);
  }
  std::vector<double> Times(const double* x) const {
    std::vector<double> y(values.size() / static_cast<size_t>(cols));
    for (size_t n = 0; n < y.size(); ++n) {
      for (size_t k = 0; k < static_cast<size_t>(cols); ++k) {
        y[n] += static_cast<double>(values[n * static_cast<size_t>(cols) + k]) * x[k];
      }
    }
    return y;
  }

  int cols;
  std::vector<float> values;
  std::unique_ptr<Matrix> packed;
};

struct Part {
  int sequence, rows;
};

class Layer {
 public:
  Layer(Isa isa, const Shape& shape, KvDType dtype, int threads)
      : s_(shape),
        linear_(GetLinearOps(isa)),
        ops_(GetBlockOps(isa)),
        pool_(threads),
        q_a_(linear_, std::max(shape.q_rank, 1), shape.hidden, 1),
        q_b_(linear_, shape.heads * shape.head_in(), shape.q_rank ? shape.q_rank : shape.hidden, 2),
        kv_a_(linear_, shape.head(), shape.hidden, 3),
        norm_(MakeRows(1, shape.hidden, 4)),
        q_norm_(MakeRows(1, std::max(shape.q_rank, 1), 5)),
        kv_norm_(MakeRows(1, shape.rank, 6)) {
    geometry_ = {dtype, 16, 1, shape.head(), shape.rank};
    input_ = Group(shape.q_rank ? q_a_ : q_b_);
    input_.parts[input_.num_parts++] = kv_a_.packed->get();
    q_b_group_ = Group(q_b_);
    for (int h = 0; h < shape.heads; ++h) {
      const auto seed = static_cast<uint32_t>(h);
      k_b_.emplace_back(linear_, shape.rank, shape.nope, 100 + seed);
      v_b_.emplace_back(linear_, shape.value, shape.rank, 200 + seed);
      k_b_groups_.push_back(Group(k_b_.back()));
      v_b_groups_.push_back(Group(v_b_.back()));
    }
  }

  // The values of each sequence's rows, [rows, heads * value].
  std::vector<std::vector<float>> Run(const std::vector<std::vector<Part>>& steps) {
    std::vector<int> done(8);
    std::vector<std::vector<float>> out(8);
    Bytes cache(kBlocks * 8 * ops_.kv_block_bytes(geometry_));
    std::memset(cache.data(), 0xff, cache.size());
    for (const auto& step : steps) RunStep(step, cache, &done, &out);
    return out;
  }

  // Of a sequence's rows, by the definition: keys and values of each head made from the latents.
  std::vector<double> Want(int sequence, int rows) const {
    std::vector<std::vector<double>> keys, latents;
    std::vector<double> out;
    for (int position = 0; position < rows; ++position) {
      const auto n = Normed(Input(sequence, position), norm_);
      const auto q = s_.q_rank ? q_b_.Times(Normed(q_a_.Times(n.data()), q_norm_).data())
                               : q_b_.Times(n.data());
      const auto kv = kv_a_.Times(n.data());
      latents.push_back(Normed({kv.begin(), kv.begin() + s_.rank}, kv_norm_));
      keys.push_back(Rotated({kv.begin() + s_.rank, kv.end()}, position));
      for (int h = 0; h < s_.heads; ++h) Attend(h, position, q, keys, latents, &out);
    }
    return out;
  }

 private:
  static constexpr int kBlocks = 12;  // of a sequence

  static MatrixGroup Group(const Weight& weight) {
    MatrixGroup group;
    group.num_parts = 1;
    group.parts[0] = weight.packed->get();
    return group;
  }
  std::vector<double> Input(int sequence, int position) const {
    const auto x = MakeRows(1, s_.hidden, static_cast<uint32_t>(1000 * sequence + position));
    return {x.begin(), x.end()};
  }
  static std::vector<double> Normed(std::vector<double> x, const std::vector<float>& weight) {
    double squares = 0;
    for (const double v : x) squares += v * v / static_cast<double>(x.size());
    for (size_t k = 0; k < x.size(); ++k) {
      x[k] *= static_cast<double>(weight[k]) / std::sqrt(squares + static_cast<double>(1e-5f));
    }
    return x;
  }
  double Angle(int position, size_t pair) const {
    return position * std::pow(100.0, -2.0 * static_cast<double>(pair) / s_.rope);
  }
  std::vector<double> Rotated(std::vector<double> x, int position) const {
    for (size_t i = 0; 2 * i < x.size(); ++i) {
      const double c = std::cos(Angle(position, i)), s = std::sin(Angle(position, i));
      const double a = x[2 * i], b = x[2 * i + 1];
      x[2 * i] = a * c - b * s;
      x[2 * i + 1] = a * s + b * c;
    }
    return x;
  }
  void Attend(int head, int position, const std::vector<double>& q,
              const std::vector<std::vector<double>>& keys,
              const std::vector<std::vector<double>>& latents, std::vector<double>* out) const {
    const auto at = static_cast<size_t>(head);
    const auto from = q.begin() + head * s_.head_in();
    const auto q_rope = Rotated({from + s_.nope, from + s_.head_in()}, position);
    std::vector<double> scores, values(static_cast<size_t>(s_.value));
    double sum = 0;
    for (size_t t = 0; t < keys.size(); ++t) {
      double score = 0;
      for (size_t d = 0; d < q_rope.size(); ++d) score += q_rope[d] * keys[t][d];
      for (int d = 0; d < s_.nope; ++d) {
        double key = 0;  // k_b is stored as [rank, nope]
        for (int r = 0; r < s_.rank; ++r) {
          key += static_cast<double>(k_b_[at].values[static_cast<size_t>(r * s_.nope + d)]) *
                 latents[t][static_cast<size_t>(r)];
        }
        score += from[d] * key;
      }
      scores.push_back(std::exp(score * kScale));
      sum += scores.back();
    }
    for (size_t t = 0; t < keys.size(); ++t) {
      const auto v = v_b_[at].Times(latents[t].data());
      for (size_t d = 0; d < values.size(); ++d) values[d] += scores[t] / sum * v[d];
    }
    out->insert(out->end(), values.begin(), values.end());
  }

  void RunStep(const std::vector<Part>& step, const Bytes& cache, std::vector<int>* done,
               std::vector<std::vector<float>>* out) {
    std::vector<std::vector<BlockId>> tables(step.size());
    std::vector<SequenceRows> sequences;
    std::vector<float> x, cos, sin;
    int rows = 0;
    for (size_t i = 0; i < step.size(); ++i) {
      const Part& part = step[i];
      int& first = (*done)[static_cast<size_t>(part.sequence)];
      for (int b = 0; b < kBlocks; ++b) tables[i].emplace_back(b * 8 + part.sequence);
      sequences.push_back({rows, part.rows, first, tables[i].data()});
      for (int r = 0; r < part.rows; ++r, ++first) {
        for (const double v : Input(part.sequence, first)) x.push_back(static_cast<float>(v));
        for (size_t p = 0; 2 * p < static_cast<size_t>(s_.rope); ++p) {
          cos.push_back(static_cast<float>(std::cos(Angle(first, p))));
          sin.push_back(static_cast<float>(std::sin(Angle(first, p))));
        }
      }
      rows += part.rows;
    }
    const StepRows step_rows{rows, sequences};
    const KvCacheView kv{geometry_, cache.data(), kBlocks * 8};
    const int first_outputs =
        s_.q_rank ? s_.q_rank + s_.heads * s_.head_in() : s_.heads * s_.head_in();
    const Bytes scratch(ops_.workspace_bytes({.max_rows = rows,
                                              .hidden = s_.hidden,
                                              .max_cols = std::max(s_.q_rank, s_.hidden),
                                              .qkv_rows = 0,
                                              .ffn = 16,
                                              .latent_outputs = first_outputs + s_.head(),
                                              .latent_cols = std::max(s_.rank, s_.nope),
                                              .max_context = kBlocks * 16,
                                              .max_sequences = 8,
                                              .threads = pool_.size()}));
    const Workspace workspace{scratch.data(), scratch.size()};
    const auto count = static_cast<size_t>(rows * s_.heads);
    std::vector<float> q(count * static_cast<size_t>(s_.head()), NAN),
        y(count * static_cast<size_t>(s_.rank), NAN), v(count * static_cast<size_t>(s_.value), NAN);
    ops_.latent_qkv({.x = x.data(),
                     .norm = {.weight = norm_.data(), .eps = 1e-5f},
                     .input = &input_,
                     .q_norm = {.weight = q_norm_.data(), .eps = 1e-5f},
                     .q_b = s_.q_rank ? &q_b_group_ : nullptr,
                     .kv_norm = {.weight = kv_norm_.data(), .eps = 1e-5f},
                     .k_b = k_b_groups_,
                     .rope = {cos.data(), sin.data(), s_.rope, true},
                     .step = step_rows,
                     .kv = kv,
                     .q = q.data()},
                    workspace, pool_);
    ops_.attention({.q = q.data(),
                    .heads = s_.heads,
                    .scale = static_cast<float>(kScale),
                    .step = step_rows,
                    .kv = kv,
                    .out = y.data()},
                   workspace, pool_);
    ops_.latent_values({.y = y.data(), .v_b = v_b_groups_, .num_rows = rows, .out = v.data()},
                       workspace, pool_);
    for (size_t i = 0; i < step.size(); ++i) {
      auto& to = (*out)[static_cast<size_t>(step[i].sequence)];
      const auto from = v.begin() + sequences[i].first_row * s_.heads * s_.value;
      to.insert(to.end(), from, from + step[i].rows * s_.heads * s_.value);
    }
  }

  static constexpr double kScale = 0.25;

  const Shape s_;
  const LinearOps& linear_;
  const BlockOps& ops_;
  ThreadPool pool_;
  Weight q_a_, q_b_, kv_a_;
  std::vector<Weight> k_b_, v_b_;
  std::vector<float> norm_, q_norm_, kv_norm_;
  KvGeometry geometry_;
  MatrixGroup input_, q_b_group_;
  std::vector<MatrixGroup> k_b_groups_, v_b_groups_;
};

std::vector<KvDType> KvDTypes(Isa isa) {
  if (isa == Isa::kReference) return {KvDType::kF32};
  return {KvDType::kF32, KvDType::kBF16, KvDType::kI8};
}

// Of an output, relative to the largest; attention_test.cc derives them.
double Tolerance(KvDType dtype, bool bf16_dots) {
  if (dtype == KvDType::kF32) return 1e-4;
  if (dtype == KvDType::kBF16) return (bf16_dots ? 2 : 1) * (1 + 2 * 8) * 0x1p-9;
  return 1 / 254.0 + 2 * 4 * 0.009;
}

class LatentTiers : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!Supported(GetParam())) GTEST_SKIP() << "this machine lacks " << Name(GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Tiers, LatentTiers, testing::ValuesIn(kIsas),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST_P(LatentTiers, IsAttentionOverExpandedKeysAndValues) {
  const Shape shapes[] = {{},
                          {.q_rank = 0},
                          {.heads = 2, .rank = 16, .nope = 16, .rope = 8, .value = 16},
                          {.heads = 17, .rank = 512, .nope = 32, .rope = 64, .value = 8}};
  for (const Shape& shape : shapes) {
    for (const KvDType dtype : KvDTypes(GetParam())) {
      Layer layer(GetParam(), shape, dtype, 2);
      constexpr int kRows = 81;  // more than a tile of positions
      const auto got = layer.Run({{{0, 70}, {1, 5}}, {{1, 3}, {0, kRows - 71}}, {{0, 1}}});
      const auto want = layer.Want(0, kRows);
      ASSERT_EQ(got[0].size(), want.size());
      double largest = 0, worst = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        largest = std::max(largest, std::abs(want[i]));
        const double d = std::abs(static_cast<double>(got[0][i]) - want[i]);
        worst = d <= worst ? worst : d;  // a NaN stays
      }
      EXPECT_LE(worst, largest * Tolerance(dtype, GetParam() == Isa::kAvx512Bf16))
          << "rank " << shape.rank << " kv dtype " << static_cast<int>(dtype);
    }
  }
}

// Design rule 1.
TEST_P(LatentTiers, TheAnswerDoesNotDependOnTheBatch) {
  for (const KvDType dtype : KvDTypes(GetParam())) {
    Layer one(GetParam(), {}, dtype, 1), four(GetParam(), {}, dtype, 4);
    const auto alone = one.Run({{{0, 90}}})[0];
    EXPECT_TRUE(four.Run({{{0, 90}}})[0] == alone) << "threads";
    std::vector<std::vector<Part>> single(90, {{0, 1}});
    EXPECT_TRUE(four.Run(single)[0] == alone) << "row by row";
    EXPECT_TRUE(four.Run({{{1, 7}, {0, 33}, {2, 1}}, {{0, 57}, {1, 9}}})[0] == alone) << "batched";
  }
}

TEST(LatentCache, KeepsOneCopy) {
  for (const Isa isa : kIsas) {
    if (!Supported(isa)) continue;
    const BlockOps& ops = GetBlockOps(isa);
    const size_t bytes = ops.default_kv_dtype == KvDType::kF32 ? 4 : 2;
    EXPECT_EQ(ops.kv_block_bytes({ops.default_kv_dtype, 16, 1, 576, 512}), 16 * 576 * bytes);
    EXPECT_EQ(ops.kv_block_bytes({ops.default_kv_dtype, 16, 1, 64, 66}), 0u);
  }
}

}  // namespace
}  // namespace vivace::kernels
