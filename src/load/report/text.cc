#include "load/report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/utf8.h"

namespace vivace::load {
namespace {

constexpr size_t kMostNameCharacters = 1'000;
constexpr std::string_view kLeftOut = "...";

size_t DistinctOf(const std::vector<std::string>& texts) {
  return std::set<std::string>(texts.begin(), texts.end()).size();
}

}  // namespace

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

std::string CutInMiddle(std::string_view text, size_t most) {
  const std::string clean = Printable(text, kMostNameCharacters);
  std::vector<size_t> begins;  // of its characters
  for (size_t i = 0; i < clean.size(); ++i) {
    if ((clean[i] & 0xC0) != 0x80) begins.push_back(i);
  }
  most = std::max(most, kLeftOut.size() + 2);
  if (begins.size() <= most) return clean;
  const size_t kept = most - kLeftOut.size(), head = kept / 2;
  return clean.substr(0, begins[head]) + std::string(kLeftOut) +
         clean.substr(begins[begins.size() - (kept - head)]);
}

std::vector<std::string> CutApart(const std::vector<std::string>& texts, size_t most) {
  const auto cut_to = [&texts](size_t length) {
    std::vector<std::string> cut;
    for (const std::string& text : texts) cut.push_back(CutInMiddle(text, length));
    return cut;
  };
  const size_t distinct = DistinctOf(cut_to(kMostNameCharacters));
  std::vector<std::string> cut = cut_to(most);
  while (DistinctOf(cut) < distinct) cut = cut_to(most += most / 2);
  return cut;
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
