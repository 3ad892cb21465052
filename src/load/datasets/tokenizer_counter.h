// Counts a dataset's tokens with a tokenizer in this process, and with the model's chat template if
// it is there. One thread.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "load/datasets/dataset.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace vivace::load {

class TokenizerCounter final : public TokenCounter {
 public:
  explicit TokenizerCounter(std::shared_ptr<const Tokenizer> tokenizer,
                            std::string chat_template = {})
      : tokenizer_(std::move(tokenizer)), chat_template_(std::move(chat_template)) {}

  Result<std::vector<int32_t>> Encode(std::string_view text) override {
    return tokenizer_->Encode(text);
  }
  Result<std::string> Decode(std::span<const int32_t> ids) override {
    return tokenizer_->Decode(ids, /*skip_special=*/false);
  }
  int32_t vocab_size() const override { return static_cast<int32_t>(tokenizer_->vocab_size()); }
  Result<int32_t> ChatOverhead() override;

 private:
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const std::string chat_template_;  // source; empty: not known
};

// Messages as the prompt that a server of the model makes of them.
Result<std::vector<int32_t>> ChatTokens(const Tokenizer& tokenizer,
                                        const ChatTemplate& chat_template,
                                        boost::json::array messages);

}  // namespace vivace::load
