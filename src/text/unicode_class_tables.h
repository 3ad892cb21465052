// The generated arrays behind text/unicode_class.h; nothing else includes this.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vivace::unicode {

inline constexpr uint32_t kClassBlockSize = 128;

struct CharacterMap {
  uint32_t code_point;
  uint16_t offset;  // of its image in the pool
  uint8_t length;
};
struct ScriptRange {
  uint32_t first, last;
};
struct Script {
  const char* name;
  uint16_t offset, count;  // in kScriptRanges
};

// Two stages: blocks[index[c / kClassBlockSize]][c % kClassBlockSize].
extern const uint16_t kClassIndex[];
extern const uint16_t kClassBlocks[][kClassBlockSize];
extern const uint16_t kClusterIndex[];
extern const uint8_t kClusterBlocks[][kClassBlockSize];
// Sorted by their first members.
extern const ScriptRange kScriptRanges[];
extern const Script kScripts[];
extern const size_t kScriptCount;
extern const CharacterMap kLowerMap[];
extern const uint32_t kLowerPool[];
extern const size_t kLowerCount;
extern const CharacterMap kCompatibilityMap[];
extern const uint32_t kCompatibilityPool[];
extern const size_t kCompatibilityCount;

}  // namespace vivace::unicode
