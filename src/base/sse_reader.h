// Server-sent events from bytes as they come: calls back with the data of each `data:` line.
// (HTML Living Standard 9.2, the part the OpenAI API uses: one data line an event.)
// Cost: one pass; bytes are copied only where a line is cut between two reads. Not thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace vivace {

class SseReader {
 public:
  // False once a line grew beyond kMaxLine; the stream is not to be trusted then.
  template <typename OnData>
  bool Push(std::string_view bytes, OnData&& on_data) {
    if (!buffer_.empty()) {  // the rest of a line that was cut
      const size_t end = bytes.find('\n');
      buffer_ += bytes.substr(0, end == std::string_view::npos ? end : end + 1);
      if (end == std::string_view::npos) return buffer_.size() <= kMaxLine;
      bytes.remove_prefix(end + 1);
      const std::string line = std::exchange(buffer_, {});
      TakeLine(std::string_view(line).substr(0, line.size() - 1), on_data);
    }
    for (size_t end; (end = bytes.find('\n')) != std::string_view::npos;) {
      TakeLine(bytes.substr(0, end), on_data);
      bytes.remove_prefix(end + 1);
    }
    buffer_ = bytes;
    return buffer_.size() <= kMaxLine;
  }

  // What came after the last line's end.
  std::string_view rest() const { return buffer_; }
  void Reset() { buffer_.clear(); }

 private:
  template <typename OnData>
  static void TakeLine(std::string_view line, OnData&& on_data) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("data:")) return;
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    on_data(line);
  }

  static constexpr size_t kMaxLine = 16u << 20;
  std::string buffer_;
};

}  // namespace vivace
