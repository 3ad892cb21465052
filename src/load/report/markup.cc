#include <string>

#include "base/utf8.h"
#include "load/report/svg_plot.h"

namespace vivace::load {
namespace {

// XML 1.0 allows tab, line feed, carriage return and what is not a control or a surrogate.
bool Allowed(char32_t c) {
  return c == '\t' || c == '\n' || c == '\r' ||
         (c >= 0x20 && !(c >= 0x7F && c < 0xA0) && c != 0xFFFE && c != 0xFFFF);
}

// Marks that turn the direction of what follows, and so what a page seems to say.
bool Turns(char32_t c) {
  return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0x200E || c == 0x200F;
}

}  // namespace

std::string EscapeMarkup(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const utf8::Decoded d = utf8::Decode(text, pos);
    if (!d.valid || !Allowed(d.code_point) || Turns(d.code_point)) {
      out += utf8::kReplacementBytes;
    } else if (d.code_point == '&') {
      out += "&amp;";
    } else if (d.code_point == '<') {
      out += "&lt;";
    } else if (d.code_point == '>') {
      out += "&gt;";
    } else if (d.code_point == '"') {
      out += "&quot;";
    } else if (d.code_point == '\'') {
      out += "&#39;";
    } else {
      out.append(text.substr(pos, d.length));
    }
    pos += d.length;
  }
  return out;
}

}  // namespace vivace::load
