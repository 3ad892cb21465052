// What the rarer parts of tokenizers ask about a code point: its general category, its class in the
// several senses of Hugging Face `tokenizers`, its lower case, its grapheme cluster class.
//
// The tables agree with `tokenizers` for every code point (tests/oracles/
// make_unicode_class_tables.py). Lookups cost two loads, maps a binary search; all immutable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "text/unicode_class_tables.h"

namespace vivace::unicode {

enum Category : uint8_t {  // Cn, unassigned, is 0; the others in the order of their names
  kCn,
  kCc,
  kCf,
  kCo,
  kCs,
  kLl,
  kLm,
  kLo,
  kLt,
  kLu,
  kMc,
  kMe,
  kMn,
  kNd,
  kNl,
  kNo,  // NOLINT
  kPc,
  kPd,
  kPe,
  kPf,
  kPi,
  kPo,
  kPs,
  kSc,
  kSk,
  kSm,
  kSo,
  kZl,
  kZp,
  kZs  // NOLINT
};

enum Class : uint16_t {
  kCategoryBits = 31,
  kWord = 32,            // \w of Rust's regex crate
  kPunctuation = 64,     // what `Punctuation` splits at
  kAccent = 128,         // what `StripAccents` drops
  kBertControl = 256,    // what `BertNormalizer` cleans away
  kBertAccent = 512,     // what it strips after decomposing
  kRegexWord = 1024,     // \w of Oniguruma
  kBertSpace = 2048,     // what it makes a space, the space apart
  kBertIdeograph = 4096  // what it puts spaces around
};

inline uint16_t Classes(char32_t c) {
  if (c > 0x10FFFF) return 0;
  return kClassBlocks[kClassIndex[c / kClassBlockSize]][c % kClassBlockSize];
}
inline Category CategoryOf(char32_t c) { return static_cast<Category>(Classes(c) & kCategoryBits); }

enum Cluster : uint8_t {  // Grapheme_Cluster_Break, and pictographs apart from the rest
  kOther,
  kCR,
  kLF,
  kControl,
  kExtend,
  kZwj,
  kRegional,
  kPrepend,
  kSpacingMark,  // NOLINT
  kHangulL,
  kHangulV,
  kHangulT,
  kHangulLV,
  kHangulLVT,
  kPictograph  // NOLINT
};
inline Cluster ClusterOf(char32_t c) {
  if (c > 0x10FFFF) return kOther;
  return static_cast<Cluster>(
      kClusterBlocks[kClusterIndex[c / kClassBlockSize]][c % kClassBlockSize]);
}

// The end of the extended grapheme cluster that begins at `pos` < text.size().
size_t ClusterEnd(std::string_view text, size_t pos);

// A bit for each Category that `name` stands for ("L", "Lu"); 0 for no category.
uint32_t CategoryMask(std::string_view name);
// The ranges of a script by name; empty for one that is not known.
std::span<const ScriptRange> ScriptRanges(std::string_view name);

// Every character lower-cased on its own, as Rust's char::to_lowercase; bad bytes stay.
std::string ToLower(std::string_view text);

// The full compatibility decomposition where it is not the canonical one; else empty.
std::span<const uint32_t> CompatibilityDecomposition(char32_t c);

}  // namespace vivace::unicode
