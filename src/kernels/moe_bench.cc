// One layer of experts as Qwen3-30B-A3B has them (hidden 2048, ffn 768, 8 of a row), with half as
// many experts: GB/s of the weights that are read, GMAC/s of the products.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "kernels/block_ops.h"
#include "kernels/linear_fixture.h"

namespace vivace::kernels {
namespace {

using fixture::Bytes;
using fixture::MakeRows;
using fixture::MakeWeights;
using fixture::Matrix;

constexpr int kHidden = 2048, kFfn = 768, kExperts = 64, kTopK = 8;

// The experts share the bytes they are packed from, not the packed ones.
class Layer {
 public:
  Layer(const LinearOps& linear, DType dtype) {
    const auto wide = MakeWeights(dtype, kFfn, kHidden, 1);
    const auto tall = MakeWeights(dtype, kHidden, kFfn, 2);
    const auto pack = [&](DType type, int rows, int cols, const std::vector<std::byte>& data) {
      packed_.push_back(std::make_unique<Matrix>(linear, type, rows, cols, data));
      return packed_.back()->get();
    };
    for (FeedForward& expert : experts_) {
      expert.gate_up.num_parts = 2;
      expert.gate_up.parts[0] = pack(dtype, kFfn, kHidden, wide);
      expert.gate_up.parts[1] = pack(dtype, kFfn, kHidden, wide);
      expert.down.num_parts = 1;
      expert.down.parts[0] = pack(dtype, kHidden, kFfn, tall);
    }
    router_.weight.num_parts = 1;
    router_.weight.parts[0] =
        pack(DType::kF32, kExperts, kHidden, MakeWeights(DType::kF32, kExperts, kHidden, 3));
    router_.top_k = kTopK;
    expert_bytes_ =
        2 * linear.packed_bytes(dtype, kFfn, kHidden) + linear.packed_bytes(dtype, kHidden, kFfn);
  }
  const Router& router() const { return router_; }
  std::span<const FeedForward> experts() const { return experts_; }
  size_t expert_bytes() const { return expert_bytes_; }

 private:
  std::vector<std::unique_ptr<Matrix>> packed_;
  std::vector<FeedForward> experts_ = std::vector<FeedForward>(kExperts);
  Router router_;
  size_t expert_bytes_ = 0;
};

void Run(benchmark::State& state, Isa isa, DType dtype, int rows, int threads) {
  const BlockOps& ops = GetBlockOps(isa);
  const Layer layer(GetLinearOps(isa), dtype);
  ThreadPool pool(threads);
  const auto x = MakeRows(rows, kHidden, 4), norm = std::vector<float>(kHidden, 1.0f);
  std::vector<float> out(x.size());
  const Bytes workspace(ops.workspace_bytes({.max_rows = rows,
                                             .hidden = kHidden,
                                             .max_cols = kHidden,
                                             .ffn = kFfn,
                                             .experts = kExperts,
                                             .top_k = kTopK,
                                             .max_context = 16,
                                             .max_sequences = 1,
                                             .threads = threads}));
  for (auto _ : state) {
    ops.moe({.x = x.data(),
             .norm = {.weight = norm.data(), .eps = 1e-5f},
             .router = &layer.router(),
             .experts = layer.experts(),
             .activation = {},
             .num_rows = rows,
             .out = out.data()},
            {workspace.data(), workspace.size()}, pool);
  }
  const auto times = static_cast<double>(state.iterations());
  if (rows == 1) {
    state.counters["GB/s"] =
        benchmark::Counter(times * kTopK * static_cast<double>(layer.expert_bytes()) / 1e9,
                           benchmark::Counter::kIsRate);
  }
  state.counters["GMAC/s"] = benchmark::Counter(times * rows * kTopK * 3 * kHidden * kFfn / 1e9,
                                                benchmark::Counter::kIsRate);
}

int Register() {
  for (const Isa isa : kIsas) {
    if (!Supported(isa) || isa == Isa::kReference) continue;
    for (const DType dtype : {DType::kQ4_0, DType::kQ8_0}) {
      for (const int rows : {1, 8, 64, 512}) {
        for (const int threads : {1, 2}) {
          const std::string name = "moe/" + std::string(Name(isa)) + "/" +
                                   std::string(Info(dtype).name) + "/rows" + std::to_string(rows) +
                                   "/t" + std::to_string(threads);
          benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
            Run(state, isa, dtype, rows, threads);
          })->UseRealTime();
        }
      }
    }
  }
  return 0;
}
[[maybe_unused]] const int kRegistered = Register();

}  // namespace
}  // namespace vivace::kernels
