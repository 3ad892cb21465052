// Speed of the linear ops on SmolLM2-135M's shapes and a larger one:
//   ninja kernels_bench && src/kernels/kernels_bench --benchmark_repetitions=5
// Counters: GMAC is multiply-adds per second of the op, the preparing of the rows included; GB is
// packed weights read per second. `peak` is what vpdpbusd alone does from registers: take the best
// of several, run beside the others, for a fraction.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "kernels/linear.h"

namespace vivace::kernels {
namespace {

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

Buffer Allocate(size_t bytes) {
  return Buffer(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
}

struct Shape {
  const char* name;
  DType dtype;
  int parts, rows, cols;  // rows of one part
  Epilogue epilogue;
};

constexpr Shape kShapes[] = {
    {"qkv", DType::kQ4_1, 1, 960, 576, Epilogue::kStore},
    {"o", DType::kQ4_1, 1, 576, 576, Epilogue::kAdd},
    {"gate_up", DType::kQ4_1, 2, 1536, 576, Epilogue::kSiluMul},
    {"down", DType::kQ4_1, 1, 576, 1536, Epilogue::kAdd},
    {"lm_head", DType::kQ8_0, 1, 49152, 576, Epilogue::kStore},
    {"big_q4_0", DType::kQ4_0, 1, 4096, 4096, Epilogue::kStore},
    {"big_q4_1", DType::kQ4_1, 1, 4096, 4096, Epilogue::kStore},
    {"big_q8_0", DType::kQ8_0, 1, 4096, 4096, Epilogue::kStore},
    {"big_q6_k", DType::kQ6_K, 1, 4096, 4096, Epilogue::kStore},
    {"big_f16", DType::kF16, 1, 4096, 4096, Epilogue::kStore},
    {"big_f32", DType::kF32, 1, 4096, 4096, Epilogue::kStore},
};

// Enough copies of a matrix that they do not all stay in a core's own cache, as in a model.
constexpr size_t kModelBytes = 96 << 20;

void Run(benchmark::State& state, Isa isa, const Shape& shape, int rows, int threads) {
  const LinearOps& ops = GetLinearOps(isa);
  const auto source_bytes = static_cast<size_t>(RowBytes(Info(shape.dtype), shape.cols)) *
                            static_cast<size_t>(shape.rows);
  std::vector<std::byte> source(source_bytes);
  // Random nibbles over small scales, so that no value is denormal, infinite or NaN.
  for (auto& byte : source) byte = static_cast<std::byte>(std::rand() & 0x2f);
  const size_t part_bytes = ops.packed_bytes(shape.dtype, shape.rows, shape.cols);
  const size_t group_bytes = part_bytes * static_cast<size_t>(shape.parts);
  const size_t copies = rows > 64 ? 1 : std::max<size_t>(1, kModelBytes / group_bytes);
  std::vector<Buffer> weights;
  std::vector<MatrixGroup> groups(copies);
  for (auto& group : groups) {
    group.num_parts = shape.parts;
    for (int p = 0; p < shape.parts; ++p) {
      weights.push_back(Allocate(part_bytes));
      ops.pack({shape.dtype, shape.rows, shape.cols, source.data()}, 0,
               (shape.rows + kTileRows - 1) / kTileRows, weights.back().get());
      group.parts[p] = {shape.dtype, shape.rows, shape.cols, weights.back().get()};
    }
  }
  ThreadPool pool(threads);
  std::vector<float> x(static_cast<size_t>(rows * shape.cols)),
      norm(static_cast<size_t>(shape.cols), 1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::rand() % 255 - 127) / 64.0f;
  std::vector<float> out(static_cast<size_t>(rows) * static_cast<size_t>(shape.rows));
  const Buffer buffer = Allocate(ops.input_bytes(rows, shape.cols, threads));
  const bool normalise = shape.epilogue != Epilogue::kAdd;
  const InputRows input{.x = x.data(),
                        .stride = shape.cols,
                        .rows = rows,
                        .cols = shape.cols,
                        .norm = {normalise ? norm.data() : nullptr, 1e-5f}};
  size_t next = 0;
  for (auto _ : state) {
    const MatrixGroup& group = groups[next++ % copies];
    const PreparedInput prepared = ops.prepare(input, group, buffer.get(), pool);
    ops.multiply(group, prepared, shape.epilogue, out.data(), shape.rows, pool);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  const double macs = 1.0 * rows * shape.rows * shape.cols * shape.parts;
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["GMAC"] = benchmark::Counter(macs / 1e9, rate);
  state.counters["GB"] = benchmark::Counter(static_cast<double>(group_bytes) / 1e9, rate);
}

void EmptyLoop(benchmark::State& state, int threads) {
  ThreadPool pool(threads);
  for (auto _ : state) pool.ForEach(64, [](int64_t i) { benchmark::DoNotOptimize(i); });
}

#if defined(__x86_64__)
// Twelve independent chains cover the latency. In assembly, because a compiler leaves out a chain
// whose end nobody reads, and the rate would count it all the same.
void DpbusdChains(int64_t steps) {
#define VIVACE_CHAIN(n) "vpdpbusd %%zmm12, %%zmm13, %%zmm" #n "\n\t"
  for (int64_t i = 0; i < steps; ++i) {
    __asm__ volatile(VIVACE_CHAIN(0) VIVACE_CHAIN(1) VIVACE_CHAIN(2) VIVACE_CHAIN(3) VIVACE_CHAIN(4)
                         VIVACE_CHAIN(5) VIVACE_CHAIN(6) VIVACE_CHAIN(7) VIVACE_CHAIN(8)
                             VIVACE_CHAIN(9) VIVACE_CHAIN(10) VIVACE_CHAIN(11)::
                                 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
                                   "xmm8", "xmm9", "xmm10", "xmm11");
  }
  __asm__ volatile("vzeroupper");
#undef VIVACE_CHAIN
}

void Peak(benchmark::State& state, int threads) {
  constexpr int64_t kSteps = 100'000;
  ThreadPool pool(threads);
  for (auto _ : state) pool.Run([](int) { DpbusdChains(kSteps); });
  state.counters["GMAC"] = benchmark::Counter(static_cast<double>(threads * kSteps * 12 * 64) / 1e9,
                                              benchmark::Counter::kIsIterationInvariantRate);
}
#endif

int Register() {
  for (int threads : {1, 2}) {
#if defined(__x86_64__)
    if (Supported(Isa::kAvx512)) {
      const std::string name = "peak/t" + std::to_string(threads);
      benchmark::RegisterBenchmark(name.c_str(), Peak, threads)->UseRealTime();
    }
#endif
    benchmark::RegisterBenchmark(("pool/t" + std::to_string(threads)).c_str(), EmptyLoop, threads);
    for (Isa isa : {Isa::kReference, Isa::kAvx2, Isa::kAvx512}) {
      if (!Supported(isa)) continue;
      for (const Shape& shape : kShapes) {
        for (int rows : {1, 2, 4, 8, 12, 16, 32, 128, 512}) {
          if (isa == Isa::kReference && rows > 8) continue;
          const std::string name = std::string(Name(isa)) + "/" + shape.name + "/m" +
                                   std::to_string(rows) + "/t" + std::to_string(threads);
          benchmark::RegisterBenchmark(name.c_str(), Run, isa, shape, rows, threads)->UseRealTime();
        }
      }
    }
  }
  return 0;
}

[[maybe_unused]] const int kRegistered = Register();

}  // namespace
}  // namespace vivace::kernels
