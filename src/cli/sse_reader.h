// Server-sent events from bytes as they come: calls back with the data of each `data:` line.
// (HTML Living Standard 9.2, the part the OpenAI API uses: one data line an event.)
#pragma once

#include <string>
#include <string_view>

namespace vivace::cli {

class SseReader {
 public:
  // False once a line grew beyond kMaxLine; the stream is not to be trusted then.
  template <typename OnData>
  bool Push(std::string_view bytes, OnData&& on_data) {
    buffer_ += bytes;
    size_t begin = 0;
    for (size_t end; (end = buffer_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      std::string_view line(buffer_.data() + begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.starts_with("data:")) continue;
      line.remove_prefix(5);
      if (line.starts_with(' ')) line.remove_prefix(1);
      on_data(line);
    }
    buffer_.erase(0, begin);
    return buffer_.size() <= kMaxLine;
  }

  // What came after the last line's end.
  std::string_view rest() const { return buffer_; }

 private:
  static constexpr size_t kMaxLine = 16u << 20;
  std::string buffer_;
};

}  // namespace vivace::cli
