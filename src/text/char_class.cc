#include "text/char_class.h"

#include <algorithm>

#include "text/unicode.h"
#include "text/unicode_class.h"

namespace vivace {

bool CharClass::HasRangeBeyondAscii() const {
  return std::ranges::any_of(ranges_, [](const Range& range) { return range.last >= 128; });
}

void CharClass::FoldAsciiCase() {
  const std::vector<Range> written = ranges_;
  for (char32_t letter = 'a'; letter <= 'z'; ++letter) {
    const char32_t upper = letter - 'a' + 'A';
    const bool in = std::ranges::any_of(written, [&](const Range& range) {
      return (range.first <= letter && letter <= range.last) ||
             (range.first <= upper && upper <= range.last);
    });
    if (!in) continue;
    AddRange(letter, letter);
    AddRange(upper, upper);
    if (letter == 's') AddRange(0x17F, 0x17F);
    if (letter == 'k') AddRange(0x212A, 0x212A);
  }
}

void CharClass::Seal() {
  for (CharClass& set : sets_) set.Seal();
  for (CharClass& set : also_) set.Seal();
  ascii_ = {};
  for (char32_t c = 0; c < 128; ++c) ascii_[c / 64] |= uint64_t{Test(c)} << (c % 64);
}

bool CharClass::Test(char32_t c) const {
  const uint16_t classes = unicode::Classes(c);
  bool in = (categories_ >> (classes & unicode::kCategoryBits) & 1) != 0 ||
            (word_ && (classes & unicode::kRegexWord) != 0) ||
            (space_ && (unicode::Properties(c) & unicode::kSpace) != 0);
  for (size_t i = 0; !in && i < ranges_.size(); ++i) {
    in = ranges_[i].first <= c && c <= ranges_[i].last;
  }
  for (size_t i = 0; !in && i < sets_.size(); ++i) in = sets_[i].Contains(c);
  for (size_t i = 0; in && i < also_.size(); ++i) in = also_[i].Contains(c);
  return in != negated_;
}

}  // namespace vivace
