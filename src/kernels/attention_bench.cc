// Attention and its preparation on SmolLM2's shape (9 heads, 3 kv heads of 64), one layer.
// ninja kernels_bench && src/kernels/kernels_bench --benchmark_filter=Attention
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/block_ops.h"

namespace vivace::kernels {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};

template <typename T>
std::unique_ptr<T, Free> Zeroed(size_t count) {
  const size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
  std::unique_ptr<T, Free> data(static_cast<T*>(std::aligned_alloc(64, bytes)));
  std::memset(data.get(), 0, bytes);
  return data;
}

constexpr int32_t kHeads = 9, kKvHeads = 3, kDim = 64, kBlock = 16;

// `sequences` of `rows` new positions after `past`, each with blocks of its own.
// Arguments: tier, threads, sequences, rows, past.
void Attention(benchmark::State& state) {
  const auto isa = static_cast<Isa>(state.range(0));
  if (!Supported(isa)) return state.SkipWithError("this machine lacks the tier");
  const BlockOps& ops = GetBlockOps(isa);
  ThreadPool pool(static_cast<int>(state.range(1)));
  const auto count = static_cast<int32_t>(state.range(2)),
             rows = static_cast<int32_t>(state.range(3));
  const auto past = static_cast<int32_t>(state.range(4));
  const int32_t blocks = (past + rows + kBlock - 1) / kBlock;
  const KvGeometry geometry{ops.default_kv_dtype, kBlock, kKvHeads, kDim};
  const size_t block_bytes = ops.kv_block_bytes(geometry);
  const auto cache =
      Zeroed<std::byte>(block_bytes * static_cast<size_t>(blocks) * static_cast<size_t>(count));
  std::vector<BlockId> table;
  std::vector<SequenceRows> sequences;
  for (int32_t i = 0; i < blocks * count; ++i) table.emplace_back(i);
  for (int32_t i = 0; i < count; ++i)
    sequences.push_back({i * rows, rows, past, table.data() + i * blocks});
  const auto q = Zeroed<float>(static_cast<size_t>(count * rows * kHeads * kDim));
  const auto out = Zeroed<float>(static_cast<size_t>(count * rows * kHeads * kDim));
  const size_t bytes = ops.workspace_bytes({.max_rows = count * rows,
                                            .hidden = kHeads * kDim,
                                            .max_cols = kHeads * kDim,
                                            .qkv_rows = (kHeads + 2 * kKvHeads) * kDim,
                                            .ffn = 16,
                                            .heads = kHeads,
                                            .head_dim = kDim,
                                            .max_context = past + rows,
                                            .max_sequences = count,
                                            .threads = pool.size()});
  const auto scratch = Zeroed<std::byte>(bytes);
  for (auto _ : state) {
    ops.attention({.q = q.get(),
                   .heads = kHeads,
                   .scale = 0.125f,
                   .step = {count * rows, sequences},
                   .kv = {geometry, cache.get(), blocks * count},
                   .out = out.get()},
                  {scratch.get(), bytes}, pool);
  }
  const double positions =
      count * (double{1} * past * rows + 0.5 * rows * (rows + 1));  // seen by the rows
  state.counters["GMAC/s"] = benchmark::Counter(positions * kHeads * kDim * 2 * 1e-9,
                                                benchmark::Counter::kIsIterationInvariantRate);
  state.counters["cache GB/s"] =
      benchmark::Counter(static_cast<double>(count) * (past + rows) * kKvHeads * kDim * 4 * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate);
}

void Cases(benchmark::internal::Benchmark* bench) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    for (const int threads : {1, 2}) {
      const auto tier = static_cast<int64_t>(isa);
      bench->Args({tier, threads, 1, 1, 4095});  // one stream, long context
      bench->Args({tier, threads, 1, 1, 100});
      bench->Args({tier, threads, 32, 1, 1023});   // a batch
      bench->Args({tier, threads, 1, 512, 0});     // a prompt
      bench->Args({tier, threads, 1, 256, 4096});  // a chunk of a long one
    }
  }
}
BENCHMARK(Attention)->Apply(Cases)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace vivace::kernels
