// One block of zeroed memory on huge pages where the system gives them, handed out front to back.
// Nothing is given back before the end. Owner: the executor. Not for more than one thread.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

namespace vivace {

class Arena {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t Rounded(size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  // `what` names it in the error: "the KV cache".
  static Result<Arena> Map(size_t bytes, const char* what);

  Arena() = default;
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  // The next `bytes`, aligned to kAlignment; the arena must have room.
  std::byte* Take(size_t bytes);
  size_t size() const { return size_; }
  std::span<std::byte> bytes() { return {data_, size_}; }  // all of it, taken or not

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t used_ = 0;
};

}  // namespace vivace
