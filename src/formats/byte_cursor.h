// A position in untrusted bytes. Take(n) is the only way to read: it never leaves the span.
// Plain value, no ownership. Little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace vivace::formats {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  // The next `n` bytes, or nothing (and no movement) if fewer are left.
  std::optional<std::span<const std::byte>> Take(uint64_t n) {
    if (n > remaining()) return std::nullopt;
    auto taken = bytes_.subspan(static_cast<size_t>(position_), static_cast<size_t>(n));
    position_ += n;
    return taken;
  }

  template <typename T>
  requires std::is_arithmetic_v<T> std::optional<T> Read() {
    const auto taken = Take(sizeof(T));
    if (!taken) return std::nullopt;
    T value;
    std::memcpy(&value, taken->data(), sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
};

}  // namespace vivace::formats
