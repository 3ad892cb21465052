// Attention on SmolLM2's shape (9 heads, 3 kv heads of 64), one layer.
// ninja kernels_bench && src/kernels/kernels_bench --benchmark_filter=Attention
//
// AttentionRatio runs two ways of doing the same in turn and prints the ratio of their medians:
// other work on the machine slows both.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/block_ops.h"

namespace vivace::kernels {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};

// In huge pages where the system gives them, as the engine's memory is.
template <typename T>
std::unique_ptr<T, Free> Zeroed(size_t count) {
  constexpr size_t kPage = 2u << 20;
  const size_t bytes = (count * sizeof(T) + kPage - 1) / kPage * kPage;
  std::unique_ptr<T, Free> data(static_cast<T*>(std::aligned_alloc(kPage, bytes)));
  madvise(data.get(), bytes, MADV_HUGEPAGE);
  std::memset(data.get(), 0, bytes);
  return data;
}

constexpr int32_t kHeads = 9, kKvHeads = 3, kDim = 64, kBlock = 16;

// `sequences` of `rows` new positions after `past`, of which the first `shared` are the same blocks
// for all.
struct Shape {
  int32_t sequences, rows, past, shared = 0;
};

class Case {
 public:
  Case(const BlockOps& ops, KvDType dtype, const Shape& shape, ThreadPool* pool)
      : ops_(ops), shape_(shape), pool_(*pool), geometry_{dtype, kBlock, kKvHeads, kDim} {
    const int32_t blocks = (shape.past + shape.rows + kBlock - 1) / kBlock;
    num_blocks_ = blocks * shape.sequences;
    cache_ = Zeroed<std::byte>(ops.kv_block_bytes(geometry_) * static_cast<size_t>(num_blocks_));
    for (int32_t i = 0; i < num_blocks_; ++i) table_.emplace_back(i);
    for (int32_t i = 0; i < shape.sequences; ++i) {
      BlockId* own = table_.data() + i * blocks;
      std::copy_n(table_.begin(), shape.shared / kBlock, own);
      sequences_.push_back({i * shape.rows, shape.rows, shape.past, own});
    }
    sharers_.resize(sequences_.size());
    std::iota(sharers_.begin(), sharers_.end(), 0);
    const int32_t rows = shape.sequences * shape.rows;
    q_ = Zeroed<float>(static_cast<size_t>(rows * kHeads * kDim));
    out_ = Zeroed<float>(static_cast<size_t>(rows * kHeads * kDim));
    bytes_ = ops.workspace_bytes({.max_rows = rows,
                                  .hidden = kHeads * kDim,
                                  .max_cols = kHeads * kDim,
                                  .qkv_rows = (kHeads + 2 * kKvHeads) * kDim,
                                  .ffn = 16,
                                  .max_context = shape.past + shape.rows,
                                  .max_sequences = shape.sequences,
                                  .threads = pool->size()});
    scratch_ = Zeroed<std::byte>(bytes_);
  }

  void Run(bool tell_of_sharing = false) {
    const PrefixGroup group{sharers_, shape_.shared};
    StepRows step{shape_.sequences * shape_.rows, sequences_};
    if (tell_of_sharing) step.prefix_groups = {&group, 1};
    ops_.attention({.q = q_.get(),
                    .heads = kHeads,
                    .scale = 0.125f,
                    .step = step,
                    .kv = {geometry_, cache_.get(), num_blocks_},
                    .out = out_.get()},
                   {scratch_.get(), bytes_}, pool_);
  }

 private:
  const BlockOps& ops_;
  const Shape shape_;
  ThreadPool& pool_;
  const KvGeometry geometry_;
  int32_t num_blocks_;
  std::vector<BlockId> table_;
  std::vector<SequenceRows> sequences_;
  std::vector<int32_t> sharers_;
  std::unique_ptr<std::byte, Free> cache_, scratch_;
  std::unique_ptr<float, Free> q_, out_;
  size_t bytes_;
};

constexpr Shape kShapes[] = {
    {1, 1, 4095},                                  // one stream, long context
    {1, 1, 100},                                   //
    {32, 1, 127},   {32, 1, 1023}, {32, 1, 4095},  // a batch
    {1024, 1, 150},                                // one that fits no cache: 120 MB
    {1, 512, 0},                                   // a prompt
    {1, 256, 4096},                                // a chunk of a long one
};

void Attention(benchmark::State& state, Isa isa, KvDType dtype, int threads, Shape shape) {
  ThreadPool pool(threads);
  Case bench(GetBlockOps(isa), dtype, shape, &pool);
  for (auto _ : state) bench.Run();
  const double seen =
      shape.sequences * (double{1} * shape.past * shape.rows + 0.5 * shape.rows * (shape.rows + 1));
  state.counters["GMAC/s"] = benchmark::Counter(seen * kHeads * kDim * 2 * 1e-9,
                                                benchmark::Counter::kIsIterationInvariantRate);
}

// Processor time of this thread, which is a worker of every op until its end.
double Seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename First, typename Second>
void Alternate(benchmark::State& state, First first, Second second) {
  std::vector<double> times[2];
  const auto timed = [&](int which, auto& run) {
    const double start = Seconds();
    run();
    times[which].push_back(Seconds() - start);
  };
  for (auto _ : state) {
    timed(0, first);
    timed(1, second);
  }
  const auto median = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + static_cast<int64_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
  };
  state.counters["ratio"] = median(times[0]) / median(times[1]);
}

void Int8OverBf16(benchmark::State& state, Isa isa, int threads, Shape shape) {
  ThreadPool pool(threads);
  Case bf16(GetBlockOps(isa), KvDType::kBF16, shape, &pool);
  Case int8(GetBlockOps(isa), KvDType::kI8, shape, &pool);
  Alternate(
      state, [&] { bf16.Run(); }, [&] { int8.Run(); });
}

void SharedOverApart(benchmark::State& state, Isa isa, KvDType dtype, int threads, Shape shape) {
  ThreadPool pool(threads);
  Case bench(GetBlockOps(isa), dtype, shape, &pool);
  Alternate(
      state, [&] { bench.Run(); }, [&] { bench.Run(true); });
}

std::string NameOf(const char* what, Isa isa, const char* dtype, int threads, const Shape& shape) {
  return std::string(what) + "/" + std::string(Name(isa)) + "/" + dtype +
         "/threads:" + std::to_string(threads) + "/sequences:" + std::to_string(shape.sequences) +
         "/rows:" + std::to_string(shape.rows) + "/past:" + std::to_string(shape.past) +
         (shape.shared > 0 ? "/shared:" + std::to_string(shape.shared) : "");
}

void Add(const std::string& name, auto function, auto... arguments) {
  benchmark::RegisterBenchmark(name.c_str(), function, arguments...)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

void AddCases(Isa isa, int threads) {
  for (const Shape& shape : kShapes) {
    Add(NameOf("Attention", isa, "bf16", threads, shape), Attention, isa, KvDType::kBF16, threads,
        shape);
    Add(NameOf("Attention", isa, "int8", threads, shape), Attention, isa, KvDType::kI8, threads,
        shape);
    Add(NameOf("AttentionRatio", isa, "bf16:int8", threads, shape), Int8OverBf16, isa, threads,
        shape);
  }
  for (const Shape& shape :
       {Shape{16, 1, 1100, 1024}, Shape{16, 1, 4200, 4096}, Shape{16, 1, 16400, 16384}}) {
    Add(NameOf("AttentionRatio", isa, "apart:shared/bf16", threads, shape), SharedOverApart, isa,
        KvDType::kBF16, threads, shape);
    Add(NameOf("AttentionRatio", isa, "apart:shared/int8", threads, shape), SharedOverApart, isa,
        KvDType::kI8, threads, shape);
  }
}

[[maybe_unused]] const bool kAdded = [] {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
    if (!Supported(isa)) continue;
    for (const int threads : {1, 2}) AddCases(isa, threads);
  }
  return true;
}();

}  // namespace
}  // namespace vivace::kernels
