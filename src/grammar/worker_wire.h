// What the worker and the server say to each other, as bytes. Part of worker.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace vivace::grammar::wire {

enum class Status : uint8_t { kCompiled = 0, kBad = 1, kTooCostly = 2 };

inline constexpr int kOutOfMemory = 3;  // the worker's exit status

inline constexpr uint32_t kMostBytes = 512u << 20;  // of one message

inline void PutU32(uint32_t value, std::string* out) {
  char bytes[sizeof(value)];
  std::memcpy(bytes, &value, sizeof(value));
  out->append(bytes, sizeof(value));
}

inline void PutText(std::string_view text, std::string* out) {
  PutU32(static_cast<uint32_t>(text.size()), out);
  out->append(text);
}

// Reads what Put wrote; nothing once something is missing.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::optional<uint32_t> U32() {
    uint32_t value = 0;
    if (bytes_.size() < sizeof(value)) return std::nullopt;
    std::memcpy(&value, bytes_.data(), sizeof(value));
    bytes_.remove_prefix(sizeof(value));
    return value;
  }
  std::optional<std::string_view> Text() {
    const auto size = U32();
    if (!size || bytes_.size() < *size) return std::nullopt;
    const std::string_view text = bytes_.substr(0, *size);
    bytes_.remove_prefix(*size);
    return text;
  }

 private:
  std::string_view bytes_;
};

}  // namespace vivace::grammar::wire
