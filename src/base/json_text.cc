#include "base/json_text.h"

#include <cstdint>

namespace vivace {
namespace {

struct Utf8Lead {
  uint8_t mask, value;  // lead byte: byte & mask == value
  uint8_t length;       // of the whole character
  uint8_t low, high;    // bounds of the second byte; they exclude overlongs and surrogates
};

// Unicode 15, table 3-7. The first match wins.
constexpr Utf8Lead kUtf8Leads[] = {
    {0xFF, 0xE0, 3, 0xA0, 0xBF}, {0xFF, 0xED, 3, 0x80, 0x9F}, {0xF0, 0xE0, 3, 0x80, 0xBF},
    {0xFF, 0xF0, 4, 0x90, 0xBF}, {0xFF, 0xF4, 4, 0x80, 0x8F}, {0xFC, 0xF0, 4, 0x80, 0xBF},
    {0xFE, 0xC0, 0, 0, 0},       {0xE0, 0xC0, 2, 0x80, 0xBF},
};

// Length of the well-formed non-ASCII character at the start of `text`; 0 if there is none.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  for (const Utf8Lead& lead : kUtf8Leads) {
    if ((byte(0) & lead.mask) != lead.value) continue;
    if (lead.length == 0 || text.size() < lead.length) return 0;
    if (byte(1) < lead.low || byte(1) > lead.high) return 0;
    for (size_t i = 2; i < lead.length; ++i) {
      if ((byte(i) & 0xC0) != 0x80) return 0;
    }
    return lead.length;
  }
  return 0;
}

void AppendEscaped(std::string& out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHex[(c >> 4) & 0xF];
      out += kHex[c & 0xF];
  }
}

}  // namespace

void AppendJsonString(std::string& out, std::string_view text) {
  out.reserve(out.size() + text.size() + 2);
  out += '"';
  size_t i = 0;
  while (i < text.size()) {
    const auto c = static_cast<uint8_t>(text[i]);
    if (c >= 0x80) {
      const size_t length = Utf8Length(text.substr(i));
      if (length == 0) {
        out += "\xEF\xBF\xBD";
        ++i;
      } else {
        out.append(text, i, length);
        i += length;
      }
      continue;
    }
    if (c < 0x20 || c == '"' || c == '\\' || c == 0x7F) {
      AppendEscaped(out, text[i]);
    } else {
      out += text[i];
    }
    ++i;
  }
  out += '"';
}

}  // namespace vivace
