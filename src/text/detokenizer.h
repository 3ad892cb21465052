// Detokenizer: the text of one choice, token by token.
//
// Push gives the characters that the new token completes: valid UTF-8, never half a character.
// Bytes that begin a character are held back until the rest comes, and so is whatever else a later
// token may still change (see text/decoder.h); what cannot become a character is U+FFFD. All deltas
// joined equal Tokenizer::Decode of all the ids. Owned by one thread; after the first tokens hardly
// anything is allocated (text/decoder.h says what).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/tokenizer.h"

namespace vivace {

class Detokenizer {
 public:
  // `shown`: control tokens that are not left out though `skip_special` is set.
  Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special,
              std::vector<TokenId> shown = {});

  // The view holds until the next call.
  std::string_view Push(TokenId id);
  // The end: what was held back. Then as new.
  std::string_view Finish();

  bool holds_back() const { return stream_ ? stream_->holds_back() : !pending_.empty(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_;
  std::vector<TokenId> shown_;
  std::optional<Decoder::Stream> stream_;  // where tokens are not simply their bytes
  std::string pending_;  // the begin of a character, at most 3 bytes between calls
  std::string out_;
};

}  // namespace vivace
