// A tokenizer for tests: longest match over bytes, words and words behind a space, as the real ones
// do; texts of drawn ids are therefore not encoded as they were drawn.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "load/datasets/dataset.h"
#include "load/datasets/words.h"

namespace vivace::load::testing {

class FakeTokenizer : public TokenCounter {
 public:
  explicit FakeTokenizer(bool bos = false, int32_t chat = -1) : bos_(bos), chat_(chat) {
    tokens_.emplace_back("");  // BOS
    for (int byte = 0; byte < 256; ++byte) tokens_.emplace_back(1, static_cast<char>(byte));
    for (std::string_view word : CommonWords()) {
      tokens_.emplace_back(word);
      tokens_.push_back(" " + std::string(word));
    }
    tokens_.emplace_back("<|end|>");
    tokens_.emplace_back("\xE2\x82\xAC\xE2\x82");  // a character and a half
    for (size_t id = 1; id < tokens_.size(); ++id) {
      ids_[tokens_[id]] = static_cast<int32_t>(id);
      longest_ = std::max(longest_, tokens_[id].size());
    }
  }

  Result<std::vector<int32_t>> Encode(std::string_view text) override {
    ++calls;
    std::vector<int32_t> ids;
    if (bos_) ids.push_back(0);
    while (!text.empty()) {
      for (size_t length = std::min(longest_, text.size()); length > 0; --length) {
        const auto found = ids_.find(std::string(text.substr(0, length)));
        if (found == ids_.end()) continue;
        ids.push_back(found->second);
        text.remove_prefix(length);
        break;
      }
    }
    return ids;
  }

  Result<std::string> Decode(std::span<const int32_t> ids) override {
    ++calls;
    std::string text;
    for (int32_t id : ids) text += tokens_.at(static_cast<size_t>(id));
    return text;
  }

  int32_t vocab_size() const override { return static_cast<int32_t>(tokens_.size()); }
  Result<int32_t> ChatOverhead() override { return chat_; }

  int calls = 0;

 private:
  bool bos_;
  int32_t chat_;
  std::vector<std::string> tokens_;
  std::map<std::string, int32_t> ids_;
  size_t longest_ = 0;
};

// A counter that refuses: a server without /tokenize.
class BrokenTokenizer : public TokenCounter {
 public:
  Result<std::vector<int32_t>> Encode(std::string_view) override { return Refusal(); }
  Result<std::string> Decode(std::span<const int32_t>) override { return Refusal(); }
  int32_t vocab_size() const override { return 100; }

 private:
  static tl::unexpected<Error> Refusal() {
    return Fail(ErrorCode::kUnavailable, "no_tokenize", "", "the server has no /tokenize");
  }
};

}  // namespace vivace::load::testing
