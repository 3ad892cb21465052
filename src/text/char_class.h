// CharClass: a set of characters as a pattern writes it: ranges, Unicode categories, \w and \s,
// other sets, all of them perhaps negated. One load for ASCII, a few tests for the rest.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace vivace {

class CharClass {
 public:
  void AddRange(char32_t first, char32_t last) { ranges_.push_back({first, last}); }
  void AddCategories(uint32_t mask) { categories_ |= mask; }
  void AddSpace() { space_ = true; }
  void AddWord() { word_ = true; }
  void AddSet(CharClass set) { sets_.push_back(std::move(set)); }
  void IntersectWith(CharClass set) { also_.push_back(std::move(set)); }
  void Negate() { negated_ = !negated_; }
  // Adds the other case of its ASCII letters, and U+017F and U+212A, which fold to s and k.
  void FoldAsciiCase();
  bool HasOnlyRanges() const { return categories_ == 0 && !space_ && !word_ && sets_.empty(); }
  bool HasRangeBeyondAscii() const;
  // To be called once, after the last change; before it Contains may not be asked.
  void Seal();

  bool Contains(char32_t c) const {
    return c < 128 ? (ascii_[c / 64] >> (c % 64) & 1) != 0 : Test(c);
  }

  const std::array<uint64_t, 2>& ascii() const { return ascii_; }

 private:
  struct Range {
    char32_t first, last;
  };
  bool Test(char32_t c) const;

  std::array<uint64_t, 2> ascii_{};
  std::vector<Range> ranges_;
  std::vector<CharClass> sets_;
  std::vector<CharClass> also_;
  uint32_t categories_ = 0;  // 1 << unicode::Category
  bool space_ = false, word_ = false, negated_ = false;
};

}  // namespace vivace
