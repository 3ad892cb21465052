#include "engine/arena.h"

#include <sys/mman.h>

#include <utility>

#include "base/check.h"
#include "base/units.h"

namespace vivace {

Result<Arena> Arena::Map(size_t bytes, const char* what) {
  Arena arena;
  arena.size_ = Rounded(bytes == 0 ? kAlignment : bytes);
  void* data =
      mmap(nullptr, arena.size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return Fail(ErrorCode::kResourceExhausted, "no_memory", "",
                "cannot get {} of memory for {}; free some, or lower --kv-cache-memory-bytes, "
                "--max-model-len or --max-num-seqs",
                FormatBytes(arena.size_), what);
  }
  madvise(data, arena.size_, MADV_HUGEPAGE);  // a hint: failing is fine
  arena.data_ = static_cast<std::byte*>(data);
  return arena;
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(used_, other.used_);
  return *this;
}

Arena::~Arena() {
  if (data_ != nullptr) munmap(data_, size_);
}

std::byte* Arena::Take(size_t bytes) {
  std::byte* taken = data_ + used_;
  used_ += Rounded(bytes);
  VIVACE_CHECK(used_ <= size_);
  return taken;
}

}  // namespace vivace
