// Speed of the linear ops on SmolLM2-135M's shapes, every weight format:
//   ninja kernels_bench && src/kernels/kernels_bench --benchmark_filter='avx512/.*/q4_1/m512/t1'
// An iteration prepares the rows and multiplies; now and then a burst of the tier's dot product
// from registers runs, so that both see the same clock and the same neighbours. Counters:
//   GMAC     multiply-adds per second, by the median time
//   GB       packed weights read per second, likewise; what limits few rows
//   of_peak  the fastest iteration over the fastest burst: vpdpbusd (int8 weights), vdpbf16ps or
//            fp32 FMA on all threads. On a busy machine only with one thread.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
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

// In huge pages where the system gives them, as the engine's weights are.
Buffer Allocate(size_t bytes) {
  constexpr size_t kHugePage = 2 << 20;
  const size_t align = bytes < kHugePage ? 64 : kHugePage;
  const size_t size = (bytes + align - 1) / align * align;
  Buffer buffer(static_cast<std::byte*>(std::aligned_alloc(align, size)));
  madvise(buffer.get(), size, MADV_HUGEPAGE);
  return buffer;
}

struct Shape {
  const char* name;
  int parts, rows, cols;  // rows of one part
  Epilogue epilogue;
};
constexpr Shape kShapes[] = {
    {"qkv", 1, 960, 576, Epilogue::kStore},        {"o", 1, 576, 576, Epilogue::kAdd},
    {"gate_up", 2, 1536, 576, Epilogue::kSiluMul}, {"down", 1, 576, 1536, Epilogue::kAdd},
    {"lm_head", 1, 49152, 576, Epilogue::kStore},
};

constexpr DType kFormats[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ4_0,
                              DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
                              DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};
constexpr int kRows[] = {1, 2, 4, 8, 12, 32, 128, 512, 2048};

// ---- the peaks ----------------------------------------------------------------------------------

struct Peak {
  void (*burst)(int64_t steps);
  int macs_per_step;
};

#if defined(__x86_64__)
// Twelve independent chains cover the latency. In assembly, because a compiler leaves out a chain
// whose end nobody reads, and the rate would count it all the same.
#define VIVACE_CHAINS(op, a, b, r)                                                                 \
  for (int64_t i = 0; i < steps; ++i) {                                                            \
    __asm__ volatile(op                                                                            \
                     " %%" a ", %%" b ", %%" r "0\n\t" op " %%" a ", %%" b ", %%" r "1\n\t" op     \
                     " %%" a ", %%" b ", %%" r "2\n\t" op " %%" a ", %%" b ", %%" r "3\n\t" op     \
                     " %%" a ", %%" b ", %%" r "4\n\t" op " %%" a ", %%" b ", %%" r "5\n\t" op     \
                     " %%" a ", %%" b ", %%" r "6\n\t" op " %%" a ", %%" b ", %%" r "7\n\t" op     \
                     " %%" a ", %%" b ", %%" r "8\n\t" op " %%" a ", %%" b ", %%" r "9\n\t" op     \
                     " %%" a ", %%" b ", %%" r "10\n\t" op " %%" a ", %%" b ", %%" r "11\n\t" ::   \
                         : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
                           "xmm9", "xmm10", "xmm11");                                              \
  }                                                                                                \
  __asm__ volatile("vzeroupper")

void DpbusdBurst(int64_t steps) { VIVACE_CHAINS("vpdpbusd", "zmm12", "zmm13", "zmm"); }
void Dpbf16Burst(int64_t steps) { VIVACE_CHAINS("vdpbf16ps", "zmm12", "zmm13", "zmm"); }
void Fma512Burst(int64_t steps) { VIVACE_CHAINS("vfmadd231ps", "zmm12", "zmm13", "zmm"); }
void Fma256Burst(int64_t steps) { VIVACE_CHAINS("vfmadd231ps", "ymm12", "ymm13", "ymm"); }
void VexDpbusdBurst(int64_t steps) { VIVACE_CHAINS("%{vex%} vpdpbusd", "ymm12", "ymm13", "ymm"); }
// The AVX2 tier's dot product is vpmaddubsw and some more; this alone is an upper bound.
void MaddubsBurst(int64_t steps) { VIVACE_CHAINS("vpmaddubsw", "ymm12", "ymm13", "ymm"); }
#undef VIVACE_CHAINS

Peak PeakOf(Isa isa, DType dtype) {
  const bool int8 = Info(dtype).block_elems > 1;
  if (isa == Isa::kAvx512Bf16 && dtype == DType::kBF16) return {Dpbf16Burst, 12 * 32};
  if (isa >= Isa::kAvx512) return int8 ? Peak{DpbusdBurst, 12 * 64} : Peak{Fma512Burst, 12 * 16};
  if (isa == Isa::kReference) return {};
  if (!int8) return {Fma256Burst, 12 * 8};
  return isa == Isa::kAvxVnni ? Peak{VexDpbusdBurst, 12 * 32} : Peak{MaddubsBurst, 12 * 32};
}
#else
Peak PeakOf(Isa, DType) { return {}; }
#endif

// ---- measuring ----------------------------------------------------------------------------------

template <typename Call>
double Seconds(Call&& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double Median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Enough copies of a matrix that they do not all stay in a core's own cache, as in a model.
constexpr size_t kModelBytes = 96 << 20;

struct Weights {
  std::vector<Buffer> memory;
  std::vector<MatrixGroup> copies;
  size_t bytes = 0;  // of a copy
};

Weights MakeWeights(const LinearOps& ops, DType dtype, const Shape& shape, bool many) {
  std::vector<std::byte> source(static_cast<size_t>(RowBytes(Info(dtype), shape.cols)) *
                                static_cast<size_t>(shape.rows));
  // Random nibbles over small scales, so that no value is denormal, infinite or NaN.
  for (auto& byte : source) byte = static_cast<std::byte>(std::rand() & 0x2f);
  const size_t part_bytes = ops.packed_bytes(dtype, shape.rows, shape.cols);
  Weights weights;
  weights.bytes = part_bytes * static_cast<size_t>(shape.parts);
  weights.copies.resize(many ? std::max<size_t>(1, kModelBytes / weights.bytes) : 1);
  const size_t stride = (part_bytes + 63) / 64 * 64;
  weights.memory.push_back(
      Allocate(stride * static_cast<size_t>(shape.parts) * weights.copies.size()));
  std::byte* next = weights.memory.back().get();
  for (MatrixGroup& group : weights.copies) {
    group.num_parts = shape.parts;
    for (int p = 0; p < shape.parts; ++p, next += stride) {
      ops.pack({dtype, shape.rows, shape.cols, source.data()}, 0,
               (shape.rows + kTileRows - 1) / kTileRows, next);
      group.parts[p] = {dtype, shape.rows, shape.cols, next};
    }
  }
  return weights;
}

void Run(benchmark::State& state, Isa isa, DType dtype, const Shape& shape, int rows, int threads) {
  constexpr int64_t kBurstSteps = 10'000;  // some 30 us: waking the threads takes one or two
  constexpr size_t kIterationsPerBurst = 4;
  const LinearOps& ops = GetLinearOps(isa);
  const Weights weights = MakeWeights(ops, dtype, shape, rows <= 64);
  const Peak peak = PeakOf(isa, dtype);
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
  std::vector<double> times, bursts;
  for (auto _ : state) {
    const MatrixGroup& group = weights.copies[times.size() % weights.copies.size()];
    times.push_back(Seconds([&] {
      const PreparedInput prepared = ops.prepare(input, group, buffer.get(), pool);
      ops.multiply(group, prepared, shape.epilogue, out.data(), shape.rows, pool);
    }));
    benchmark::DoNotOptimize(out.data());
    state.SetIterationTime(times.back());
    if (peak.burst && times.size() % kIterationsPerBurst == 1) {
      bursts.push_back(Seconds([&] { pool.Run([&](int) { peak.burst(kBurstSteps); }); }));
    }
  }
  const double macs = 1.0 * rows * shape.rows * shape.cols * shape.parts;
  state.counters["GMAC"] = macs / Median(times) / 1e9;
  state.counters["GB"] = static_cast<double>(weights.bytes) / Median(times) / 1e9;
  if (!peak.burst) return;
  const double peak_macs = 1.0 * threads * static_cast<double>(kBurstSteps) * peak.macs_per_step;
  state.counters["of_peak"] =
      macs / *std::ranges::min_element(times) / (peak_macs / *std::ranges::min_element(bursts));
}

void EmptyLoop(benchmark::State& state, int threads) {
  ThreadPool pool(threads);
  for (auto _ : state) pool.ForEach(64, [](int64_t i) { benchmark::DoNotOptimize(i); });
}

void RegisterTier(Isa isa, int threads) {
  const LinearOps& ops = GetLinearOps(isa);
  for (const Shape& shape : kShapes) {
    for (DType dtype : kFormats) {
      if (!ops.can_pack(dtype, shape.rows, shape.cols)) continue;
      if (shape.rows > 10'000 && dtype != DType::kQ8_0) continue;  // one lm_head is enough
      for (int rows : kRows) {
        if (rows > (isa == Isa::kReference ? 8 : shape.rows > 10'000 ? 128 : 2048)) continue;
        const std::string name = std::string(Name(isa)) + "/" + shape.name + "/" +
                                 std::string(Info(dtype).name) + "/m" + std::to_string(rows) +
                                 "/t" + std::to_string(threads);
        benchmark::RegisterBenchmark(name.c_str(), Run, isa, dtype, shape, rows, threads)
            ->UseManualTime()
            ->MinTime(0.1);
      }
    }
  }
}

int Register() {
  for (int threads : {1, 2}) {
    benchmark::RegisterBenchmark(("pool/t" + std::to_string(threads)).c_str(), EmptyLoop, threads);
    for (Isa isa : {Isa::kReference, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAvx512Bf16}) {
      if (Supported(isa)) RegisterTier(isa, threads);
    }
  }
  return 0;
}

[[maybe_unused]] const int kRegistered = Register();

}  // namespace
}  // namespace vivace::kernels
