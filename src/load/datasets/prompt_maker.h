// Text of an exact number of tokens, by the server's own count.
//
// Text is drawn, encoded, cut at the wanted token, decoded and encoded again, because a cut text
// may be tokenised otherwise than it was; what is missing is drawn again. Two or three calls of the
// counter are the rule, kRounds the bound; what is still off then is returned with its true count.
// Without a counter a common word stands for a token, and counts are guesses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "load/datasets/dataset.h"
#include "load/random.h"
#include "load/workload.h"

namespace vivace::load {

class PromptMaker {
 public:
  enum class Vocabulary {
    kAny,    // ids drawn from the whole vocabulary, as vLLM's `random` does
    kWords,  // common words
  };
  struct Prompt {
    std::string text;
    PromptIds ids;       // special tokens in front included; empty without a counter
    int32_t tokens = 0;  // as the server will count it, as far as that is known
  };

  static Result<PromptMaker> Create(const DatasetOptions& options, TokenCounter* counter,
                                    Vocabulary vocabulary);

  // `tokens` in all, beginning with `before` and drawn by `purpose`.
  Result<Prompt> Make(uint64_t purpose, int32_t tokens, std::string_view before = {});

  // Of a text that is there already: its own tokens, and those of a prompt that it is.
  Result<int32_t> OwnTokens(std::string_view text);
  Result<int32_t> Count(std::string_view text);
  // Of English, where nothing counts.
  static int32_t GuessTokens(std::string_view text);

  // Tokens of a prompt beside its text's: special ones in front, the chat template's; as far as
  // they are known.
  int32_t around() const { return around_; }

  // As the endpoint takes it: ids, messages of a user, or text.
  PlannedRequest Plan(Prompt prompt, int32_t output_tokens) const;

  // How many words make about `tokens`.
  Result<size_t> WordsFor(int32_t tokens);

  // What Workload::name says of lengths: empty where all were exact.
  std::string Remark() const;

 private:
  static constexpr int kRounds = 24;

  PromptMaker(const DatasetOptions& options, TokenCounter* counter, Vocabulary vocabulary);
  Status FindSpecialTokens();
  Result<std::string> Draw(size_t tokens, Vocabulary vocabulary, Random* random);
  Result<std::string> Cut(std::span<const int32_t> ids, size_t wanted);

  uint64_t seed_;
  bool chat_, token_ids_;
  TokenCounter* counter_;
  Vocabulary vocabulary_;
  size_t leading_ = 0, trailing_ = 0;  // special tokens that Encode puts around a text
  int32_t around_ = 0;                 // tokens of a prompt that are not its text's
  bool around_known_ = true;
  double tokens_a_word_ = 0;  // 0: not measured yet
  size_t made_ = 0, inexact_ = 0;
};

}  // namespace vivace::load
