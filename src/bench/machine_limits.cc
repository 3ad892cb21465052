#include "bench/machine_limits.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <span>
#include <thread>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "bench/start_together.h"
#include "bench/statistics.h"
#include "bench/steal.h"
#include "engine/arena.h"
#include "engine/memory_plan.h"

namespace vivace::bench {
namespace {

// Shorter than a time slice, and many: on a machine that does something else as well, some are
// whole.
constexpr double kTrialSeconds = 0.003;
constexpr int kTrials = 15;
constexpr int kLeastTrials = 3;                    // however long one takes
constexpr double kMostSeconds = 0.15;              // of one figure's trials, else
constexpr size_t kMemoryWorkingSet = 1280u << 20;  // past any cache, shared ones included
constexpr size_t kAvailableShare = 4;              // of the free memory a working set may take
constexpr int64_t kClockSteps = 400'000;
constexpr int64_t kAddsPerStep = 8;
constexpr int kBarriers = 20'000;
constexpr int kWakes = 25;
constexpr std::chrono::milliseconds kAsleepAfter{2};

size_t CacheBytes(int name) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

// A chain of adds of one cycle each.
double MeasureClock(ThreadPool& pool) {
  double best = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const double seconds = SecondsTogether(pool, [](int) {
      uint64_t x = 1, y = 3;
      for (int64_t i = 0; i < kClockSteps; ++i) {
        __asm__ volatile(
            "add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\t"
            "add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0"
            : "+r"(x)
            : "r"(y));
      }
    });
    best = std::max(best, static_cast<double>(kClockSteps * kAddsPerStep) / seconds);
  }
  return best;
}

// Repetitions of `run(times)` that fill a trial, and the rate of each trial in repetitions a
// second, all threads counted.
template <typename Run>
std::vector<double> Rates(ThreadPool& pool, Run run) {
  int64_t times = 1;
  double seconds = SecondsTogether(pool, [&](int worker) { run(worker, times); });
  while (seconds < kTrialSeconds) {
    times =
        std::max(times + 1, static_cast<int64_t>(static_cast<double>(times) *
                                                 std::min(kTrialSeconds / seconds * 1.1, 16.0)));
    seconds = SecondsTogether(pool, [&](int worker) { run(worker, times); });
  }
  std::vector<double> rates;
  double spent = 0;
  for (int i = 0; i < kTrials && (i < kLeastTrials || spent < kMostSeconds); ++i) {
    seconds = SecondsTogether(pool, [&](int worker) { run(worker, times); });
    rates.push_back(static_cast<double>(times) * pool.size() / seconds);
    spent += seconds;
  }
  return rates;
}

double Best(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

void MeasureMacs(ThreadPool& pool, std::vector<MacLimit>* out) {
  constexpr int64_t kSteps = 2'000;  // a few tens of microseconds
  for (const MacKernel& kernel : MacKernels()) {
    if (!kernel.supported()) continue;
    const auto rates = Rates(pool, [&](int, int64_t times) { kernel.run(times * kSteps); });
    out->push_back({kernel.kind, pool.size(),
                    Best(rates) * static_cast<double>(kSteps * kernel.macs_per_step)});
  }
}

// Each thread reads its own part of `buffer`, again and again.
ReadLimit MeasureRead(ThreadPool& pool, std::span<std::byte> buffer) {
  const auto threads = static_cast<size_t>(pool.size());
  const size_t part = std::max<size_t>(buffer.size() / threads / kReadGranule, 1) * kReadGranule;
  std::atomic<uint64_t> sink{0};
  std::vector<double> best;
  for (auto* read : {ReadStreams, ReadPrefetched}) {
    std::vector<double> rates = Rates(pool, [&](int worker, int64_t times) {
      const std::byte* from = buffer.data() + static_cast<size_t>(worker) * part;
      for (int64_t i = 0; i < times; ++i)
        sink.fetch_or(read(from, static_cast<int64_t>(part)), std::memory_order_relaxed);
    });
    if (best.empty() || Best(rates) > Best(best)) best = std::move(rates);
  }
  return {part * threads, pool.size(), Best(best) * static_cast<double>(part),
          Median(best) * static_cast<double>(part)};
}

std::vector<size_t> WorkingSets(const LimitOptions& options, const MachineLimits& limits) {
  std::vector<size_t> sizes = options.working_sets;
  const size_t threads = static_cast<size_t>(limits.threads);
  if (limits.l2_bytes > 0) sizes.push_back(limits.l2_bytes / 2 * threads);
  if (limits.l3_bytes > 0) sizes.push_back(limits.l3_bytes / 2);
  sizes.push_back(kMemoryWorkingSet);
  const size_t available = AvailableMemory();
  const size_t least = threads * kReadGranule;
  for (size_t& size : sizes) {
    if (available > 0) size = std::min(size, available / kAvailableShare);
    size = std::max(size, least);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

void MeasurePool(ThreadPool& pool, MachineLimits* limits) {
  std::vector<double> barriers, wakes;
  for (int trial = 0; trial < kTrials; ++trial) {
    const int64_t start = SteadyNanos();
    for (int i = 0; i < kBarriers / kTrials; ++i) pool.Run([](int) {});
    barriers.push_back(static_cast<double>(SteadyNanos() - start) / (kBarriers / kTrials));
  }
  for (int i = 0; i < kWakes; ++i) {
    std::this_thread::sleep_for(kAsleepAfter);
    const int64_t start = SteadyNanos();
    pool.Run([](int) {});
    wakes.push_back(static_cast<double>(SteadyNanos() - start));
  }
  limits->barrier_ns = Median(barriers);
  limits->wake_ns = Median(wakes);
}

}  // namespace

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  }
  return "unknown";
}

double MachineLimits::MacRate(MacKind kind, int wanted) const {
  for (const MacLimit& mac : macs) {
    if (mac.kind == kind && mac.threads == wanted) return mac.rate;
  }
  return 0;
}

double MachineLimits::ReadRate(size_t bytes, int wanted) const {
  const ReadLimit* below = nullptr;
  for (const ReadLimit& read : reads) {
    if (read.threads != wanted) continue;
    if (read.bytes >= bytes) {
      if (below == nullptr || read.bytes == bytes) return read.best;
      const double share =
          std::log(static_cast<double>(bytes) / static_cast<double>(below->bytes)) /
          std::log(static_cast<double>(read.bytes) / static_cast<double>(below->bytes));
      return below->best + share * (read.best - below->best);
    }
    below = &read;
  }
  return below != nullptr ? below->best : 0;
}

Result<MachineLimits> MeasureLimits(const LimitOptions& options) {
  MachineLimits limits;
  limits.cpu = CpuName();
  limits.threads = options.threads > 0 ? options.threads : UsableCpus();
  if (limits.threads > UsableCpus()) {
    return Fail(
        ErrorCode::kInvalidArgument, "flag_range", "threads",
        "--threads is {} and this process may use {} CPUs at once; limits are measured with "
        "at most that",
        limits.threads, UsableCpus());
  }
  limits.l2_bytes = CacheBytes(_SC_LEVEL2_CACHE_SIZE);
  limits.l3_bytes = CacheBytes(_SC_LEVEL3_CACHE_SIZE);
  const std::vector<size_t> sizes = WorkingSets(options, limits);
  VIVACE_ASSIGN(Arena memory, Arena::Map(sizes.back(), "measuring the bandwidth"));
  const std::span<std::byte> buffer(memory.Take(sizes.back()), sizes.back());

  const StealMeter steal;
  std::vector<std::unique_ptr<ThreadPool>> pools;
  pools.push_back(std::make_unique<ThreadPool>(limits.threads));
  if (limits.threads > 1) pools.push_back(std::make_unique<ThreadPool>(1));
  ThreadPool& all = *pools.front();
  // Pages that were never written all map to one page of zeros, which any cache holds.
  all.ForEach(static_cast<int64_t>(buffer.size() / kReadGranule), [&](int64_t i) {
    std::fill_n(buffer.data() + i * kReadGranule, kReadGranule, std::byte{1});
  });
  limits.clock_before = MeasureClock(all);
  for (const auto& pool : pools) {
    MeasureMacs(*pool, &limits.macs);
    for (const size_t size : sizes) limits.reads.push_back(MeasureRead(*pool, buffer.first(size)));
  }
  limits.clock_after = MeasureClock(all);
  MeasurePool(all, &limits);
  limits.steal = steal.Share();
  return limits;
}

MachineLimits Better(const MachineLimits& a, const MachineLimits& b) {
  MachineLimits best = a;
  for (size_t i = 0; i < best.reads.size() && i < b.reads.size(); ++i) {
    best.reads[i].best = std::max(a.reads[i].best, b.reads[i].best);
    best.reads[i].median = std::max(a.reads[i].median, b.reads[i].median);
  }
  for (size_t i = 0; i < best.macs.size() && i < b.macs.size(); ++i)
    best.macs[i].rate = std::max(a.macs[i].rate, b.macs[i].rate);
  best.clock_after = b.clock_after;
  best.barrier_ns = std::min(a.barrier_ns, b.barrier_ns);
  best.wake_ns = std::min(a.wake_ns, b.wake_ns);
  best.steal = std::max(a.steal, b.steal);
  return best;
}

}  // namespace vivace::bench
