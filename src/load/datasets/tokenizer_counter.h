// Counts a dataset's tokens with a tokenizer in this process. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "load/datasets/dataset.h"
#include "text/tokenizer.h"

namespace vivace::load {

class TokenizerCounter final : public TokenCounter {
 public:
  explicit TokenizerCounter(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}

  Result<std::vector<int32_t>> Encode(std::string_view text) override {
    return tokenizer_->Encode(text);
  }
  Result<std::string> Decode(std::span<const int32_t> ids) override {
    return tokenizer_->Decode(ids, /*skip_special=*/false);
  }
  int32_t vocab_size() const override { return static_cast<int32_t>(tokenizer_->vocab_size()); }

 private:
  const std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace vivace::load
