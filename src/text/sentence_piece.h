// SentencePiece models, as pipelines of the same steps that Hugging Face's conversions of them
// have, and the reader of `tokenizer.model`, SentencePiece's own file.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/tokenizer_data.h"

namespace vivace::sentence_piece {

// The BPE kind: characters, <0xNN> for what has no token, pairs merged by score. `prefix`: a space
// before each stretch of text. `data` has its tokens, types, scores and unknown token.
void SetUpBpe(bool prefix, TokenizerData* data);

struct UnigramOptions {
  std::string_view charsmap;  // may be empty
  bool dummy_prefix = true;
  bool remove_extra_spaces = true;
  bool byte_fallback = false;
};
Status SetUpUnigram(const UnigramOptions& options, TokenizerData* data);

// A `tokenizer.model`: a protocol buffer, read with every length checked; nothing is kept of
// `bytes`.
Result<TokenizerData> ReadModel(std::string_view bytes);

}  // namespace vivace::sentence_piece
