// The memory of one render: everything a template makes lives here and goes at once, at the end.
// So values are plain words, cycles cannot leak, and no destructor walks a deep structure. The byte
// budget counts all that was ever taken, not what is still reachable.
// Cost: a pointer bump per allocation. One owner, one thread.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <new>
#include <utility>

#include "text/jinja/error.h"

namespace vivace::jinja {

class Arena final : public std::pmr::memory_resource {
 public:
  explicit Arena(size_t limit) : limit_(limit) {}

  // Objects are never destroyed: they may own memory of this arena only.
  template <typename T, typename... Args>
  T* New(Args&&... args) {
    return ::new (allocate(sizeof(T), alignof(T))) T(std::forward<Args>(args)...);
  }
  char* Bytes(size_t count) { return static_cast<char*>(allocate(count == 0 ? 1 : count, 1)); }
  size_t used() const { return used_; }

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    if (bytes > limit_ - used_) {
      Raise(kMemoryLimit, "the template needs more than {} bytes of memory", limit_);
    }
    used_ += bytes;
    return pool_.allocate(bytes, alignment);
  }
  void do_deallocate(void*, size_t, size_t) override {}
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  size_t limit_;
  size_t used_ = 0;
  std::pmr::monotonic_buffer_resource pool_;
};

}  // namespace vivace::jinja
