// One choice on its way out: token ids become text, stop strings end it, log-probabilities wait for
// the text of their token; the text is told apart into content, thoughts and calls.
//
// Feed() takes what the engine published; what may be sent then stands in pieces(), logprobs() and
// token_ids() until Consume() (streams) or for good (whole answers). Text held back because it
// could become a stop string keeps the log-probabilities of its tokens back as well; a token whose
// text was cut away by a stop string gets none, and thoughts that are left out leave their tokens
// out as well. The loop thread owns it. After the first tokens a
// choice of content alone without log-probabilities allocates only as its text grows. Stop strings
// are looked for in all of the text, marks included.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "engine/request.h"
#include "server/openai/answer_writer.h"
#include "server/openai/logprobs.h"
#include "server/openai/output_piece.h"
#include "server/openai/output_reading.h"
#include "server/params/request_params.h"
#include "text/detokenizer.h"
#include "text/dialect/output_parser.h"
#include "text/stop_matcher.h"

namespace vivace::server {

// The stop_reason of a choice that a deadline has cut; its finish_reason is length.
inline constexpr std::string_view kDeadlineReason = "deadline";

class ChoiceOutput {
 public:
  // `params` must outlive it; `eos_ids` are the model's.
  ChoiceOutput(const RequestParams& params, std::shared_ptr<const Tokenizer> tokenizer,
               std::span<const TokenId> eos_ids, const OutputReading& reading = {});

  // Puts the prompt before the output: its text, which is never searched for stop strings, and its
  // tokens' log-probabilities if `logprobs` is not null. These are read at the first news, when the
  // engine has completed them; both must live until then.
  void Echo(std::span<const TokenId> prompt, const PromptLogprobs* logprobs);

  // Reads the stream dry. True if there is news.
  bool Feed(TokenStream* stream);

  // Ended: `end` or `failure` says how. Tokens that come later are not looked at.
  bool finished() const { return finished_; }
  const ChoiceEnd& end() const { return end_; }
  // Its time was up; whether that is an answer depends on the other choices as well.
  bool by_deadline() const { return end_.by_deadline; }
  // kAborted or kError when it did not end by itself, else kNone.
  FinishReason failure() const { return failure_; }
  // A stop string or a call too many ended it while the engine goes on: the engine must be told.
  bool must_abort() const { return stopped_by_text_; }

  std::span<const OutputPiece> pieces() const {
    if (parser_ != nullptr) return pieces_;
    return {&piece_, static_cast<size_t>(piece_.text.empty() ? 0 : 1)};
  }
  std::span<const LogprobEntry> logprobs() const {
    return std::span(entries_).first(ready_entries_);
  }
  std::span<const TokenId> token_ids() const { return token_ids_; }
  int64_t tokens() const { return tokens_; }
  // Tokens of the output that were thinking.
  int64_t reasoning_tokens() const { return reasoning_tokens_; }

  // Forgets what pieces(), logprobs() and token_ids() show.
  void Consume();

 private:
  void TakeEcho();
  void Take(TokenStream* stream, TokenId token, int32_t index);
  void TakeText(std::string_view text, bool may_stop);
  void EndByStream(FinishReason reason);
  void FlushText();
  void Say(std::string_view text);
  void EndText();
  void FinishPieces();
  void HideToken();
  // What was said before a token: pieces, and bytes of the last.
  struct Said {
    size_t pieces = 0, bytes = 0;
  };
  Said said() const { return {pieces_.size(), pieces_.empty() ? 0 : pieces_.back().text.size()}; }
  void Attribute(const Said& before, bool thought, bool ended);
  void Release();

  const RequestParams& params_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<TokenId> stop_ids_;  // explicit ones, then the model's unless ignored
  size_t explicit_stop_ids_;
  Detokenizer detokenizer_;
  StopMatcher matcher_;

  std::span<const TokenId> echo_;  // not yet taken
  const PromptLogprobs* echo_logprobs_ = nullptr;

  OutputPiece piece_;                // content that may be sent, without a parser
  std::vector<OutputPiece> pieces_;  // and with one
  std::unique_ptr<OutputParser> parser_;
  bool include_reasoning_ = true;
  bool short_ids_ = false;
  std::vector<LogprobEntry> entries_;
  std::vector<int64_t> entry_begins_;  // byte of the choice's text where each entry's token begins
  size_t ready_entries_ = 0;
  size_t attributed_ = 0;                        // entries whose stretch is known
  PieceKind said_kind_ = PieceKind::kReasoning;  // of the last piece
  int32_t stretches_ = 0;                        // of content that have begun
  std::vector<TokenId> token_ids_;               // only if they are wanted
  int64_t tokens_ = 0;
  int64_t reasoning_tokens_ = 0;
  int64_t made_bytes_ = 0;  // of text, held back or not
  int64_t made_chars_ = 0;
  int64_t released_bytes_ = 0;
  bool finished_ = false;
  bool stopped_by_text_ = false;
  ChoiceEnd end_;
  FinishReason failure_ = FinishReason::kNone;
};

}  // namespace vivace::server
