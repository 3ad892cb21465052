#include "text/detokenizer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace vivace {

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special,
                         std::vector<TokenId> shown)
    : tokenizer_(std::move(tokenizer)), skip_special_(skip_special), shown_(std::move(shown)) {
  if (!tokenizer_->decodes_bytes()) stream_.emplace(tokenizer_->decoder());
}

std::string_view Detokenizer::Push(TokenId id) {
  out_.clear();
  if (skip_special_ && tokenizer_->IsSpecial(id) &&
      std::find(shown_.begin(), shown_.end(), id) == shown_.end()) {
    return out_;
  }
  if (stream_) {
    if (tokenizer_->Contains(id)) stream_->Push(tokenizer_->TokenName(id), &out_);
    return out_;
  }
  pending_.append(tokenizer_->TokenBytes(id));
  pending_.erase(0, utf8::AppendRepaired(pending_, &out_));
  return out_;
}

std::string_view Detokenizer::Finish() {
  out_.assign(pending_.empty() ? std::string_view() : utf8::kReplacementBytes);
  pending_.clear();
  if (stream_) stream_->Finish(&out_);
  return out_;
}

}  // namespace vivace
