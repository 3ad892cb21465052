// The generated arrays behind text/unicode.h; nothing else includes this.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vivace::unicode {

inline constexpr uint32_t kBlockSize = 128;

struct CombiningClass {
  uint32_t code_point;
  uint8_t value;
};
struct Decomposition {
  uint32_t code_point;
  uint16_t offset;  // of its full canonical decomposition in kDecompositionPool
  uint8_t length;
};
struct Composition {
  uint32_t first, second, composed;
};

// Two stages: kBlocks[kBlockIndex[c / kBlockSize]][c % kBlockSize] holds the property bits of c.
extern const uint8_t kBlockIndex[];
extern const uint8_t kBlocks[][kBlockSize];
// Sorted by their first members. Hangul syllables follow a rule and are not in them.
extern const CombiningClass kCombiningClasses[];
extern const Decomposition kDecompositions[];
extern const uint32_t kDecompositionPool[];
extern const Composition kCompositions[];
extern const size_t kCombiningClassCount;
extern const size_t kDecompositionCount;
extern const size_t kCompositionCount;

}  // namespace vivace::unicode
