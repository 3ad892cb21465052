// A tokenizer from a path: a GGUF file, a tokenizer.json, or a folder that holds one.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "text/tokenizer.h"

namespace vivace {

// Errors are one line that begins with the path.
Result<std::shared_ptr<const Tokenizer>> LoadTokenizer(const std::string& path);

}  // namespace vivace
