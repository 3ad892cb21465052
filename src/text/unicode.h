// What the pre-tokenizers and normalisers ask about a code point, and NFC.
//
// The tables agree with Hugging Face `tokenizers` for every code point (see
// tests/oracles/make_unicode_tables.py for the Unicode versions behind them). Lookups cost two
// loads; everything is immutable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "text/unicode_tables.h"

namespace vivace::unicode {

enum Property : uint8_t {
  kLetter = 1,     // \p{L}
  kNumber = 2,     // \p{N}
  kMark = 4,       // \p{M}
  kSpace = 8,      // \s
  kNumeric = 16,   // what the `Digits` pre-tokenizer splits off: \p{N} of a newer Unicode
  kNfcActive = 32  // NFC may change it, or what stands before it
};

// Property bits; 0 for anything that is not a code point.
inline uint8_t Properties(char32_t c) {
  if (c > 0x10FFFF) return 0;
  return kBlocks[kBlockIndex[c / kBlockSize]][c % kBlockSize];
}

// Whether ToNfc would look at anything in `text`; false means it is in NFC already.
bool MayChangeInNfc(std::string_view text);

// Canonical composition, as Hugging Face's `NFC` normaliser has it. Invalid bytes stay as they are.
// Linear but for the sorting of one run of combining marks (n log n).
std::string ToNfc(std::string_view text);

// The other forms, as `NFD`, `NFKD` and `NFKC` have them. O(n log n) at worst, 8 bytes a character.
enum class Form : uint8_t { kNfc, kNfd, kNfkc, kNfkd };
std::string Normalize(std::string_view text, Form form);

}  // namespace vivace::unicode
