#include "base/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vivace {
namespace {

// How long a worker looks for the next loop before it sleeps: longer than the gaps between the
// blocks of one step, shorter than a person could measure on an idle machine.
constexpr std::chrono::microseconds kSpin{50};
constexpr int kPausesPerClockRead = 16;

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Spins until ready() or until `limit` has passed; says whether ready() held.
template <typename Ready>
bool SpinUntil(std::chrono::nanoseconds limit, Ready ready) {
  if (ready()) return true;
  if (limit.count() == 0) return false;
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      Pause();
      if (ready()) return true;
    }
  } while (std::chrono::steady_clock::now() - start < limit);
  return false;
}

}  // namespace

// One loop is one "job". The gate word says which job is current, whether it may still be entered,
// and how many workers are inside:  job number (32) | open (1) | workers inside (31).
// A worker reads the job's fields only between entering and leaving, and the caller writes them
// only while the gate is closed and nobody is inside. So a worker that wakes late, after the caller
// has done all items itself, finds the gate shut and goes back to sleep: nobody waited for it.
struct ThreadPool::State {
  static constexpr uint64_t kOpen = uint64_t{1} << 31;
  static constexpr uint64_t kInside = kOpen - 1;

  static uint32_t JobOf(uint64_t gate) { return static_cast<uint32_t>(gate >> 32); }

  alignas(64) std::atomic<uint64_t> gate{0};
  alignas(64) std::atomic<uint32_t> wake{0};   // futex word, bumped once per job
  alignas(64) std::atomic<int64_t> next{0};    // ForEach: the next item
  alignas(64) std::atomic<int> unfinished{0};  // Run: workers that have not been through the job

  // The current job; guarded by the gate.
  void (*run_body)(void*, int) = nullptr;  // one of the two is set
  void (*item_body)(void*, int64_t) = nullptr;
  void* context = nullptr;
  int64_t count = 0;

  std::atomic<bool> stopping{false};
  std::chrono::nanoseconds spin{kSpin};
  std::vector<std::thread> threads;

  void Work(int worker) {
    if (run_body) {
      run_body(context, worker);
      unfinished.fetch_sub(1, std::memory_order_release);
      return;
    }
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
      item_body(context, i);
    }
  }

  // Enters the current job if it is open and not `seen`.
  bool Enter(uint32_t seen) {
    uint64_t now = gate.load(std::memory_order_seq_cst);
    while ((now & kOpen) && JobOf(now) != seen) {
      if (gate.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }

  void WorkerLoop(int worker) {
    uint32_t seen = 0;
    while (!stopping.load(std::memory_order_acquire)) {
      const auto fresh = [&] {
        const uint64_t now = gate.load(std::memory_order_relaxed);
        return ((now & kOpen) && JobOf(now) != seen) || stopping.load(std::memory_order_relaxed);
      };
      if (!SpinUntil(spin, fresh)) {
        const uint32_t ticket = wake.load(std::memory_order_seq_cst);
        if (!fresh()) wake.wait(ticket, std::memory_order_seq_cst);
      }
      if (!Enter(seen)) continue;
      seen = JobOf(gate.load(std::memory_order_relaxed));  // cannot change while we are inside
      Work(worker);
      gate.fetch_sub(1, std::memory_order_release);
    }
  }

  void Publish() {
    const uint32_t job = JobOf(gate.load(std::memory_order_relaxed)) + 1;
    gate.store((uint64_t{job} << 32) | kOpen, std::memory_order_seq_cst);
    wake.fetch_add(1, std::memory_order_seq_cst);
    wake.notify_all();  // no system call unless someone sleeps
  }

  // The caller's wait for the last worker, which is in the middle of an item.
  template <typename Ready>
  void Await(Ready ready) const {
    while (!SpinUntil(spin, ready)) sched_yield();
  }

  void Close() {
    gate.fetch_and(~kOpen, std::memory_order_acq_rel);
    Await([&] { return (gate.load(std::memory_order_acquire) & kInside) == 0; });
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  VIVACE_CHECK(threads >= 1);
  // A spinning thread without a processor of its own only delays the one that has work.
  if (threads > UsableCpus()) state_->spin = std::chrono::nanoseconds{0};
  for (int worker = 1; worker < threads; ++worker) {
    state_->threads.emplace_back([state = state_.get(), worker] { state->WorkerLoop(worker); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stopping.store(true, std::memory_order_seq_cst);
  state_->wake.fetch_add(1, std::memory_order_seq_cst);
  state_->wake.notify_all();
  for (auto& thread : state_->threads) thread.join();
}

int ThreadPool::size() const { return static_cast<int>(state_->threads.size()) + 1; }

void ThreadPool::RunErased(void (*body)(void*, int), void* context) {
  State& state = *state_;
  if (state.threads.empty()) return body(context, 0);
  state.run_body = body;
  state.context = context;
  state.unfinished.store(size(), std::memory_order_relaxed);
  state.Publish();
  state.Work(0);
  state.Await([&] { return state.unfinished.load(std::memory_order_acquire) == 0; });
  state.Close();
}

void ThreadPool::ForEachErased(int64_t count, void (*body)(void*, int64_t), void* context) {
  State& state = *state_;
  if (state.threads.empty() || count <= 1) {
    for (int64_t i = 0; i < count; ++i) body(context, i);
    return;
  }
  state.run_body = nullptr;
  state.item_body = body;
  state.context = context;
  state.count = count;
  state.next.store(0, std::memory_order_relaxed);
  state.Publish();
  state.Work(0);
  state.Close();
}

}  // namespace vivace
