// Recurrent layers on every tier: against their definitions in double precision, and bit for bit
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
using Row = std::vector<double>;

struct Shape {
  RecurrentGeometry geometry;
  bool interleaved = false;  // what belongs to a key head stands together
  bool own_gates = false;    // b and a are a matrix of their own
  bool conv_bias = false;
  bool layer_norm = false;
  float min_dt = 0.0f, max_dt = INFINITY;
  float decay = -0.3f;  // up to
  int hidden = 24;
};

RecurrentGeometry ShortConv(int channels, int width) {
  return {RecurrentKind::kShortConv, 1, 1, 0, channels, width};
}
RecurrentGeometry Mamba2(int heads, int groups, int key_dim, int value_dim, int width) {
  return {RecurrentKind::kMamba2, heads, groups, key_dim, value_dim, width};
}
RecurrentGeometry GatedDelta(int heads, int key_heads, int key_dim, int value_dim, int width) {
  return {RecurrentKind::kGatedDelta, heads, key_heads, key_dim, value_dim, width};
}

std::string NameOf(const Shape& shape) {
  const RecurrentGeometry& g = shape.geometry;
  return "kind " + std::to_string(static_cast<int>(g.kind)) + ", heads " + std::to_string(g.heads) +
         " over " + std::to_string(g.key_heads) + ", dims " + std::to_string(g.key_dim) + " and " +
         std::to_string(g.value_dim) + ", width " + std::to_string(g.conv_width);
}

// Where the columns of a projected row stand. `outputs` are those of the first matrix, `gates`
// those of the second.
struct Places {
  explicit Places(const Shape& shape) : g(shape.geometry), share(g.heads / g.key_heads) {
    std::vector<std::pair<HeadColumns*, int>> inputs, gated;  // and the columns of a key head
    switch (g.kind) {
      case RecurrentKind::kShortConv:
        inputs = {{&b, g.value_dim}, {&z, g.value_dim}, {&v, g.value_dim}};
        break;
      case RecurrentKind::kMamba2:
        inputs = {
            {&z, share * g.value_dim}, {&v, share * g.value_dim}, {&k, g.key_dim}, {&q, g.key_dim}};
        gated = {{&a, share}};
        break;
      case RecurrentKind::kGatedDelta:
        inputs = {
            {&q, g.key_dim}, {&k, g.key_dim}, {&v, share * g.value_dim}, {&z, share * g.value_dim}};
        gated = {{&b, share}, {&a, share}};
        break;
    }
    if (!shape.own_gates) inputs.insert(inputs.end(), gated.begin(), gated.end());
    outputs = Place(shape, inputs, 0);
    if (shape.own_gates) gates = Place(shape, gated, outputs);
  }

  // Returns how many columns they are.
  int Place(const Shape& shape, const std::vector<std::pair<HeadColumns*, int>>& parts,
            int first) const {
    int of_head = 0;
    for (const auto& [columns, count] : parts) of_head += count;
    int at = first;
    for (const auto& [columns, count] : parts) {
      *columns = {at, shape.interleaved ? of_head : count};
      at += shape.interleaved ? count : count * g.key_heads;
    }
    return of_head * g.key_heads;
  }

  const RecurrentGeometry g;
  const int share;
  HeadColumns q, k, v, z, b, a;
  int outputs = 0, gates = 0;
};

struct Part {
  int sequence, rows;
};
using Steps = std::vector<std::vector<Part>>;

class Layer {
 public:
  static constexpr int kSlots = 8;

  Layer(Isa isa, const Shape& shape, int threads)
      : shape_(shape),
        g_(shape.geometry),
        places_(shape),
        ops_(GetBlockOps(isa)),
        pool_(threads),
        weights_(Scaled(places_.outputs, 1)),
        gate_weights_(Scaled(std::max(places_.gates, 1), 2)),
        bias_(MakeRows(1, places_.outputs + places_.gates, 3)),
        norm_(MakeRows(1, shape.hidden, 4)),
        norm_bias_(MakeRows(1, shape.hidden, 5)),
        conv_(MakeRows(g_.conv_width, g_.conv_channels(), 6)),
        conv_bias_(MakeRows(1, g_.conv_channels(), 7)),
        decay_(MakeRows(1, g_.heads, 8)),
        dt_bias_(MakeRows(1, g_.heads, 9)),
        skip_(MakeRows(1, g_.heads, 10)),
        out_norm_(MakeRows(1, g_.inner(), 11)),
        states_(static_cast<size_t>(kSlots * g_.state_floats()) * sizeof(float)) {
    for (float& decay : decay_) decay = shape.decay * std::abs(decay);
    Pack(isa, weights_, places_.outputs);
    if (shape.own_gates) Pack(isa, gate_weights_, places_.gates);
    input_.bias = bias_.data();
    std::memset(states_.data(), 0xff, states_.size());
  }

  // Of the row at `position` of `sequence`, from now on.
  void SetNan(int sequence, int position) {
    nan_sequence_ = sequence;
    nan_position_ = position;
  }

  // Outputs of the rows of each sequence. Sequences kSlots apart have a slot in common.
  std::vector<std::vector<float>> Run(const Steps& steps) {
    std::vector<int> done(2 * kSlots);
    std::vector<std::vector<float>> out(2 * kSlots);
    for (const auto& step : steps) RunStep(step, &done, &out);
    return out;
  }

  // The sequence's first rows by the definition.
  Row Want(int sequence, int rows) const {
    std::vector<Row> inputs(static_cast<size_t>(g_.conv_width - 1),
                            Row(static_cast<size_t>(g_.conv_channels())));
    Row state(static_cast<size_t>(g_.heads * g_.key_dim * g_.value_dim)), out;
    for (int position = 0; position < rows; ++position) {
      const Row row = Project(sequence, position);
      inputs.push_back(ConvInputs(row));
      const Row mixed = Convolved(inputs);
      const Row y =
          g_.kind == RecurrentKind::kShortConv ? Gated(row, mixed) : Advanced(row, mixed, &state);
      out.insert(out.end(), y.begin(), y.end());
    }
    return out;
  }

  const float* State(int slot) const {
    return reinterpret_cast<const float*>(states_.data()) + slot * g_.state_floats();
  }
  static int SlotOf(int sequence) { return kSlots - 1 - sequence % kSlots; }

 private:
  std::vector<float> Scaled(int rows, uint32_t seed) const {
    auto values = MakeRows(rows, shape_.hidden, seed);
    for (float& value : values) value /= std::sqrt(static_cast<float>(shape_.hidden));
    return values;
  }
  void Pack(Isa isa, const std::vector<float>& values, int rows) {
    std::vector<std::byte> data(values.size() * sizeof(float));
    std::memcpy(data.data(), values.data(), data.size());
    packed_.push_back(
        std::make_unique<Matrix>(GetLinearOps(isa), DType::kF32, rows, shape_.hidden, data));
    input_.parts[input_.num_parts++] = packed_.back()->get();
  }
  std::vector<float> Input(int sequence, int position) const {
    auto x = MakeRows(1, shape_.hidden, static_cast<uint32_t>(1000 * sequence + position));
    if (sequence == nan_sequence_ && position == nan_position_) x[x.size() / 2] = NAN;
    return x;
  }

  // ---- the definition ----

  static double At(const std::vector<float>& values, int64_t i) {
    return static_cast<double>(values[static_cast<size_t>(i)]);
  }
  static double Silu(double x) { return x / (1 + std::exp(-x)); }
  // x[first, first + count) / sqrt(mean or sum of squares + eps)
  static Row Unit(const Row& x, int first, int count, bool mean, double eps) {
    const Row part(x.begin() + first, x.begin() + first + count);
    double squares = 0;
    for (const double value : part) squares += value * value / (mean ? count : 1);
    Row unit;
    for (const double value : part) unit.push_back(value / std::sqrt(squares + eps));
    return unit;
  }

  Row Project(int sequence, int position) const {
    const auto x = Input(sequence, position);
    Row n(x.begin(), x.end());
    if (shape_.layer_norm) {
      double mean = 0;
      for (const double value : n) mean += value / shape_.hidden;
      for (double& value : n) value -= mean;
    }
    n = Unit(n, 0, shape_.hidden, true, static_cast<double>(kEps));
    for (int i = 0; i < shape_.hidden; ++i) {
      double& value = n[static_cast<size_t>(i)];
      value = value * At(norm_, i) + (shape_.layer_norm ? At(norm_bias_, i) : 0);
    }
    Row out;
    const auto multiply = [&](const std::vector<float>& weights, int rows) {
      for (int r = 0; r < rows; ++r) {
        double sum = At(bias_, static_cast<int>(out.size()));
        for (int i = 0; i < shape_.hidden; ++i) {
          sum += At(weights, r * shape_.hidden + i) * n[static_cast<size_t>(i)];
        }
        out.push_back(sum);
      }
    };
    multiply(weights_, places_.outputs);
    if (shape_.own_gates) multiply(gate_weights_, places_.gates);
    return out;
  }

  // All heads' values of one kind, side by side.
  Row Gather(const Row& row, const HeadColumns& columns, int count) const {
    Row out;
    for (int head = 0; head < g_.key_heads; ++head) {
      const auto from = row.begin() + columns.first + head * columns.stride;
      out.insert(out.end(), from, from + count);
    }
    return out;
  }
  Row ConvInputs(const Row& row) const {
    const int values = places_.share * g_.value_dim;
    Row out = Gather(row, places_.v, values);
    if (g_.kind == RecurrentKind::kShortConv) {
      const Row b = Gather(row, places_.b, values);
      for (size_t i = 0; i < b.size(); ++i) out[i] *= b[i];
      return out;
    }
    const Row q = Gather(row, places_.q, g_.key_dim), k = Gather(row, places_.k, g_.key_dim);
    const bool mamba = g_.kind == RecurrentKind::kMamba2;  // x, B, C; else q, k, v
    out.insert(mamba ? out.end() : out.begin(), k.begin(), k.end());
    out.insert(mamba ? out.end() : out.begin(), q.begin(), q.end());
    return out;
  }
  Row Convolved(const std::vector<Row>& inputs) const {
    Row out;
    const int channels = g_.conv_channels();
    for (int c = 0; c < channels; ++c) {
      double sum = shape_.conv_bias ? At(conv_bias_, c) : 0;
      for (int tap = 0; tap < g_.conv_width; ++tap) {
        const size_t row = inputs.size() - static_cast<size_t>(g_.conv_width - tap);
        sum += At(conv_, tap * channels + c) * inputs[row][static_cast<size_t>(c)];
      }
      out.push_back(g_.kind == RecurrentKind::kShortConv ? sum : Silu(sum));
    }
    return out;
  }
  Row Gated(const Row& row, Row y) const {
    const Row c = Gather(row, places_.z, g_.value_dim);
    for (size_t i = 0; i < y.size(); ++i) y[i] *= c[i];
    return y;
  }

  Row Advanced(const Row& row, const Row& mixed, Row* state) const {
    const bool mamba = g_.kind == RecurrentKind::kMamba2;
    const int keys = g_.key_heads * g_.key_dim;
    const int q_first = mamba ? g_.inner() + keys : 0;
    const int k_first = mamba ? g_.inner() : keys, v_first = mamba ? 0 : 2 * keys;
    const Row z = Gather(row, places_.z, places_.share * g_.value_dim);
    const Row a = Gather(row, places_.a, places_.share);
    const Row b = mamba ? Row(a.size()) : Gather(row, places_.b, places_.share);
    Row out;
    for (int h = 0; h < g_.heads; ++h) {
      const int key_head = h / places_.share * g_.key_dim;
      Row q(mixed.begin() + q_first + key_head, mixed.begin() + q_first + key_head + g_.key_dim);
      Row k(mixed.begin() + k_first + key_head, mixed.begin() + k_first + key_head + g_.key_dim);
      const Row v(mixed.begin() + v_first + h * g_.value_dim,
                  mixed.begin() + v_first + (h + 1) * g_.value_dim);
      const auto head = static_cast<size_t>(h);
      double dt = std::log1p(std::exp(a[head] + At(dt_bias_, h)));
      if (mamba) {
        dt = std::clamp(dt, static_cast<double>(shape_.min_dt), static_cast<double>(shape_.max_dt));
      } else {
        q = Unit(q, 0, g_.key_dim, false, 1e-6);
        k = Unit(k, 0, g_.key_dim, false, 1e-6);
        for (double& value : q) value /= std::sqrt(g_.key_dim);
      }
      const double write = mamba ? dt : 1 / (1 + std::exp(-b[head]));
      double* const s = state->data() + h * g_.key_dim * g_.value_dim;
      Row y;
      for (int c = 0; c < g_.value_dim; ++c) {
        const auto column = static_cast<size_t>(c);
        double held = 0, read = 0;
        for (int i = 0; i < g_.key_dim; ++i) {
          s[i * g_.value_dim + c] *= std::exp(dt * At(decay_, h));
          held += s[i * g_.value_dim + c] * k[static_cast<size_t>(i)];
        }
        for (int i = 0; i < g_.key_dim; ++i) {
          s[i * g_.value_dim + c] +=
              k[static_cast<size_t>(i)] * write * (v[column] - (mamba ? 0 : held));
          read += s[i * g_.value_dim + c] * q[static_cast<size_t>(i)];
        }
        y.push_back(mamba ? read + At(skip_, h) * v[column] : read);
      }
      if (!mamba) {
        y = Unit(y, 0, g_.value_dim, true, static_cast<double>(kEps));
        for (int c = 0; c < g_.value_dim; ++c) y[static_cast<size_t>(c)] *= At(out_norm_, c);
      }
      for (int c = 0; c < g_.value_dim; ++c) {
        y[static_cast<size_t>(c)] *= Silu(z[static_cast<size_t>(h * g_.value_dim + c)]);
      }
      out.insert(out.end(), y.begin(), y.end());
    }
    if (mamba) {
      out = Unit(out, 0, g_.inner(), true, static_cast<double>(kEps));
      for (int i = 0; i < g_.inner(); ++i) out[static_cast<size_t>(i)] *= At(out_norm_, i);
    }
    return out;
  }

  // ---- the op ----

  void RunStep(const std::vector<Part>& step, std::vector<int>* done,
               std::vector<std::vector<float>>* out) {
    std::vector<SequenceRows> sequences;
    std::vector<float> x;
    int rows = 0;
    for (const Part& part : step) {
      int& first = (*done)[static_cast<size_t>(part.sequence)];
      sequences.push_back({rows, part.rows, first, nullptr, SlotOf(part.sequence)});
      for (int r = 0; r < part.rows; ++r, ++first) {
        const auto input = Input(part.sequence, first);
        x.insert(x.end(), input.begin(), input.end());
      }
      rows += part.rows;
    }
    const Bytes scratch(ops_.workspace_bytes({.max_rows = rows,
                                              .hidden = shape_.hidden,
                                              .max_cols = shape_.hidden,
                                              .ffn = 16,
                                              .recurrent_outputs = places_.outputs + places_.gates,
                                              .max_context = 16,
                                              .max_sequences = kSlots,
                                              .threads = pool_.size()}));
    const bool mamba = g_.kind == RecurrentKind::kMamba2;
    std::vector<float> y(static_cast<size_t>(rows * g_.inner()), NAN);
    ops_.recurrent({.x = x.data(),
                    .norm = {.kind = shape_.layer_norm ? NormKind::kLayer : NormKind::kRms,
                             .weight = norm_.data(),
                             .bias = shape_.layer_norm ? norm_bias_.data() : nullptr,
                             .eps = kEps},
                    .input = &input_,
                    .geometry = g_,
                    .q = places_.q,
                    .k = places_.k,
                    .v = places_.v,
                    .z = places_.z,
                    .b = places_.b,
                    .a = places_.a,
                    .conv_weight = conv_.data(),
                    .conv_bias = shape_.conv_bias ? conv_bias_.data() : nullptr,
                    .decay = decay_.data(),
                    .dt_bias = dt_bias_.data(),
                    .skip = mamba ? skip_.data() : nullptr,
                    .min_dt = shape_.min_dt,
                    .max_dt = shape_.max_dt,
                    .out_norm = {.weight = out_norm_.data(), .eps = kEps},
                    .step = {.num_rows = rows, .sequences = sequences},
                    .states = reinterpret_cast<float*>(states_.data()),
                    .out = y.data()},
                   {scratch.data(), scratch.size()}, pool_);
    for (size_t i = 0; i < step.size(); ++i) {
      auto& to = (*out)[static_cast<size_t>(step[i].sequence)];
      const auto from = y.begin() + sequences[i].first_row * g_.inner();
      to.insert(to.end(), from, from + step[i].rows * g_.inner());
    }
  }

  static constexpr float kEps = 1e-5f;

  const Shape shape_;
  const RecurrentGeometry g_;
  const Places places_;
  const BlockOps& ops_;
  ThreadPool pool_;
  std::vector<float> weights_, gate_weights_, bias_, norm_, norm_bias_, conv_, conv_bias_, decay_,
      dt_bias_, skip_, out_norm_;
  MatrixGroup input_;
  std::vector<std::unique_ptr<Matrix>> packed_;
  Bytes states_;  // of each slot
  int nan_sequence_ = -1, nan_position_ = -1;
};

// Rows of a vector's count of lanes and others, heads alone and in groups, every width.
std::vector<Shape> Shapes() {
  std::vector<Shape> shapes = {
      {.geometry = ShortConv(64, 3)},
      {.geometry = ShortConv(4, 2), .conv_bias = true},
      {.geometry = ShortConv(301, 8), .conv_bias = true, .layer_norm = true},
      {.geometry = Mamba2(8, 1, 16, 16, 4), .conv_bias = true},
      {.geometry = Mamba2(6, 2, 128, 64, 4), .interleaved = true, .own_gates = true},
      {.geometry = Mamba2(4, 4, 256, 20, 2), .min_dt = 0.5f, .max_dt = 0.9f},
      {.geometry = GatedDelta(4, 2, 16, 16, 4), .interleaved = true, .own_gates = true},
      {.geometry = GatedDelta(4, 2, 128, 128, 4), .conv_bias = true, .layer_norm = true},
      {.geometry = GatedDelta(3, 3, 64, 48, 3), .interleaved = true, .decay = -1e4f},
  };
  int width = 2;
  for (const int key_dim : {4, 7, 16, 20, 33}) {
    for (const int value_dim : {4, 5, 16, 24, 40}) {
      const bool odd = width % 2 != 0;
      shapes.push_back({.geometry = Mamba2(6, odd ? 2 : 3, key_dim, value_dim, width)});
      shapes.push_back({.geometry = GatedDelta(6, odd ? 3 : 1, key_dim, value_dim, width),
                        .interleaved = odd,
                        .own_gates = width % 3 == 0});
      width = width == 8 ? 2 : width + 1;
    }
  }
  return shapes;
}

class RecurrentTiers : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!Supported(GetParam())) GTEST_SKIP() << "this machine lacks " << Name(GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Tiers, RecurrentTiers, testing::ValuesIn(kIsas),
                         [](const auto& info) { return std::string(Name(info.param)); });

// Of an output, relative to the largest: 4 times what the worst of all shapes and tiers was.
constexpr double kTolerance = 2e-5;

void ExpectClose(const std::vector<float>& got, const Row& want, double tolerance,
                 const Shape& shape) {
  ASSERT_EQ(got.size(), want.size()) << NameOf(shape);
  double largest = 0, worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::abs(want[i]));
    const double d = std::abs(static_cast<double>(got[i]) - want[i]);
    worst = d <= worst ? worst : d;  // a NaN stays
  }
  EXPECT_LE(worst, largest * tolerance) << NameOf(shape);
}

TEST_P(RecurrentTiers, AreTheirDefinitions) {
  for (const Shape& shape : Shapes()) {
    Layer layer(GetParam(), shape, 2);
    const auto got = layer.Run({{{0, 23}, {1, 2}}, {{1, 4}, {0, 17}}, {{0, 1}, {1, 1}}});
    ExpectClose(got[0], layer.Want(0, 41), kTolerance, shape);
    ExpectClose(got[1], layer.Want(1, 7), kTolerance, shape);
  }
}

TEST_P(RecurrentTiers, ErrorsDoNotGrow) {
  for (const RecurrentGeometry& geometry : {Mamba2(2, 1, 16, 16, 4), GatedDelta(2, 1, 16, 16, 4)}) {
    const Shape shape{.geometry = geometry, .decay = -0.01f};
    Layer layer(GetParam(), shape, 1);
    ExpectClose(layer.Run({{{0, 900}}})[0], layer.Want(0, 900), 2 * kTolerance, shape);
  }
}

// Design rule 1. Two are large enough for threads to share the work.
TEST_P(RecurrentTiers, TheAnswerDoesNotDependOnTheBatch) {
  constexpr int kRows = 37;  // more than two runs of a head
  for (const Shape& shape : {Shape{.geometry = ShortConv(600, 3)},
                             Shape{.geometry = Mamba2(6, 2, 20, 20, 4), .own_gates = true},
                             Shape{.geometry = Mamba2(8, 1, 128, 64, 4)},
                             Shape{.geometry = GatedDelta(4, 2, 17, 24, 8), .interleaved = true},
                             Shape{.geometry = GatedDelta(8, 4, 128, 128, 4)}}) {
    const auto alone = Layer(GetParam(), shape, 1).Run({{{0, kRows}}})[0];
    Layer four(GetParam(), shape, 4);
    EXPECT_TRUE(four.Run({{{0, kRows}}})[0] == alone) << "threads, " << NameOf(shape);
    const int every = shape.geometry.key_dim < 100 ? 1 : 5;  // the large ones take their time
    for (int cut = 1; cut < kRows; cut += every) {
      EXPECT_TRUE(four.Run({{{0, cut}}, {{0, kRows - cut}}})[0] == alone)
          << "cut at " << cut << ", " << NameOf(shape);
    }
    const Steps single(kRows, {{0, 1}});
    EXPECT_TRUE(four.Run(single)[0] == alone) << "row by row, " << NameOf(shape);
    const auto batched =
        four.Run({{{1, 7}, {0, 13}, {2, 1}}, {{0, 20}, {1, 9}}, {{2, 30}, {0, 4}, {3, 1}}});
    EXPECT_TRUE(batched[0] == alone) << "batched, " << NameOf(shape);
    EXPECT_TRUE(batched[2] == Layer(GetParam(), shape, 3).Run({{{2, 31}}})[2]) << NameOf(shape);
  }
}

bool AllNan(const std::vector<float>& values, size_t first) {
  return std::all_of(values.begin() + static_cast<int64_t>(first), values.end(),
                     [](float value) { return std::isnan(value); });
}

TEST_P(RecurrentTiers, ANanStaysInItsSequence) {
  for (const Shape& shape :
       {Shape{.geometry = ShortConv(40, 4)}, Shape{.geometry = Mamba2(4, 2, 20, 20, 4)},
        Shape{.geometry = GatedDelta(4, 2, 20, 20, 4)}}) {
    const Steps steps = {{{0, 5}, {1, 6}, {2, 1}}, {{2, 1}, {1, 3}, {0, 3}}};
    const auto want = Layer(GetParam(), shape, 2).Run(steps);
    Layer layer(GetParam(), shape, 2);
    layer.SetNan(1, 4);
    auto got = layer.Run(steps);
    EXPECT_TRUE(got[0] == want[0] && got[2] == want[2]) << NameOf(shape);
    const auto before = static_cast<size_t>(4 * shape.geometry.inner());
    EXPECT_TRUE(
        std::equal(got[1].begin(), got[1].begin() + static_cast<int64_t>(before), want[1].begin()));
    // Forever, but what only a convolution remembers.
    if (shape.geometry.kind == RecurrentKind::kShortConv) {
      const size_t after = before + static_cast<size_t>(4 * shape.geometry.inner());
      EXPECT_TRUE(std::equal(got[1].begin() + static_cast<int64_t>(after), got[1].end(),
                             want[1].begin() + static_cast<int64_t>(after)));
      got[1].resize(after);
    }
    EXPECT_TRUE(AllNan(got[1], before)) << NameOf(shape);

    // The next sequence of the slot knows nothing of it.
    constexpr int kNext = 1 + Layer::kSlots;
    EXPECT_TRUE(layer.Run({{{kNext, 9}}})[kNext] ==
                Layer(GetParam(), shape, 1).Run({{{kNext, 9}}})[kNext])
        << NameOf(shape);
  }
}

TEST_P(RecurrentTiers, WriteTheSlotsOfTheStepOnly) {
  for (const Shape& shape : Shapes()) {
    Layer layer(GetParam(), shape, 2);
    layer.Run({{{2, 3}, {5, 1}}, {{2, 1}}});
    for (int slot = 0; slot < Layer::kSlots; ++slot) {
      const bool used = slot == Layer::SlotOf(2) || slot == Layer::SlotOf(5);
      const float* const state = layer.State(slot);
      const auto count = shape.geometry.state_floats();
      const auto nans = std::count_if(state, state + count, [](float x) { return std::isnan(x); });
      EXPECT_TRUE(used ? nans < count : nans == count) << slot << ", " << NameOf(shape);
    }
  }
}

}  // namespace
}  // namespace vivace::kernels
