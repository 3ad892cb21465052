// Pieces of a workspace, one after the other, each aligned to 64 bytes. From a null base it only
// measures, so that the same code can say how much an op takes and where its pieces lie. Internal
// linkage: files of tiers include it, and none may end up with another's instructions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vivace::kernels {
namespace {

class Carve {
 public:
  explicit Carve(std::byte* base) : at_(reinterpret_cast<uintptr_t>(base)), base_(at_) {}

  template <typename T>
  T* Take(int64_t count) {
    T* const piece = reinterpret_cast<T*>(at_);
    at_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return piece;
  }
  size_t bytes() const { return at_ - base_; }

 private:
  uintptr_t at_;
  uintptr_t base_;
};

}  // namespace
}  // namespace vivace::kernels
