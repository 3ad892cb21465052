// UTF-8: decode, validate, repair. Every function takes any bytes and never reads past the view.
// Invalid bytes are treated as the WHATWG decoder and Python's errors="replace" do: the longest
// prefix of a would-be character ("maximal subpart") counts as one error, one U+FFFD.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace vivace::utf8 {

inline constexpr char32_t kReplacement = 0xFFFD;
inline constexpr std::string_view kReplacementBytes = "\xEF\xBF\xBD";

struct Decoded {
  char32_t code_point;  // U+FFFD when not valid
  uint8_t length;       // bytes it takes, at least 1
  bool valid;
  bool cut;  // not valid, but only because the text ends inside the character
};

// The character at text[pos]; pos < text.size().
Decoded DecodeMultiByte(std::string_view text, size_t pos);
inline Decoded Decode(std::string_view text, size_t pos) {
  const auto byte = static_cast<unsigned char>(text[pos]);
  if (byte < 0x80) return {byte, 1, true, false};
  return DecodeMultiByte(text, pos);
}

// Where the first byte stands that is of no character; text.size(): there is none.
size_t FirstInvalid(std::string_view text);
inline bool IsValid(std::string_view text) { return FirstInvalid(text) == text.size(); }

// Appends the encoding of a scalar value (not a surrogate, at most U+10FFFF).
void Append(char32_t code_point, std::string* out);

// Appends `text` to `out` with every error replaced by U+FFFD, up to a character that the end of
// `text` cuts; returns how many bytes of `text` were taken (all but at most 3).
size_t AppendRepaired(std::string_view text, std::string* out);

// The whole text with every error, a cut end included, replaced by U+FFFD.
std::string Repair(std::string_view text);

}  // namespace vivace::utf8
