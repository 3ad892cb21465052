// TokenizerData from the metadata of a GGUF file.
//
// By tokenizer.ggml.model: byte-level BPE ("gpt2"), SentencePiece's BPE ("llama") and unigram
// ("t5"), word pieces ("bert"). The pre-tokenizer of byte-level BPE is never guessed: an unknown or
// missing tokenizer.ggml.pre is an error that names it. Strings are copied; the file may go.
#pragma once

#include <memory>

#include "base/result.h"
#include "formats/gguf.h"
#include "text/tokenizer.h"
#include "text/tokenizer_data.h"

namespace vivace {

Result<TokenizerData> TokenizerFromGguf(const formats::GgufFile& file);

// The same, built. Errors begin with the file's path.
Result<std::shared_ptr<const Tokenizer>> TokenizerOf(const formats::GgufFile& file);

}  // namespace vivace
