// The JSON header of a safetensors file as plain records: syntax, types of fields and duplicates
// inside an entry are checked here; what the numbers mean is checked by SafetensorsFile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace vivace::formats {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;                      // in file order
  std::vector<std::pair<std::string, std::string>> metadata;  // in file order
};

// `json` is the header without its length; its size was checked. The error's message does not name
// the file. Linear; one pass of a streaming parser, nesting bounded by kMaxSafetensorsDepth.
Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json);

}  // namespace vivace::formats
