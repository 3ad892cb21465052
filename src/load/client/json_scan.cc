#include "load/client/json_scan.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace vivace::load {
namespace {

constexpr double kMostExact = 9e15;  // whole numbers that a double holds

bool IsWordCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '+' || c == '.';
}

bool IsJsonWord(std::string_view word) {
  if (word == "true" || word == "false" || word == "null") return true;
  return !word.empty() && (word[0] == '-' || (word[0] >= '0' && word[0] <= '9'));
}

// The four digits of \uXXXX, from raw[at] on; false where they are none.
bool ReadHex(std::string_view raw, size_t at, uint32_t* code) {
  if (at + 4 > raw.size()) return false;
  const char* begin = raw.data() + at;
  const auto read = std::from_chars(begin, begin + 4, *code, 16);
  return read.ec == std::errc() && read.ptr == begin + 4;
}

// The character of the \u escape whose digits begin at `at`; returns where it ends.
size_t AppendUnicodeEscape(std::string_view raw, size_t at, std::string* out) {
  uint32_t code = 0, low = 0;
  if (!ReadHex(raw, at, &code)) {
    utf8::Append(utf8::kReplacement, out);
    return at;
  }
  at += 4;
  if (code >= 0xD800 && code < 0xDC00 && raw.substr(at).starts_with("\\u") &&
      ReadHex(raw, at + 2, &low) && low >= 0xDC00 && low < 0xE000) {
    utf8::Append(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00), out);
    return at + 6;
  }
  utf8::Append(code >= 0xD800 && code < 0xE000 ? utf8::kReplacement : code, out);
  return at;
}

}  // namespace

char JsonScanner::Peek() {
  while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
  return ok_ && at_ < end_ ? *at_ : '\0';
}

bool JsonScanner::Take(char c) {
  if (Peek() != c) return Fault();
  ++at_;
  return true;
}

bool JsonScanner::Member(std::string_view* name) {
  if (Peek() == ',') ++at_;
  if (Peek() == '}') {
    ++at_;
    return false;
  }
  return String(name) && Take(':');
}

bool JsonScanner::Item() {
  if (Peek() == ',') ++at_;
  const char c = Peek();
  if (c == ']') {
    ++at_;
    return false;
  }
  return c != 0 || Fault();
}

bool JsonScanner::String(std::string_view* raw) {
  if (!Take('"')) return false;
  const char* begin = at_;
  for (; at_ < end_; ++at_) {
    if (*at_ == '"') {
      *raw = std::string_view(begin, static_cast<size_t>(at_ - begin));
      ++at_;
      return true;
    }
    if (*at_ == '\\' && ++at_ == end_) break;
  }
  return Fault();
}

bool JsonScanner::Int(int64_t* value) {
  Peek();
  const char* end = std::find_if_not(at_, end_, IsWordCharacter);
  const auto digits = std::from_chars(at_, end, *value);
  if (digits.ec != std::errc() || digits.ptr != end) {
    double number = 0;
    const auto read = std::from_chars(at_, end, number);
    const bool whole = std::trunc(number) == number && std::abs(number) <= kMostExact;
    if (read.ec != std::errc() || read.ptr != end || !whole) return Fault();
    *value = static_cast<int64_t>(number);
  }
  at_ = end;
  return ok_;
}

bool JsonScanner::SkipWord() {
  const char* begin = at_;
  while (at_ < end_ && IsWordCharacter(*at_)) ++at_;
  return IsJsonWord(std::string_view(begin, static_cast<size_t>(at_ - begin))) || Fault();
}

// Without recursion: one bit a level says whether it is an object.
bool JsonScanner::Skip() {
  uint64_t objects = 0;
  int depth = 0;
  do {
    std::string_view ignored;
    const char c = Peek();
    if (c == '{' || c == '[') {
      if (depth == kDepth) return Fault();
      objects = objects << 1 | (c == '{' ? 1 : 0);
      ++depth;
      ++at_;
    } else if (depth > 0 && (c == '}' || c == ']')) {
      if (((objects & 1) != 0) != (c == '}')) return Fault();
      objects >>= 1;
      --depth;
      ++at_;
    } else if (depth > 0 && (c == ',' || c == ':')) {
      ++at_;
    } else if (c == '"') {
      if (!String(&ignored)) return false;
    } else if (!SkipWord()) {
      return false;
    }
  } while (depth > 0);
  return true;
}

void AppendUnescaped(std::string_view raw, std::string* out) {
  for (size_t i = 0; i < raw.size();) {
    const size_t plain = std::min(raw.find('\\', i), raw.size());
    out->append(raw.substr(i, plain - i));
    i = plain + 1;
    if (i >= raw.size()) return;
    const char c = raw[i++];
    switch (c) {
      case 'n':
        out->push_back('\n');
        break;
      case 't':
        out->push_back('\t');
        break;
      case 'r':
        out->push_back('\r');
        break;
      case 'b':
        out->push_back('\b');
        break;
      case 'f':
        out->push_back('\f');
        break;
      case 'u':
        i = AppendUnicodeEscape(raw, i, out);
        break;
      default:
        out->push_back(c);
    }
  }
}

}  // namespace vivace::load
