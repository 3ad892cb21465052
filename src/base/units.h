// Numbers as people write them on a command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace vivace {

// "4096", "32k" (32,000), "32K" and "32Ki" (32,768), "1.5M": vLLM's reading, lower case decimal,
// upper case binary. `field` names the flag in the error.
Result<int64_t> ParseCount(std::string_view text, std::string_view field);

// The same with an optional B: "4GiB" and "4G" are 2^32, "4GB" and "4g" are 4e9, "512MiB".
Result<int64_t> ParseBytes(std::string_view text, std::string_view field);

// "94.0 MiB"; for people.
std::string FormatBytes(uint64_t bytes);

}  // namespace vivace
