#include "text/jinja/unicode.h"

#include <algorithm>

#include "text/jinja/str.h"

namespace vivace::jinja {
namespace {

template <typename Range>
const Range* Find(std::span<const Range> ranges, char32_t code) {
  const auto it = std::upper_bound(ranges.begin(), ranges.end(), code,
                                   [](char32_t c, const Range& range) { return c < range.first; });
  if (it == ranges.begin() || code > std::prev(it)->last) return nullptr;
  return &*std::prev(it);
}

bool In(std::span<const CodeRange> ranges, char32_t code) { return Find(ranges, code) != nullptr; }

void AppendMapped(std::span<const CaseRange> ranges, char32_t code, std::string& out) {
  const CaseRange* range = Find(ranges, code);
  const bool hit = range != nullptr && (code - range->first) % range->stride == 0;
  AppendUtf8(hit ? static_cast<char32_t>(static_cast<int32_t>(code) + range->delta) : code, out);
}

bool AppendSpecial(std::span<const SpecialCase> table, char32_t code, std::string& out) {
  const auto it = std::lower_bound(table.begin(), table.end(), code,
                                   [](const SpecialCase& s, char32_t c) { return s.code < c; });
  if (it == table.end() || it->code != code) return false;
  out += it->utf8;
  return true;
}

}  // namespace

bool IsSpace(char32_t c) {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}
bool IsAlpha(char32_t c) {
  return c < 0x80 ? (c | 0x20) >= 'a' && (c | 0x20) <= 'z' : In(kAlphaRanges, c);
}
bool IsDecimal(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : In(kDecimalRanges, c); }
bool IsDigitChar(char32_t c) { return IsDecimal(c) || In(kDigitRanges, c); }
bool IsNumeric(char32_t c) { return IsDigitChar(c) || In(kNumericRanges, c); }
bool IsAlnum(char32_t c) { return IsAlpha(c) || IsNumeric(c); }
bool IsPrintable(char32_t c) { return c < 0x7F ? c >= 0x20 : !In(kUnprintableRanges, c); }
bool IsUpper(char32_t c) { return c < 0x80 ? c >= 'A' && c <= 'Z' : In(kUpperRanges, c); }
bool IsLower(char32_t c) { return c < 0x80 ? c >= 'a' && c <= 'z' : In(kLowerRanges, c); }
bool IsCased(char32_t c) { return IsUpper(c) || IsLower(c) || In(kTitleRanges, c); }

void AppendUpper(char32_t c, std::string& out) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(IsLower(c) ? c - 32 : c));
  } else if (!AppendSpecial(kSpecialUpper, c, out)) {
    AppendMapped(kToUpper, c, out);
  }
}
void AppendTitle(char32_t c, std::string& out) {
  if (!AppendSpecial(kSpecialTitle, c, out)) AppendUpper(c, out);
}
void AppendLower(char32_t c, std::string& out) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(IsUpper(c) ? c + 32 : c));
  } else if (c == 0x130) {
    out += "i\xCC\x87";  // the one lower-case mapping to two code points
  } else {
    AppendMapped(kToLower, c, out);
  }
}

size_t StripLeftOffset(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    size_t next = at;
    if (!IsSpace(NextCodePoint(text, next))) break;
    at = next;
  }
  return at;
}

size_t StripRightOffset(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t begin = end - 1;
    while (begin > 0 && end - begin < 4 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) {
      --begin;
    }
    size_t at = begin;
    if (!IsSpace(NextCodePoint(text, at)) || at != end) break;
    end = begin;
  }
  return end;
}

}  // namespace vivace::jinja
