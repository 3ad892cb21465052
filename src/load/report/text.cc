#include "load/report/text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/utf8.h"

namespace vivace::load {

std::string Printable(std::string_view text, size_t most) {
  std::string out;
  size_t characters = 0;
  for (size_t pos = 0; pos < text.size(); ++characters) {
    if (characters == most) return out + "...";
    const utf8::Decoded d = utf8::Decode(text, pos);
    const bool control = d.code_point < 0x20 || (d.code_point >= 0x7F && d.code_point < 0xA0);
    if (!d.valid) {
      out += utf8::kReplacementBytes;
    } else if (control) {
      out += ' ';
    } else {
      out.append(text.substr(pos, d.length));
    }
    pos += d.length;
  }
  return out;
}

std::string Figure(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size >= 1000) {
    const auto digits = fmt::to_string(static_cast<int64_t>(std::llround(std::min(size, 9e18))));
    std::string grouped;
    for (size_t i = 0; i < digits.size(); ++i) {
      if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
      grouped += digits[i];
    }
    return (value < 0 ? "-" : "") + grouped;
  }
  return size >= 100              ? fmt::format("{:.1f}", value)
         : size >= 1 || size == 0 ? fmt::format("{:.2f}", value)
                                  : fmt::format("{:.3g}", value);
}

}  // namespace vivace::load
