#include "text/unicode.h"

#include <algorithm>
#include <span>
#include <vector>

#include "text/unicode_class.h"

namespace vivace::unicode {
namespace {

struct Mark {
  char32_t code_point;
  int combining_class;
};

// Hangul syllables compose and decompose by arithmetic (Unicode, section 3.12).
constexpr char32_t kSyllableBase = 0xAC00, kLeadBase = 0x1100, kVowelBase = 0x1161;
constexpr char32_t kTailBase = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

bool IsSyllable(char32_t c) { return c - kSyllableBase < kSyllableCount; }

int ClassOf(char32_t c) {
  const CombiningClass* end = kCombiningClasses + kCombiningClassCount;
  const CombiningClass* found = std::lower_bound(
      kCombiningClasses, end, c,
      [](const CombiningClass& entry, char32_t value) { return entry.code_point < value; });
  return found != end && found->code_point == c ? found->value : 0;
}

constexpr char32_t kAsciiEnd = 0x80;  // below it nothing decomposes or combines

void Decompose(char32_t c, std::vector<Mark>* out) {
  if (c < kAsciiEnd) {
    out->push_back({c, 0});
    return;
  }
  if (IsSyllable(c)) {
    const char32_t index = c - kSyllableBase;
    out->push_back({kLeadBase + index / (kVowelCount * kTailCount), 0});
    out->push_back({kVowelBase + index / kTailCount % kVowelCount, 0});
    if (index % kTailCount != 0) out->push_back({kTailBase + index % kTailCount, 0});
    return;
  }
  const Decomposition* end = kDecompositions + kDecompositionCount;
  const Decomposition* found = std::lower_bound(
      kDecompositions, end, c,
      [](const Decomposition& entry, char32_t value) { return entry.code_point < value; });
  if (found == end || found->code_point != c) {
    out->push_back({c, ClassOf(c)});
    return;
  }
  for (int i = 0; i < found->length; ++i) {
    const char32_t part = kDecompositionPool[found->offset + i];
    out->push_back({part, ClassOf(part)});
  }
}

// The code point that stands for `first` followed by `second`, or 0.
char32_t Compose(char32_t first, char32_t second) {
  if (first - kLeadBase < kLeadCount && second - kVowelBase < kVowelCount) {
    return kSyllableBase + ((first - kLeadBase) * kVowelCount + (second - kVowelBase)) * kTailCount;
  }
  if (IsSyllable(first) && (first - kSyllableBase) % kTailCount == 0 && second > kTailBase &&
      second < kTailBase + kTailCount) {
    return first + (second - kTailBase);
  }
  const Composition* end = kCompositions + kCompositionCount;
  const auto less = [](const Composition& a, const Composition& b) {
    return a.first != b.first ? a.first < b.first : a.second < b.second;
  };
  const Composition* found =
      std::lower_bound(kCompositions, end, Composition{first, second, 0}, less);
  return found != end && found->first == first && found->second == second ? found->composed : 0;
}

// Canonical ordering: marks between two starters sort by class, equal classes keep their order.
void Reorder(std::vector<Mark>* marks) {
  const auto is_mark = [](const Mark& mark) { return mark.combining_class != 0; };
  for (auto begin = marks->begin(); begin != marks->end();) {
    begin = std::find_if(begin, marks->end(), is_mark);
    const auto end = std::find_if_not(begin, marks->end(), is_mark);
    std::stable_sort(begin, end, [](const Mark& a, const Mark& b) {
      return a.combining_class < b.combining_class;
    });
    begin = end;
  }
}

// Joins each starter with what follows it and is not blocked; in place.
void ComposeAll(std::vector<Mark>* marks) {
  constexpr int kNothingBetween = -1;
  size_t kept = 0;
  size_t starter = marks->size();  // none yet
  int last_class = kNothingBetween;
  for (size_t i = 0; i < marks->size(); ++i) {
    const Mark mark = (*marks)[i];
    if (starter < kept && last_class < mark.combining_class) {
      if (const char32_t joined = Compose((*marks)[starter].code_point, mark.code_point)) {
        (*marks)[starter].code_point = joined;
        continue;
      }
    }
    last_class = mark.combining_class;
    if (mark.combining_class == 0) {
      starter = kept;
      last_class = kNothingBetween;
    }
    (*marks)[kept++] = mark;
  }
  marks->resize(kept);
}

bool IsActive(const utf8::Decoded& c) {
  return c.valid && (Properties(c.code_point) & kNfcActive) != 0;
}

}  // namespace

bool MayChangeInNfc(std::string_view text) {
  for (size_t pos = 0; pos < text.size();) {
    const utf8::Decoded c = utf8::Decode(text, pos);
    if (IsActive(c)) return true;
    pos += c.length;
  }
  return false;
}

std::string ToNfc(std::string_view text) {
  // A code point that is not active starts afresh: nothing before it can change it. So only a
  // starter with the active code points after it needs the full algorithm; the rest is copied.
  std::string out;
  out.reserve(text.size());
  std::vector<Mark> marks;
  size_t copied = 0;  // text[copied, pos) is not yet in `out`
  size_t pos = 0;
  utf8::Decoded last = {0, 0, false, false};  // the character before pos
  while (pos < text.size()) {
    utf8::Decoded c = utf8::Decode(text, pos);
    if (!IsActive(c)) {
      last = c;
      pos += c.length;
      continue;
    }
    marks.clear();
    const size_t begin = pos - (last.valid ? last.length : 0);
    out.append(text, copied, begin - copied);
    if (last.valid) Decompose(last.code_point, &marks);
    while (IsActive(c)) {
      Decompose(c.code_point, &marks);
      pos += c.length;
      if (pos == text.size()) break;
      c = utf8::Decode(text, pos);
    }
    Reorder(&marks);
    ComposeAll(&marks);
    for (const Mark& mark : marks) utf8::Append(mark.code_point, &out);
    copied = pos;
    last.valid = false;
  }
  out.append(text, copied, pos - copied);
  return out;
}

std::string Normalize(std::string_view text, Form form) {
  if (form == Form::kNfc) return ToNfc(text);
  constexpr char32_t kBadByte = 0x110000;  // and up: bytes that are no character, kept as they are
  const bool compatible = form == Form::kNfkc || form == Form::kNfkd;
  std::vector<Mark> marks;
  marks.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const utf8::Decoded c = utf8::Decode(text, pos);
    if (!c.valid) {
      for (int i = 0; i < c.length; ++i) {
        marks.push_back({kBadByte + static_cast<unsigned char>(text[pos + i]), 0});
      }
    } else {
      std::span<const uint32_t> parts;
      if (compatible && c.code_point >= kAsciiEnd) parts = CompatibilityDecomposition(c.code_point);
      for (const uint32_t part : parts) marks.push_back({part, ClassOf(part)});
      if (parts.empty()) Decompose(c.code_point, &marks);
    }
    pos += c.length;
  }
  Reorder(&marks);
  if (form == Form::kNfkc) ComposeAll(&marks);
  std::string out;
  out.reserve(text.size());
  for (const Mark& mark : marks) {
    if (mark.code_point < kBadByte) {
      utf8::Append(mark.code_point, &out);
    } else {
      out.push_back(static_cast<char>(mark.code_point - kBadByte));
    }
  }
  return out;
}

}  // namespace vivace::unicode
