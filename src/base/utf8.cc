#include "base/utf8.h"

namespace vivace::utf8 {
namespace {

// What may follow a lead byte: how many more bytes, and the range of the first of them, which is
// where overlong forms, surrogates and values past U+10FFFF are ruled out.
struct Lead {
  uint8_t more, low, high;
};

constexpr Lead LeadOf(unsigned char byte) {
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte < 0xF0) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte < 0xF4) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Decoded DecodeMultiByte(std::string_view text, size_t pos) {
  const auto first = static_cast<unsigned char>(text[pos]);
  Lead lead = LeadOf(first);
  if (lead.more == 0) return {kReplacement, 1, false, false};
  char32_t code_point = first & (0x3Fu >> lead.more);
  for (uint8_t i = 1; i <= lead.more; ++i) {
    if (pos + i >= text.size()) return {kReplacement, i, false, true};
    const auto byte = static_cast<unsigned char>(text[pos + i]);
    if (byte < lead.low || byte > lead.high) return {kReplacement, i, false, false};
    code_point = code_point << 6 | (byte & 0x3F);
    lead.low = 0x80;
    lead.high = 0xBF;
  }
  return {code_point, static_cast<uint8_t>(lead.more + 1), true, false};
}

size_t FirstInvalid(std::string_view text) {
  size_t pos = 0;
  while (pos < text.size()) {
    const Decoded c = Decode(text, pos);
    if (!c.valid) break;
    pos += c.length;
  }
  return pos;
}

void Append(char32_t c, std::string* out) {
  const auto tail = [c](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | c >> 6));
    out->push_back(tail(0));
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | c >> 12));
    out->push_back(tail(6));
    out->push_back(tail(0));
  } else {
    out->push_back(static_cast<char>(0xF0 | c >> 18));
    out->push_back(tail(12));
    out->push_back(tail(6));
    out->push_back(tail(0));
  }
}

size_t AppendRepaired(std::string_view text, std::string* out) {
  size_t copied = 0;  // text[copied, pos) is valid and not yet appended
  size_t pos = 0;
  while (pos < text.size()) {
    const Decoded c = Decode(text, pos);
    if (c.cut) break;
    if (!c.valid) {
      out->append(text, copied, pos - copied);
      out->append(kReplacementBytes);
      copied = pos + c.length;
    }
    pos += c.length;
  }
  out->append(text, copied, pos - copied);
  return pos;
}

std::string Repair(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  if (AppendRepaired(text, &out) != text.size()) out.append(kReplacementBytes);
  return out;
}

}  // namespace vivace::utf8
