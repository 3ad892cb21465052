#include "server/openai/choice_output.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/openai/call_id.h"

namespace vivace::server {
namespace {

// Of valid UTF-8: every byte but continuation bytes begins a character.
int64_t CountChars(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

// Marks that are control tokens, for the parser to see.
std::vector<TokenId> ShownTokens(const OutputReading& reading) {
  std::vector<TokenId> ids;
  if (reading.dialect == nullptr) return ids;
  for (const Dialect::MarkToken& token : reading.dialect->mark_tokens) ids.push_back(token.id);
  return ids;
}

}  // namespace

ChoiceOutput::ChoiceOutput(const RequestParams& params, std::shared_ptr<const Tokenizer> tokenizer,
                           std::span<const TokenId> eos_ids, const OutputReading& reading)
    : params_(params),
      tokenizer_(tokenizer),
      stop_ids_(params.sampling.stop_token_ids),
      explicit_stop_ids_(stop_ids_.size()),
      detokenizer_(std::move(tokenizer), params.skip_special_tokens, ShownTokens(reading)),
      matcher_(params.stop, params.include_stop_str_in_output),
      include_reasoning_(reading.include_reasoning) {
  if (reading.dialect != nullptr) {
    parser_ = OutputParser::New(*reading.dialect, reading.reasoning, reading.tools);
    short_ids_ = reading.dialect->tools->short_ids;
  }
  if (!params.sampling.ignore_eos) {
    stop_ids_.insert(stop_ids_.end(), eos_ids.begin(), eos_ids.end());
  }
}

void ChoiceOutput::Echo(std::span<const TokenId> prompt, const PromptLogprobs* logprobs) {
  echo_ = prompt;
  echo_logprobs_ = logprobs;
}

void ChoiceOutput::TakeEcho() {
  const std::span<const TokenId> prompt = std::exchange(echo_, {});
  if (prompt.empty()) return;  // nothing to echo, or done: what is held back stays so
  const PromptLogprobs* logprobs = echo_logprobs_;
  // A detokeniser of its own, which shows control tokens: the prompt is repeated as it was given.
  Detokenizer detokenizer(tokenizer_, /*skip_special=*/false);
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (logprobs != nullptr) {
      LogprobEntry entry{prompt[i], i > 0, 0.0f, {}, made_chars_};
      if (i > 0) {
        entry.logprob = logprobs->chosen[i].logprob;
        entry.top = std::span(logprobs->top)
                        .subspan(i * static_cast<size_t>(logprobs->stride),
                                 static_cast<size_t>(logprobs->num_top[i]));
      }
      entries_.push_back(entry);
      entry_begins_.push_back(made_bytes_);
    }
    const std::string_view text = detokenizer.Push(prompt[i]);
    made_bytes_ += static_cast<int64_t>(text.size());
    made_chars_ += CountChars(text);
    piece_.text += text;
  }
  const std::string_view rest = detokenizer.Finish();
  made_bytes_ += static_cast<int64_t>(rest.size());
  made_chars_ += CountChars(rest);
  piece_.text += rest;
  released_bytes_ = made_bytes_;
  ready_entries_ = entries_.size();
}

bool ChoiceOutput::Feed(TokenStream* stream) {
  if (finished_) return false;
  int32_t index = stream->tokens_read();
  const std::span<const TokenId> news = stream->Read();
  const FinishReason reason = stream->finish_reason();
  if (news.empty() && reason == FinishReason::kNone) return false;
  TakeEcho();
  for (const TokenId token : news) {
    Take(stream, token, index++);
    if (finished_) return true;
  }
  if (reason != FinishReason::kNone) EndByStream(reason);
  return true;
}

// A stop token is known by its id, not by the stream's end: the end may be seen a moment later.
void ChoiceOutput::Take(TokenStream* stream, TokenId token, int32_t index) {
  tokens_ += 1;
  if (params_.return_token_ids) token_ids_.push_back(token);
  const auto stop = std::find(stop_ids_.begin(), stop_ids_.end(), token);
  const bool stops = stop != stop_ids_.end();
  if (stops && !params_.include_stop_str_in_output) {
    const Said before = said();
    FlushText();
    Attribute(before, /*thought=*/false, /*ended=*/true);
  } else {
    if (params_.logprobs) {
      entries_.push_back(
          {token, true, stream->chosen(index).logprob, stream->top(index), made_chars_});
      entry_begins_.push_back(made_bytes_);
    }
    const Said before = said();
    bool thought = parser_ != nullptr && parser_->reasoning();
    TakeText(detokenizer_.Push(token), tokens_ > params_.sampling.min_tokens);
    if (stops && !finished_) FlushText();
    thought = thought || (parser_ != nullptr && parser_->reasoning());
    if (thought) reasoning_tokens_ += 1;
    if (thought && !include_reasoning_) HideToken();
    Attribute(before, thought, stops || finished_);
  }
  if (!stops || finished_) return;
  finished_ = true;
  if (stop - stop_ids_.begin() < static_cast<ptrdiff_t>(explicit_stop_ids_)) {
    end_.stop_reason = token;
  }
  ready_entries_ = entries_.size();
}

void ChoiceOutput::TakeText(std::string_view text, bool may_stop) {
  made_bytes_ += static_cast<int64_t>(text.size());
  made_chars_ += CountChars(text);
  const std::string_view safe = matcher_.Push(text, may_stop);
  Say(safe);
  released_bytes_ += static_cast<int64_t>(safe.size());
  if (!finished_ && matcher_.stopped()) {
    finished_ = stopped_by_text_ = true;
    end_.stop_reason = params_.stop[static_cast<size_t>(matcher_.matched())];
    EndText();
  }
  Release();
}

// The text's end: a cut character, and what was held back for a stop string that did not come.
void ChoiceOutput::FlushText() {
  TakeText(detokenizer_.Finish(), true);
  if (finished_) return;
  const std::string_view held = matcher_.Finish();
  Say(held);
  released_bytes_ += static_cast<int64_t>(held.size());
  if (!finished_) EndText();
}

// More of the text, which no stop string can take back any more.
void ChoiceOutput::Say(std::string_view text) {
  if (parser_ == nullptr) {
    piece_.text += text;
    return;
  }
  parser_->Feed(text, &pieces_);
  FinishPieces();
}

void ChoiceOutput::EndText() {
  if (parser_ == nullptr) return;
  std::vector<OutputPiece> rest;
  parser_->Finish(&rest);
  const bool was_finished = finished_;
  if (!params_.parallel_tool_calls && parser_->calls() == 1 && parser_->ends_in_call()) {
    rest.clear();  // of a second call
    finished_ = stopped_by_text_ = true;
  }
  std::ranges::move(rest, std::back_inserter(pieces_));
  FinishPieces();
  // A cut that is found here is no token's: all that came has been said.
  if (finished_ && !was_finished) ready_entries_ = entries_.size();
}

// Ids for new calls, and no thoughts where none are wanted. A second call where one is wanted ends
// the choice before it: no grammar holds formats without marks to one, nor requests without one.
void ChoiceOutput::FinishPieces() {
  if (!params_.parallel_tool_calls && parser_->calls() > 1) {
    pieces_.erase(std::ranges::find(pieces_, 1, &OutputPiece::call), pieces_.end());
    finished_ = stopped_by_text_ = true;
  }
  if (!include_reasoning_) {
    std::erase_if(pieces_,
                  [](const OutputPiece& piece) { return piece.kind == PieceKind::kReasoning; });
  }
  for (OutputPiece& piece : pieces_) {
    if (piece.kind == PieceKind::kToolCall && piece.id.empty()) piece.id = NewCallId(short_ids_);
  }
}

void ChoiceOutput::EndByStream(FinishReason reason) {
  const Said before = said();
  FlushText();
  Attribute(before, /*thought=*/false, /*ended=*/true);
  if (finished_) {
    stopped_by_text_ = false;  // the engine has ended it as well
    return;
  }
  finished_ = true;
  // Calls that are complete are a whole answer, also where the limit left no token to end it with.
  const bool whole = parser_ != nullptr && parser_->ends_with_call();
  end_.by_length = (reason == FinishReason::kLength && !whole) || reason == FinishReason::kDeadline;
  if (reason == FinishReason::kDeadline) {
    end_.by_deadline = true;
    end_.stop_reason = std::string(kDeadlineReason);
  } else if (reason != FinishReason::kStop && reason != FinishReason::kLength) {
    failure_ = reason;
  }
  ready_entries_ = entries_.size();
}

// The last token is part of a thought that nobody wants to see.
void ChoiceOutput::HideToken() {
  if (params_.return_token_ids) token_ids_.pop_back();
  if (!params_.logprobs) return;
  entries_.pop_back();
  entry_begins_.pop_back();
  ready_entries_ = std::min(ready_entries_, entries_.size());
  attributed_ = std::min(attributed_, entries_.size());
}

// Entries belong to what is said next, for what becomes of a token may show later: a mark, a space
// that is left out, the beginning of a call. At the end they belong to what was said last.
void ChoiceOutput::Attribute(const Said& before, bool thought, bool ended) {
  if (!params_.logprobs || parser_ == nullptr) return;
  const auto stretch = [this] { return said_kind_ == PieceKind::kContent ? stretches_ - 1 : -1; };
  size_t piece = std::min(before.pieces, pieces_.size());
  if (piece > 0 && pieces_[piece - 1].text.size() > before.bytes) piece -= 1;
  const bool news = piece < pieces_.size();
  int32_t first = stretch();
  for (bool begun = false; piece < pieces_.size(); ++piece, begun = true) {
    const PieceKind kind = pieces_[piece].kind;
    if (kind == PieceKind::kContent && said_kind_ != PieceKind::kContent) stretches_ += 1;
    said_kind_ = kind;
    if (!begun) first = stretch();
  }
  if (!news && !thought && !ended) return;
  for (; attributed_ < entries_.size(); ++attributed_) {
    const bool last = attributed_ + 1 == entries_.size();
    entries_[attributed_].stretch = thought ? -1 : last ? stretch() : first;
  }
  Release();
}

// Entries whose token has begun in the released text, and is attributed where that is shown.
void ChoiceOutput::Release() {
  const bool told_apart = parser_ != nullptr && params_.endpoint == kResponses;
  const size_t known = told_apart ? attributed_ : entries_.size();
  while (ready_entries_ < known && entry_begins_[ready_entries_] < released_bytes_) {
    ready_entries_ += 1;
  }
}

void ChoiceOutput::Consume() {
  piece_.text.clear();
  pieces_.clear();
  token_ids_.clear();
  const auto count = static_cast<ptrdiff_t>(ready_entries_);
  entries_.erase(entries_.begin(), entries_.begin() + count);
  entry_begins_.erase(entry_begins_.begin(), entry_begins_.begin() + count);
  attributed_ -= std::min(attributed_, ready_entries_);
  ready_entries_ = 0;
}

}  // namespace vivace::server
