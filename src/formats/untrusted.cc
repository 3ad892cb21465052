#include "formats/untrusted.h"

#include <fmt/format.h>

#include <iterator>

#include "base/utf8.h"

namespace vivace::formats {
namespace {

constexpr size_t kMaxPathBytes = 1024;  // in a message

// C0, DEL and C1; embeddings, overrides and isolates of writing direction.
bool IsObeyed(char32_t c) {
  const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
  return control || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

// The line and paragraph separators: some terminals take them for line ends.
bool BreaksLine(char32_t c) { return c == 0x2028 || c == 0x2029; }

}  // namespace

std::string Printable(std::string_view text, size_t max_bytes) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    if (out.size() >= max_bytes) return out + "...";
    const auto next = utf8::Decode(text, i);
    const std::string_view bytes = text.substr(i, next.length);
    if (next.valid && !IsObeyed(next.code_point) && !BreaksLine(next.code_point)) {
      out.append(bytes);
    } else {
      for (const char byte : bytes) {
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<uint8_t>(byte));
      }
    }
    i += next.length;
  }
  return out;
}

std::string ForTerminal(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto next = utf8::Decode(text, i);
    const std::string_view bytes = text.substr(i, next.length);
    i += next.length;
    if (!next.valid) {
      out += utf8::kReplacementBytes;
    } else if (!IsObeyed(next.code_point) || bytes == "\n" || bytes == "\t") {
      out += bytes;
    }
  }
  return out;
}

tl::unexpected<Error> FileFault(ErrorCode code, std::string slug, std::string_view file,
                                std::string_view field, std::string_view text) {
  const std::string shown = Printable(field);
  const std::string place = shown.empty() ? "" : shown + ": ";
  return Fail(code, std::move(slug), shown, "{}: {}{}", Printable(file, kMaxPathBytes), place,
              text);
}

}  // namespace vivace::formats
