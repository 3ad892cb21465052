#include "engine/prefault.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/thread_priority.h"

namespace vivace {
namespace {

#ifdef MADV_POPULATE_WRITE
constexpr int kPopulateWrite = MADV_POPULATE_WRITE;
#else
constexpr int kPopulateWrite = 23;
#endif
constexpr size_t kHugePage = 2u << 20;
constexpr int kNice = 10;
constexpr int64_t kStop = -1;

}  // namespace

Prefault::Prefault(const PrefaultArea& area)
    : area_(area),
      step_(static_cast<int64_t>(kHugePage / std::max<size_t>(area.block_bytes, 1)) + 1),
      ahead_(static_cast<int64_t>(
          kAheadBytes / std::max<size_t>(area.block_bytes * std::max<size_t>(area.layers, 1), 1))) {
  wanted_.store(std::min(ahead_ + step_, area_.num_blocks), std::memory_order_relaxed);
  thread_ = std::thread([this] { Run(); });
}

Prefault::~Prefault() {
  wanted_.store(kStop, std::memory_order_release);
  wanted_.notify_one();
  thread_.join();
}

void Prefault::Reach(int64_t end) {
  if (end < told_ + step_) return;
  told_ = end;
  wanted_.store(std::min(end + ahead_ + step_, area_.num_blocks), std::memory_order_release);
  wanted_.notify_one();
}

void Prefault::Run() {
  LowerThreadPriority(kNice);
  for (int64_t done = 0; done < area_.num_blocks;) {
    const int64_t wanted = wanted_.load(std::memory_order_acquire);
    if (wanted == kStop) return;
    if (done >= wanted) {
      wanted_.wait(wanted, std::memory_order_acquire);
      continue;
    }
    const int64_t end = std::min(done + step_, area_.num_blocks);
    done = Populate(done, end) ? end : area_.num_blocks;
    ready_.store(done, std::memory_order_release);
  }
}

// Blocks [first, end) of every layer; false if the system cannot.
bool Prefault::Populate(int64_t first, int64_t end) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const size_t layer_bytes = area_.block_bytes * static_cast<size_t>(area_.num_blocks);
  for (size_t layer = 0; layer < area_.layers; ++layer) {
    if (wanted_.load(std::memory_order_relaxed) == kStop) return true;
    const auto base = reinterpret_cast<uintptr_t>(area_.data) + layer * layer_bytes;
    const uintptr_t from = (base + static_cast<size_t>(first) * area_.block_bytes) / page * page;
    const uintptr_t to = base + static_cast<size_t>(end) * area_.block_bytes;
    // The arena begins with a page, so the first one is whole, and the last ends with the
    // mapping's.
    if (::madvise(reinterpret_cast<void*>(from), to - from, kPopulateWrite) != 0) return false;
  }
  return true;
}

}  // namespace vivace
