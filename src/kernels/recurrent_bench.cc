// Recurrent layers at the sizes of models, without their products (linear_bench.cc has those): time
// of a layer's step, GB/s of the states that are read and written, and 10^9 values of S a second.
// Steps go round over layers whose states are more than a cache holds.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "kernels/linear_fixture.h"
#include "kernels/recurrent.h"

namespace vivace::kernels {
namespace {

using fixture::Bytes;
using fixture::MakeRows;

struct Model {
  const char* name;
  RecurrentGeometry geometry;
};
constexpr Model kModels[] = {
    {"qwen3_next", {RecurrentKind::kGatedDelta, 32, 16, 128, 128, 4}},
    {"granite4", {RecurrentKind::kMamba2, 48, 1, 128, 64, 4}},
    {"lfm2", {RecurrentKind::kShortConv, 1, 1, 0, 2048, 3}},
};

struct Step {
  const char* name;
  int sequences, rows;
};
constexpr Step kSteps[] = {{"decode1", 1, 1}, {"decode8", 8, 1}, {"prompt512", 1, 512}};

using Clock = std::chrono::steady_clock;
double copy_seconds = 0;  // of the running benchmark

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// In place of products, rows as they are given: the "weights" of the group.
LinearOps GivenRows(Isa isa) {
  LinearOps linear = GetLinearOps(isa);
  linear.prepare = [](const InputRows& input, const MatrixGroup&, std::byte*, ThreadPool&) {
    return PreparedInput{.rows = input.rows, .cols = input.cols};
  };
  linear.multiply = [](const MatrixGroup& group, const PreparedInput& input, Epilogue, float* out,
                       int64_t stride, ThreadPool&) {
    const auto start = Clock::now();
    std::memcpy(out, group.parts[0].data, static_cast<size_t>(input.rows * stride) * sizeof(float));
    copy_seconds += Since(start);
  };
  return linear;
}

// Projected rows as Qwen3-Next has them: q, k, v, z of a key head together, b and a at the end.
struct Columns {
  explicit Columns(const RecurrentGeometry& g) {
    const int32_t values = g.inner() / g.key_heads, share = g.heads / g.key_heads;
    const bool three = g.kind == RecurrentKind::kShortConv;
    const int32_t of_head = 2 * g.key_dim + (three ? 3 : 2) * values;
    const auto place = [&](HeadColumns* columns, int32_t count) {
      *columns = {outputs, of_head};
      outputs += count;
    };
    place(&q, g.key_dim);
    place(&k, g.key_dim);
    place(&v, values);
    place(&z, values);
    if (three) place(&b, values);
    outputs = g.key_heads * of_head;
    if (three) return;
    b = {outputs, share};
    a = {outputs + g.heads, share};
    outputs += 2 * g.heads;
  }
  HeadColumns q, k, v, z, b, a;
  int32_t outputs = 0;
};

void Run(benchmark::State& state, Isa isa, const RecurrentKernels& kernels, const Model& model,
         const Step& step, int threads) {
  constexpr int64_t kStateBytes = int64_t{256} << 20;
  const RecurrentGeometry& g = model.geometry;
  const LinearOps linear = GivenRows(isa);
  const Columns columns(g);
  ThreadPool pool(threads);
  const int rows = step.sequences * step.rows;
  const auto given = MakeRows(rows, columns.outputs, 1);
  MatrixGroup input;
  input.num_parts = 1;
  input.parts[0] = {DType::kF32, columns.outputs, 16,
                    reinterpret_cast<const std::byte*>(given.data())};
  std::vector<SequenceRows> sequences;
  for (int i = 0; i < step.sequences; ++i) {
    sequences.push_back({i * step.rows, step.rows, 1, nullptr, i});
  }
  const auto conv = MakeRows(g.conv_width, g.conv_channels(), 2), bias = MakeRows(1, g.heads, 3);
  const std::vector<float> decay(static_cast<size_t>(g.heads), -0.2f),
      norm(static_cast<size_t>(g.inner()), 1.0f);
  const int64_t layer_floats = step.sequences * g.state_floats();
  const int64_t layers = std::max<int64_t>(1, kStateBytes / 4 / layer_floats);
  const Bytes states(static_cast<size_t>(layers * layer_floats) * sizeof(float));
  std::memset(states.data(), 0, states.size());
  std::vector<float> out(static_cast<size_t>(rows * g.inner()));
  const Bytes scratch(RecurrentWorkspaceBytes(
      linear,
      {.max_rows = rows, .hidden = 16, .recurrent_outputs = columns.outputs, .threads = threads}));
  int64_t layer = 0;
  for (auto _ : state) {
    copy_seconds = 0;
    const auto start = Clock::now();
    RunRecurrent(linear, kernels,
                 {.x = given.data(),
                  .norm = {},
                  .input = &input,
                  .geometry = g,
                  .q = columns.q,
                  .k = columns.k,
                  .v = columns.v,
                  .z = columns.z,
                  .b = columns.b,
                  .a = columns.a,
                  .conv_weight = conv.data(),
                  .decay = decay.data(),
                  .dt_bias = bias.data(),
                  .out_norm = {.weight = norm.data(), .eps = 1e-5f},
                  .step = {.num_rows = rows, .sequences = sequences},
                  .states = reinterpret_cast<float*>(states.data()) + layer * layer_floats,
                  .out = out.data()},
                 {scratch.data(), scratch.size()}, pool);
    state.SetIterationTime(Since(start) - copy_seconds);
    layer = (layer + 1) % layers;
  }
  const auto times = static_cast<double>(state.iterations());
  const auto rate = [](double count) {
    return benchmark::Counter(count / 1e9, benchmark::Counter::kIsRate);
  };
  state.counters["GB/s"] = rate(times * 2 * 4 * static_cast<double>(layer_floats));
  state.counters["Gvalues/s"] = rate(times * rows * g.heads * static_cast<double>(g.head_floats()));
}

[[maybe_unused]] const bool kAdded = [] {
  const std::pair<Isa, const RecurrentKernels*> tiers[] = {
      {Isa::kAvx2, &avx2::kRecurrentKernels}, {Isa::kAvx512, &avx512::kRecurrentKernels}};
  for (const auto& [isa, kernels] : tiers) {
    if (!Supported(isa)) continue;
    for (const Model& model : kModels) {
      for (const Step& step : kSteps) {
        for (const int threads : {1, 2}) {
          const std::string name = "recurrent/" + std::string(Name(isa)) + "/" + model.name + "/" +
                                   step.name + "/t" + std::to_string(threads);
          benchmark::RegisterBenchmark(
              name.c_str(),
              [isa = isa, kernels = kernels, &model, &step, threads](benchmark::State& state) {
                Run(state, isa, *kernels, model, step, threads);
              })
              ->UseManualTime()
              ->Unit(benchmark::kMicrosecond);
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace vivace::kernels
