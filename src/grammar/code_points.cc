#include "grammar/code_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace vivace::grammar {
namespace {

constexpr char32_t kLast = 0x10FFFF;

void AppendEndpoint(char32_t code, std::string* out) {
  const bool plain =
      (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z');
  if (plain) {
    out->push_back(static_cast<char>(code));
  } else if (code <= 0xFFFF) {
    fmt::format_to(std::back_inserter(*out), "\\u{:04X}", static_cast<uint32_t>(code));
  } else {
    fmt::format_to(std::back_inserter(*out), "\\U{:08X}", static_cast<uint32_t>(code));
  }
}

}  // namespace

CodePoints CodePoints::All() { return {{1, 0xD7FF}, {0xE000, kLast}}; }

void CodePoints::Add(char32_t low, char32_t high) {
  CodePoints one;
  one.ranges_.push_back({low, high});
  Add(one);
}

void CodePoints::Add(const CodePoints& other) {
  std::vector<Range> both;
  both.reserve(ranges_.size() + other.ranges_.size());
  std::ranges::merge(ranges_, other.ranges_, std::back_inserter(both), {}, &Range::low,
                     &Range::low);
  ranges_.clear();
  for (const Range& range : both) {
    if (!ranges_.empty() && range.low <= ranges_.back().high + 1) {
      ranges_.back().high = std::max(ranges_.back().high, range.high);
    } else {
      ranges_.push_back(range);
    }
  }
}

CodePoints CodePoints::Complement() const {
  CodePoints gaps;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.low > next) gaps.ranges_.push_back({next, range.low - 1});
    next = range.high + 1;
  }
  if (next <= kLast) gaps.ranges_.push_back({next, kLast});
  return gaps.Intersect(All());
}

CodePoints CodePoints::Intersect(const CodePoints& other) const {
  CodePoints both;
  for (size_t i = 0, j = 0; i < ranges_.size() && j < other.ranges_.size();) {
    const char32_t low = std::max(ranges_[i].low, other.ranges_[j].low);
    const char32_t high = std::min(ranges_[i].high, other.ranges_[j].high);
    if (low <= high) both.ranges_.push_back({low, high});
    if (ranges_[i].high < other.ranges_[j].high) {
      ++i;
    } else {
      ++j;
    }
  }
  return both;
}

std::string CodePoints::ToClass() const {
  std::string out = "[";
  for (const Range& range : ranges_) {
    AppendEndpoint(range.low, &out);
    if (range.high == range.low) continue;
    out.push_back('-');
    AppendEndpoint(range.high, &out);
  }
  out.push_back(']');
  return out;
}

}  // namespace vivace::grammar
