// A GGUF model in one file or in parts (name-00001-of-00003.gguf, as llama-gguf-split writes them):
// opening the first opens all. Metadata is the first part's; tensors are spread over all of them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"

namespace vivace::formats {

// All parts, in order; they agree on their number, on their places and on how many tensors there
// are, and no tensor is in two of them. Errors name the part: bad_split, missing_part and those of
// GgufFile::Open.
Result<std::vector<GgufFile>> OpenGgufParts(const std::string& path);

}  // namespace vivace::formats
