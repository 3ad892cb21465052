// What the protocol needs to know of the model that is served. Immutable once the server runs;
// shared by all threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "grammar/grammar.h"
#include "text/chat_template.h"
#include "text/dialect/dialect.h"
#include "text/tokenizer.h"

namespace vivace::server {

struct ServedModel {
  std::vector<std::string> names;  // the first is shown in answers
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;  // null: chat is refused
  std::shared_ptr<GrammarCompiler> grammar;           // null: outputs cannot be constrained
  Dialect dialect;                                    // of its template and vocabulary
  std::vector<TokenId> eos_ids;
  int32_t vocab = 0;  // ids the engine takes
  int32_t max_model_len = 0;
  int64_t created_s = 0;           // shown by /v1/models
  size_t longest_token_bytes = 1;  // see LongestTokenBytes

  const std::string& name() const { return names.front(); }
  // kNotFound "model_not_found" for a name that is not served; absent is the model there is.
  Status CheckName(const std::optional<std::string>& wanted) const;
};

size_t LongestTokenBytes(const Tokenizer& tokenizer);

}  // namespace vivace::server
