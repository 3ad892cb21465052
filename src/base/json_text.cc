#include "base/json_text.h"

#include "base/utf8.h"

namespace vivace {

void AppendJsonEscape(std::string& out, char c) {
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

void AppendJsonString(std::string& out, std::string_view text) {
  out.reserve(out.size() + text.size() + 2);
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const utf8::Decoded c = utf8::Decode(text, i);
    if (!c.valid) {
      out += utf8::kReplacementBytes;
    } else if (c.code_point < 0x20 || c.code_point == '"' || c.code_point == '\\' ||
               c.code_point == 0x7F) {
      AppendJsonEscape(out, text[i]);
    } else {
      out.append(text, i, c.length);
    }
    i += c.length;
  }
  out += '"';
}

std::string JsonQuoted(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

}  // namespace vivace
