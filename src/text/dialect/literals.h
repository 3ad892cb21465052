// Calls written in other notations than JSON, read as a whole and turned into JSON: Python's
// (Gemma 3, LFM2) and Gemma 4's. Linear in the text; nesting up to limits::kMaxArgumentDepth.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/dialect/tool_set.h"

namespace vivace::dialect {

struct WholeCall {
  std::string name;
  std::string arguments;  // JSON text of an object
};

// `f(a=1, b="x")`, several of them side by side or in a list, each maybe inside print(). Arguments
// without a name take those of the tool's properties in their order. Nothing for anything else.
std::optional<std::vector<WholeCall>> PythonCalls(std::string_view text, const ToolSet& tools);

// `call:f{key:<|"|>text<|"|>,other:3}`; strings also between <escape> marks or in quotes.
std::optional<std::vector<WholeCall>> GemmaCalls(std::string_view text);

}  // namespace vivace::dialect
