// What turns a model's text into tokens and back: its tokenizer and chat template, read from where
// its format keeps them. Load time, any thread.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "model/loaded_model.h"
#include "text/tokenizer.h"

namespace vivace {

struct ModelText {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<TokenId> eos_ids;      // the tokenizer's and the model's own
  std::string chat_template_source;  // empty: there is none
};

// Errors are one line that begins with the file's path. A vocabulary larger than the model's is
// vocab_mismatch.
Result<ModelText> ReadModelText(const model::ModelFile& file);

// The chat template alone, of a path that LoadTokenizer takes; empty: there is none.
Result<std::string> ReadChatTemplate(const std::string& path);

}  // namespace vivace
