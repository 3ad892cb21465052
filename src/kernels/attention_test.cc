// norm_qkv and attention of every tier this machine has: against the reference, and bit for bit
// against themselves under any batch, chunking, block table and thread count.
#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace vivace::kernels {
namespace {

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};
using Bytes = std::unique_ptr<std::byte, Free>;

// 0xff everywhere: NaN as bf16 and as fp32, so that a value nobody wrote shows in any result.
Bytes Garbage(size_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  Bytes data(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
  std::memset(data.get(), 0xff, bytes);
  return data;
}

std::vector<float> Random(uint32_t seed, size_t count, float scale) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& v : values) v = normal(engine);
  return values;
}

struct Shape {
  int32_t heads = 6, kv_heads = 2, head_dim = 64;
  int32_t block_size = 16;
  int32_t window = 0;
  int32_t rope_dims = 64;
  bool interleaved = false;
  bool head_norms = false;
  float value_scale = 1.0f;  // of what becomes V
  bool bias = true;
  int32_t hidden = 64;
  float score_scale = 1.0f;  // beside 1 / sqrt(head_dim)
  float softcap = 0;
  bool sinks = false;
  bool whole_norms = false;  // of head_norms: over all heads together
  NormKind norm_kind = NormKind::kRms;

  int32_t q_size() const { return heads * head_dim; }
  int32_t kv_size() const { return kv_heads * head_dim; }
};

// A step: how many rows each sequence adds, in the order they stand in the step.
struct Part {
  int32_t sequence;
  int32_t rows;
};
using Steps = std::vector<std::vector<Part>>;

// What is special about a run.
struct Circumstances {
  uint32_t block_seed = 1;         // decides which blocks the sequences get
  int32_t shared_positions = 0;    // sequences 1.. begin with this much of sequence 0
  bool tell_of_sharing = false;    // the ops learn of it
  int32_t poisoned_position = -1;  // whose input is NaN, in sequence 0
  float input_scale = 1.0f;
};

// One attention layer of random weights over sequences of random rows.
class Layer {
 public:
  Layer(Isa isa, const Shape& shape, KvDType dtype, int threads)
      : shape_(shape), ops_(GetBlockOps(isa)), pool_(threads) {
    geometry_ = {dtype, shape.block_size, shape.kv_heads, shape.head_dim};
    const int32_t rows[] = {shape.q_size(), shape.kv_size(), shape.kv_size()};
    for (int i = 0; i < 3; ++i) {
      const auto values =
          Random(100 + static_cast<uint32_t>(i), static_cast<size_t>(rows[i]) * shape.hidden,
                 (i == 2 ? shape.value_scale : 1) / std::sqrt(static_cast<float>(shape.hidden)));
      qkv_.parts[i] = Pack(
          {DType::kF32, rows[i], shape.hidden, reinterpret_cast<const std::byte*>(values.data())});
    }
    qkv_.num_parts = 3;
    bias_ = Random(7, static_cast<size_t>(rows[0] + rows[1] + rows[2]), 0.1f);
    qkv_.bias = shape.bias ? bias_.data() : nullptr;
    norm_ = Random(8, shape.hidden, 1);
    q_norm_ = Random(9, shape.q_size(), 1);
    k_norm_ = Random(10, shape.kv_size(), 1);
    sinks_ = Random(11, shape.heads, 2);
  }

  size_t block_bytes() const { return ops_.kv_block_bytes(geometry_); }

  // Runs the steps; returns each sequence's attention output, [rows, heads * head_dim].
  std::vector<std::vector<float>> Run(const Steps& steps, uint32_t block_seed) {
    return Run(steps, Circumstances{.block_seed = block_seed});
  }
  std::vector<std::vector<float>> Run(const Steps& steps, const Circumstances& circumstances) {
    circumstances_ = circumstances;
    CountRows(steps);
    GiveBlocks(circumstances.block_seed);
    outputs_.assign(lengths_.size(), {});
    queries_.assign(lengths_.size(), {});
    std::vector<int32_t> done(lengths_.size(), circumstances.shared_positions);
    done[0] = 0;
    for (const auto& step : steps) RunStep(step, &done);
    return outputs_;
  }
  const std::vector<std::vector<float>>& queries() const { return queries_; }

  // Of the first position's query and its own key, on the reference tier.
  double OwnScore() const {
    const auto* key = reinterpret_cast<const float*>(cache_.get()) +
                      int64_t{tables_[0][0].value} * static_cast<int64_t>(block_bytes() / 4);
    double score = 0;
    for (size_t d = 0; d < static_cast<size_t>(shape_.head_dim); ++d) {
      score += static_cast<double>(queries_[0][d]) * static_cast<double>(key[d]);
    }
    return score / std::sqrt(static_cast<double>(shape_.head_dim));
  }
  float sink() const { return sinks_[0]; }

 private:
  PackedMatrix Pack(const WeightView& view) {
    packed_.push_back(Garbage(ops_.packed_bytes(view.dtype, view.rows, view.cols)));
    ops_.pack(view, 0, (view.rows + kTileRows - 1) / kTileRows, packed_.back().get());
    return {view.dtype, view.rows, view.cols, packed_.back().get()};
  }

  void CountRows(const Steps& steps) {
    lengths_.clear();
    max_rows_ = 0;
    for (const auto& step : steps) {
      int32_t rows = 0;
      for (const Part& part : step) {
        lengths_.resize(std::max(lengths_.size(), static_cast<size_t>(part.sequence) + 1));
        lengths_[static_cast<size_t>(part.sequence)] += part.rows;
        rows += part.rows;
      }
      max_rows_ = std::max(max_rows_, rows);
    }
    for (size_t i = 1; i < lengths_.size(); ++i) lengths_[i] += circumstances_.shared_positions;
  }

  void GiveBlocks(uint32_t seed) {
    int32_t count = 3;  // some that nobody uses
    for (const int32_t length : lengths_)
      count += (length + shape_.block_size - 1) / shape_.block_size;
    std::vector<BlockId> ids;
    for (int32_t i = 0; i < count; ++i) ids.emplace_back(i);
    std::shuffle(ids.begin(), ids.end(), std::mt19937(seed));
    tables_.clear();
    for (const int32_t length : lengths_) {
      const int32_t blocks = (length + shape_.block_size - 1) / shape_.block_size;
      tables_.emplace_back(ids.end() - blocks, ids.end());
      ids.resize(ids.size() - static_cast<size_t>(blocks));
    }
    const auto shared = circumstances_.shared_positions / shape_.block_size;
    for (auto& table : tables_) std::copy_n(tables_[0].begin(), shared, table.begin());
    cache_ = Garbage(static_cast<size_t>(count) * block_bytes());
    kv_ = {geometry_, cache_.get(), count};
  }

  void RunStep(const std::vector<Part>& step, std::vector<int32_t>* done) {
    std::vector<SequenceRows> sequences;
    std::vector<float> x, cos, sin;
    int32_t rows = 0;
    for (const Part& part : step) {
      const auto s = static_cast<size_t>(part.sequence);
      sequences.push_back({rows, part.rows, (*done)[s], tables_[s].data()});
      for (int32_t i = 0; i < part.rows; ++i) AddRow(part.sequence, (*done)[s] + i, &x, &cos, &sin);
      rows += part.rows;
      (*done)[s] += part.rows;
    }
    std::vector<int32_t> sharers(sequences.size());
    std::iota(sharers.begin(), sharers.end(), 0);
    const PrefixGroup group{sharers, circumstances_.shared_positions};
    StepRows step_rows{rows, sequences};
    if (circumstances_.tell_of_sharing && sequences.size() > 1) {
      step_rows.prefix_groups = {&group, 1};
    }
    std::vector<float> q(static_cast<size_t>(rows) * static_cast<size_t>(shape_.q_size()), NAN),
        out(q);
    const WorkspaceShape shape{.max_rows = max_rows_,
                               .hidden = shape_.hidden,
                               .max_cols = shape_.hidden,
                               .qkv_rows = shape_.q_size() + 2 * shape_.kv_size(),
                               .ffn = 16,
                               .max_context = 4096,
                               .max_sequences = static_cast<int32_t>(sequences.size()),
                               .threads = pool_.size()};
    const size_t bytes = ops_.workspace_bytes(shape);
    const Bytes scratch = Garbage(bytes);
    ops_.norm_qkv({.x = x.data(),
                   .norm = {shape_.norm_kind, norm_.data(), nullptr, 1e-5f},
                   .qkv = &qkv_,
                   .q_norm = {.weight = shape_.head_norms ? q_norm_.data() : nullptr, .eps = 1e-5f},
                   .k_norm = {.weight = shape_.head_norms ? k_norm_.data() : nullptr, .eps = 1e-5f},
                   .whole_norms = shape_.whole_norms,
                   .hidden = shape_.hidden,
                   .heads = shape_.heads,
                   .rope = {cos.data(), sin.data(), shape_.rope_dims, shape_.interleaved},
                   .step = step_rows,
                   .kv = kv_,
                   .q = q.data()},
                  {scratch.get(), bytes}, pool_);
    std::memset(scratch.get(), 0xff, bytes);
    ops_.attention({.q = q.data(),
                    .heads = shape_.heads,
                    .scale = shape_.score_scale / std::sqrt(static_cast<float>(shape_.head_dim)),
                    .softcap = shape_.softcap,
                    .window = shape_.window,
                    .sinks = shape_.sinks ? sinks_.data() : nullptr,
                    .step = step_rows,
                    .kv = kv_,
                    .out = out.data()},
                   {scratch.get(), bytes}, pool_);
    for (size_t i = 0; i < step.size(); ++i) {
      const auto begin = sequences[i].first_row * shape_.q_size();
      const auto end = begin + step[i].rows * shape_.q_size();
      auto& to = outputs_[static_cast<size_t>(step[i].sequence)];
      to.insert(to.end(), out.begin() + begin, out.begin() + end);
      auto& queries = queries_[static_cast<size_t>(step[i].sequence)];
      queries.insert(queries.end(), q.begin() + begin, q.begin() + end);
    }
  }

  void AddRow(int32_t sequence, int32_t position, std::vector<float>* x, std::vector<float>* cos,
              std::vector<float>* sin) {
    auto row = Random(static_cast<uint32_t>(sequence * 100000 + position), shape_.hidden,
                      circumstances_.input_scale);
    if (sequence == 0 && position == circumstances_.poisoned_position) row[0] = NAN;
    x->insert(x->end(), row.begin(), row.end());
    for (int32_t i = 0; i < shape_.rope_dims / 2; ++i) {
      const double angle = position * std::pow(10000.0, -2.0 * i / shape_.rope_dims);
      cos->push_back(static_cast<float>(std::cos(angle)));
      sin->push_back(static_cast<float>(std::sin(angle)));
    }
  }

  const Shape shape_;
  Circumstances circumstances_;
  const BlockOps& ops_;
  ThreadPool pool_;
  KvGeometry geometry_;
  MatrixGroup qkv_;
  std::vector<Bytes> packed_;
  std::vector<float> bias_, norm_, q_norm_, k_norm_, sinks_;
  std::vector<int32_t> lengths_;
  int32_t max_rows_ = 0;
  std::vector<std::vector<BlockId>> tables_;
  Bytes cache_;
  KvCacheView kv_;
  std::vector<std::vector<float>> outputs_, queries_;
};

Steps Whole(int32_t length) { return {{{0, length}}}; }

Steps Chunked(int32_t length, int32_t chunk) {
  Steps steps;
  for (int32_t at = 0; at < length; at += chunk)
    steps.push_back({{0, std::min(chunk, length - at)}});
  return steps;
}

std::string Bits(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

float Largest(const std::vector<float>& values) {
  float best = 0;
  for (const float v : values) best = std::max(best, std::abs(v));
  return best;
}

float Distance(const std::vector<float>& a, const std::vector<float>& b) {
  float worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const float d = std::abs(a[i] - b[i]);
    worst = d <= worst ? worst : d;  // a NaN stays
  }
  return worst;
}

std::vector<Isa> FastTiers() {
  std::vector<Isa> tiers;
  for (const Isa isa : kIsas) {
    if (isa != Isa::kReference && Supported(isa)) tiers.push_back(isa);
  }
  return tiers;
}

std::vector<Isa> AllTiers() {
  std::vector<Isa> tiers = FastTiers();
  tiers.push_back(Isa::kReference);
  return tiers;
}

// The cache types a tier has.
std::vector<KvDType> KvDTypes(Isa isa) {
  if (isa == Isa::kReference) return {KvDType::kF32};
  return {KvDType::kF32, KvDType::kBF16, KvDType::kI8};
}

std::string TierName(const ::testing::TestParamInfo<Isa>& info) {
  return std::string(Name(info.param));
}

class FastAttention : public ::testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Tiers, FastAttention, ::testing::ValuesIn(FastTiers()), TierName);
class AnyAttention : public ::testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Tiers, AnyAttention, ::testing::ValuesIn(AllTiers()), TierName);

// Of an output, relative to the largest.
float KvTolerance(Isa isa, KvDType dtype) {
  switch (dtype) {
    case KvDType::kF32:  // rounding of sums of some hundred terms
      return 3e-5f;
    case KvDType::kBF16:
      // 8 bits of K and V: a value is off by 2^-9 of itself, and a score of size s by s * 2^-9,
      // which moves the weights by as much again. Scores here stay under 8 with room to spare.
      // With dot products of bf16 the query's rounding adds as much to a score, and the weight's to
      // a value.
      return (isa == Isa::kAvx512Bf16 ? 2 : 1) * (1 + 2 * 8) * 0x1p-9f;
    case KvDType::kI8:
      break;
  }
  // A value is off by up to 1/254 of its row's largest. A score is off by a sum over dims of such
  // errors times q, a random walk: max|k| / (254 sqrt 3) * |q| * scale, and with q and k near unit
  // normal |q| * scale is 1 and max|k| up to 4: 0.009. Four of these move a weight by 3.6 %, and
  // those that lose by as much again.
  return 1 / 254.0f + 2 * 4 * 0.009f;
}

void ExpectCloseToReference(Isa isa, const Shape& shape, const Steps& steps) {
  SCOPED_TRACE(::testing::Message()
               << Name(isa) << " heads " << shape.heads << "/" << shape.kv_heads << " dim "
               << shape.head_dim << " window " << shape.window);
  Layer reference(Isa::kReference, shape, KvDType::kF32, 1);
  const auto want = reference.Run(steps, 1);
  for (const KvDType dtype : KvDTypes(isa)) {
    Layer tier(isa, shape, dtype, 2);
    const auto got = tier.Run(steps, 2);
    const float relative = KvTolerance(isa, dtype);
    for (size_t s = 0; s < want.size(); ++s) {
      ASSERT_EQ(got[s].size(), want[s].size());
      EXPECT_LE(Distance(tier.queries()[s], reference.queries()[s]),
                3e-5f * Largest(reference.queries()[s]));
      EXPECT_LE(Distance(got[s], want[s]), relative * Largest(want[s]))
          << "kv dtype " << static_cast<int>(dtype);
    }
  }
}

TEST_P(FastAttention, AgreesWithTheReferenceForAnyHead) {
  for (const int32_t dim : {2, 6, 32, 64, 80, 96, 128, 256, 320}) {
    Shape shape{.head_dim = dim, .rope_dims = dim};
    ExpectCloseToReference(GetParam(), shape, {{{0, 70}, {1, 5}}, {{1, 3}, {0, 1}}});
  }
}

TEST_P(FastAttention, AgreesWithTheReferenceForAnyGroup) {
  const int32_t heads[][2] = {{1, 1}, {3, 3}, {9, 3}, {8, 1}, {14, 2}, {71, 1}};
  for (const auto& [q, kv] : heads) {
    ExpectCloseToReference(GetParam(),
                           {.heads = q, .kv_heads = kv, .head_dim = 32, .rope_dims = 32},
                           {{{0, 40}, {1, 1}, {2, 19}}, {{0, 1}, {1, 1}, {2, 1}}});
  }
}

TEST_P(FastAttention, AgreesWithTheReferenceForRopeNormsAndBlocks) {
  for (const bool interleaved : {false, true}) {
    for (const int32_t rope_dims : {0, 2, 20, 32, 64}) {
      ExpectCloseToReference(GetParam(),
                             {.block_size = 32,
                              .rope_dims = rope_dims,
                              .interleaved = interleaved,
                              .head_norms = true},
                             {{{0, 50}}, {{0, 1}}});
    }
  }
}

TEST_P(FastAttention, AgreesWithTheReferenceForSoftcapsSinksAndNorms) {
  for (const int32_t window : {0, 20}) {
    for (const float softcap : {0.0f, 2.0f, 50.0f}) {
      for (const bool sinks : {false, true}) {
        const bool whole = window > 0;
        ExpectCloseToReference(GetParam(),
                               {.head_dim = 24,
                                .window = window,
                                .rope_dims = 16,
                                .head_norms = true,
                                .softcap = softcap,
                                .sinks = sinks,
                                .whole_norms = whole,
                                .norm_kind = whole ? NormKind::kLayer : NormKind::kRms},
                               {{{0, 70}, {1, 5}}, {{1, 3}, {0, 1}}});
      }
    }
  }
}

// Against the definition, in double: of one head and one position, which sees itself and the sink.
TEST(ReferenceAttention, SoftcapAndSinkAreTheirDefinition) {
  for (const bool sinks : {false, true}) {
    for (const float softcap : {0.0f, 0.5f}) {
      const Shape shape{.heads = 1,
                        .kv_heads = 1,
                        .head_dim = 8,
                        .rope_dims = 0,
                        .softcap = softcap,
                        .sinks = sinks};
      Layer layer(Isa::kReference, shape, KvDType::kF32, 1);
      const auto out = layer.Run(Whole(1), 1)[0];
      Shape plain = shape;
      plain.softcap = 0, plain.sinks = false;
      Layer bare(Isa::kReference, plain, KvDType::kF32, 1);
      const auto value = bare.Run(Whole(1), 1)[0];  // one position: its value
      const double score = bare.OwnScore();
      const double capped = softcap > 0 ? static_cast<double>(softcap) *
                                              std::tanh(score / static_cast<double>(softcap))
                                        : score;
      const double weight =
          sinks ? 1 / (1 + std::exp(static_cast<double>(layer.sink()) - capped)) : 1;
      for (size_t d = 0; d < out.size(); ++d) EXPECT_NEAR(out[d], weight * value[d], 1e-6);
    }
  }
}

TEST_P(FastAttention, AgreesWithTheReferenceInALongContextAndAWindow) {
  for (const int32_t window : {0, 1, 16, 100, 513, 5000}) {
    ExpectCloseToReference(
        GetParam(), {.heads = 2, .kv_heads = 1, .head_dim = 16, .window = window, .rope_dims = 16},
        {{{0, 1200}}, {{0, 1}}, {{0, 30}}});
  }
}

constexpr int32_t kLength = 1050;  // crosses two splits

void ExpectSameBits(Isa isa, const Shape& shape, KvDType dtype) {
  const auto alone = Bits(Layer(isa, shape, dtype, 1).Run(Whole(kLength), 1)[0]);
  Steps batched = Chunked(kLength, 100);
  for (auto& step : batched) {
    step.insert(step.begin(), {2, 1});
    step.push_back({1, 150});
  }
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(::testing::Message() << "window " << shape.window << " threads " << threads
                                      << " kv dtype " << static_cast<int>(dtype));
    Layer layer(isa, shape, dtype, threads);
    EXPECT_TRUE(Bits(layer.Run(Whole(kLength), 5)[0]) == alone) << "other blocks";
    EXPECT_TRUE(Bits(layer.Run(Chunked(kLength, 17), 6)[0]) == alone) << "chunks of 17";
    EXPECT_TRUE(Bits(layer.Run(Chunked(kLength, 1), 7)[0]) == alone) << "token by token";
    EXPECT_TRUE(Bits(layer.Run(batched, 8)[0]) == alone) << "with others";
  }
}

// Design rule 1. The sequence's neighbours are longer and shorter.
TEST_P(AnyAttention, TheAnswerDoesNotDependOnTheBatch) {
  for (const int32_t window : {0, 200}) {
    Shape shape{.heads = 6, .kv_heads = 2, .head_dim = 16, .window = window, .rope_dims = 16};
    for (const KvDType dtype : KvDTypes(GetParam())) ExpectSameBits(GetParam(), shape, dtype);
    shape.softcap = 3, shape.sinks = shape.head_norms = shape.whole_norms = true;
    shape.norm_kind = NormKind::kLayer;
    ExpectSameBits(GetParam(), shape, GetBlockOps(GetParam()).default_kv_dtype);
  }
}

// Whether an op knows of a shared beginning or reads it once for each: the same bits. Sequences of
// one row and of more than fit into a unit, contexts that end in different splits.
TEST_P(FastAttention, SharingAPrefixDoesNotShowInTheBits) {
  Steps steps = {{{0, 700}}, {}};
  for (int32_t i = 1; i <= 11; ++i) steps[1].push_back({i, i % 4 == 0 ? 10 * i : i % 3 + 1});
  steps.push_back({});
  for (int32_t i = 0; i <= 11; ++i) steps[2].push_back({i, 1});
  for (const int32_t window : {0, 100}) {
    const Shape shape{.heads = 6, .kv_heads = 2, .head_dim = 32, .window = window, .rope_dims = 32};
    for (const KvDType dtype : KvDTypes(GetParam())) {
      for (const int threads : {1, 5}) {
        SCOPED_TRACE(::testing::Message() << "window " << window << " threads " << threads
                                          << " kv dtype " << static_cast<int>(dtype));
        Circumstances circumstances{.shared_positions = 656};
        Layer layer(GetParam(), shape, dtype, threads);
        const auto apart = layer.Run(steps, circumstances);
        circumstances.tell_of_sharing = true;
        const auto together = layer.Run(steps, circumstances);
        for (size_t i = 0; i < apart.size(); ++i) {
          EXPECT_TRUE(Bits(apart[i]) == Bits(together[i])) << "sequence " << i;
        }
      }
    }
  }
}

// A position that is not a number reaches those who see it, in every value, and nobody else: not
// the rows before it in its own chunk, and with a window not those that have left it behind.
TEST_P(AnyAttention, NaNStaysWithThoseWhoSeeIt) {
  constexpr int32_t kPoisoned = 77, kRows = 150;
  for (const int32_t window : {0, 20}) {
    const Shape shape{.heads = 6, .kv_heads = 2, .head_dim = 32, .window = window, .rope_dims = 32};
    for (const KvDType dtype : KvDTypes(GetParam())) {
      for (const int32_t chunk : {1, 40, 150}) {
        SCOPED_TRACE(::testing::Message() << "window " << window << " chunk " << chunk
                                          << " kv dtype " << static_cast<int>(dtype));
        Layer layer(GetParam(), shape, dtype, 2);
        const auto sound = layer.Run(Chunked(kRows, chunk), 1)[0];
        const auto got =
            layer.Run(Chunked(kRows, chunk), Circumstances{.poisoned_position = kPoisoned})[0];
        for (int32_t row = 0; row < kRows; ++row) {
          const bool sees = row >= kPoisoned && (window == 0 || row < kPoisoned + window);
          for (int32_t i = row * shape.q_size(); i < (row + 1) * shape.q_size(); ++i) {
            const auto at = static_cast<size_t>(i);
            ASSERT_TRUE(sees ? std::isnan(got[at]) : got[at] == sound[at]) << "row " << row;
          }
        }
      }
    }
  }
}

// Nothing but zeros: every score is 0 and so is every value.
TEST_P(AnyAttention, ZerosGiveZeros) {
  const Shape shape{.heads = 2, .kv_heads = 1, .head_dim = 32, .rope_dims = 32, .bias = false};
  for (const KvDType dtype : KvDTypes(GetParam())) {
    Layer layer(GetParam(), shape, dtype, 1);
    const auto got = layer.Run(Whole(70), Circumstances{.input_scale = 0.0f})[0];
    EXPECT_EQ(Largest(got), 0.0f) << "kv dtype " << static_cast<int>(dtype);
  }
}

// Values near the end of what a float holds: finite in, finite out, and the size of the values. The
// head norm keeps scores in reason.
TEST_P(AnyAttention, HugeAndTinyValuesKeepTheirSize) {
  for (const float scale : {1e-20f, 1e30f}) {
    const Shape shape{.heads = 2,
                      .kv_heads = 1,
                      .head_dim = 32,
                      .rope_dims = 32,
                      .head_norms = true,
                      .value_scale = scale,
                      .bias = false};
    Layer reference(Isa::kReference, shape, KvDType::kF32, 1);
    const auto want = reference.Run(Whole(70), 1)[0];
    for (const KvDType dtype : KvDTypes(GetParam())) {
      Layer layer(GetParam(), shape, dtype, 1);
      const auto got = layer.Run(Whole(70), 1)[0];
      EXPECT_LE(Distance(got, want), KvTolerance(GetParam(), dtype) * Largest(want))
          << "kv dtype " << static_cast<int>(dtype) << " scale " << scale;
    }
  }
}

// Many threads and one sequence: every split is an item of its own and someone else merges.
TEST_P(AnyAttention, SplitsMergeToTheSameBits) {
  const Shape shape{.heads = 3, .kv_heads = 1, .head_dim = 64};
  const Steps steps = {{{0, 2100}}, {{0, 1}}, {{0, 1}}};
  for (const KvDType dtype : KvDTypes(GetParam())) {
    const auto one = Bits(Layer(GetParam(), shape, dtype, 1).Run(steps, 1)[0]);
    EXPECT_TRUE(Bits(Layer(GetParam(), shape, dtype, 8).Run(steps, 2)[0]) == one)
        << "kv dtype " << static_cast<int>(dtype);
  }
}

// Scores so far apart that most weights are too small for a float: those weigh nothing, and the
// best, which may come late, loses nothing to them.
TEST_P(FastAttention, ScoresFarApartLeaveTheBest) {
  for (const float scale : {30.0f, 1000.0f}) {
    const Shape shape{
        .heads = 2, .kv_heads = 1, .head_dim = 32, .rope_dims = 32, .score_scale = scale};
    const Steps steps = {{{0, 150}}, {{0, 1}}};
    const auto want = Layer(Isa::kReference, shape, KvDType::kF32, 1).Run(steps, 1)[0];
    for (const KvDType dtype : KvDTypes(GetParam())) {
      const auto got = Layer(GetParam(), shape, dtype, 2).Run(steps, 1)[0];
      for (const float v : got) ASSERT_TRUE(std::isfinite(v));
      if (dtype != KvDType::kF32) continue;
      // A score is rounded in proportion to its size, and a weight is off by as much.
      EXPECT_LE(Distance(got, want), 3e-5f * scale * Largest(want)) << "scale " << scale;
    }
  }
}

TEST_P(AnyAttention, RefusesWhatItCannotServe) {
  const auto bytes = GetBlockOps(GetParam()).kv_block_bytes;
  const KvDType dtype = GetBlockOps(GetParam()).default_kv_dtype;
  EXPECT_GT(bytes({dtype, 16, 1, 64}), 0u);
  EXPECT_EQ(bytes({dtype, 16, 1, 0}), 0u);
  EXPECT_EQ(bytes({dtype, 16, 1, 63}), 0u);
  EXPECT_EQ(bytes({dtype, 16, 0, 64}), 0u);
  EXPECT_EQ(bytes({dtype, 0, 1, 64}), 0u);
  if (GetParam() == Isa::kReference) {
    EXPECT_EQ(bytes({KvDType::kBF16, 16, 1, 64}), 0u);
    EXPECT_EQ(bytes({KvDType::kI8, 16, 1, 64}), 0u);
  } else {
    EXPECT_EQ(bytes({dtype, 24, 1, 64}), 0u);
    EXPECT_EQ(bytes({dtype, 16, 1, 578}), 0u);
    EXPECT_EQ(bytes({KvDType::kBF16, 16, 3, 64}), 16u * 3 * 64 * 2 * 2);
    EXPECT_EQ(bytes({KvDType::kI8, 16, 3, 64}), 16u * 3 * (64 + 4) * 2);
  }
}

}  // namespace
}  // namespace vivace::kernels
