// A tokenizer from a path: a GGUF file, a tokenizer.json, a SentencePiece tokenizer.model, or a
// folder that holds one of the last two. In a folder, tokenizer_config.json and
// generation_config.json, where they are, say which tokens begin and end an answer.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "text/tokenizer.h"

namespace vivace {

// Errors are one line that begins with the path of the file at fault.
Result<std::shared_ptr<const Tokenizer>> LoadTokenizer(const std::string& path);

}  // namespace vivace
