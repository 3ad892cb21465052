#include "server/openai/served_model.h"

#include <algorithm>

#include "base/utf8.h"

namespace vivace::server {

Status ServedModel::CheckName(const std::optional<std::string>& wanted) const {
  if (!wanted || std::find(names.begin(), names.end(), *wanted) != names.end()) return {};
  constexpr size_t kMaxShownBytes = 128;
  return Fail(ErrorCode::kNotFound, "model_not_found", "model",
              "the model `{}` is not served here; `{}` is",
              utf8::Repair(wanted->substr(0, kMaxShownBytes)), name());
}

size_t LongestTokenBytes(const Tokenizer& tokenizer) {
  size_t longest = 1;
  for (size_t id = 0; id < tokenizer.vocab_size(); ++id) {
    longest = std::max(longest, tokenizer.TokenBytes(static_cast<TokenId>(id)).size());
  }
  return longest;
}

}  // namespace vivace::server
