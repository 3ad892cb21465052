// Has the system hand out the pages of the KV cache before a step writes to them. A huge page is
// cleared when it is first touched, which takes up to 5 ms in a virtual machine, and every layer
// reaches the end of one in the same step: without this, a step in some thousands of tokens takes
// five times as long as the others.
//
// Memory is taken a little ahead of its use, not all at once: a cache that is never filled never
// takes it. A thread of its own, at a low priority, does the work; where the system cannot
// (MADV_POPULATE_WRITE, Linux 5.14), it ends, and pages come when they are touched.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace vivace {

// Memory cut into `layers` equal parts, each of them used from its front to its back, block by
// block. Must outlive the Prefault.
struct PrefaultArea {
  std::byte* data = nullptr;
  size_t layers = 0;
  size_t block_bytes = 0;  // of one layer
  int64_t num_blocks = 0;
};

class Prefault {
 public:
  static constexpr size_t kAheadBytes = 256u << 20;  // of all layers together

  explicit Prefault(const PrefaultArea& area);
  ~Prefault();  // within a few pages' time
  Prefault(const Prefault&) = delete;
  Prefault& operator=(const Prefault&) = delete;

  // Blocks before `end` are used, or about to be. Engine thread; a store, and a wake-up now and
  // then.
  void Reach(int64_t end);

  // Blocks up to here have their pages, or never will early. For tests.
  int64_t ready_blocks() const { return ready_.load(std::memory_order_acquire); }

 private:
  void Run();
  bool Populate(int64_t first, int64_t end) const;

  const PrefaultArea area_;
  const int64_t step_;              // blocks populated at once: about a huge page of each layer
  const int64_t ahead_;             // blocks
  int64_t told_ = 0;                // engine thread: what the other was last told
  std::atomic<int64_t> wanted_{0};  // -1: stop
  std::atomic<int64_t> ready_{0};
  std::thread thread_;
};

}  // namespace vivace
