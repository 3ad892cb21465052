#include "text/dialect/tagged_parser.h"

#include <utility>

#include "base/limits.h"
#include "text/dialect/json_scanner.h"
#include "text/dialect/mark_match.h"

namespace vivace::dialect {

TaggedParser::TaggedParser(const Dialect& dialect, ReasoningStart start,
                           std::shared_ptr<const ToolSet> tools)
    : dialect_(dialect), tools_(std::move(tools)), sink_(&calls_) {
  const ToolFormat& format = *dialect.tools;
  if (const ReasoningFormat* thoughts = dialect.reasoning; thoughts != nullptr) {
    AddMark(&content_marks_, thoughts->begin, Does::kOpenReasoning);
    AddMark(&reasoning_marks_, thoughts->end, Does::kCloseReasoning);
  }
  if (tools_ != nullptr) {
    AddMark(&content_marks_, format.section_begin, Does::kOpenSection);
    AddMark(&content_marks_, format.call_begin, Does::kOpenCall);
    const bool replay = format.other_begin == format.xml.name_begin;
    AddMark(&content_marks_, format.other_begin, replay ? Does::kReplayCall : Does::kOpenCall);
    AddMark(&section_marks_, format.call_begin, Does::kOpenCall);
    AddMark(&section_marks_, format.section_end, Does::kCloseSection);
    // Shapes that are read as a whole have taken their end mark.
    const bool python = format.shape == CallShape::kPython && format.marked();
    const bool whole = python || format.shape == CallShape::kGemma;
    if (!whole) AddMark(&after_marks_, format.call_end, Does::kEndCall);
    AddMark(&broken_marks_, format.call_end, Does::kEndCall);
    AddMark(&unclosed_marks_, format.call_end, Does::kEndCall);
    AddMark(&unclosed_marks_, format.call_begin, Does::kOpenCall);
  }
  // Control tokens that stand alone are no text.
  for (const Dialect::MarkToken& token : dialect.mark_tokens) {
    bool begins = false;
    for (const Mark& mark : content_marks_) begins = begins || mark.text.starts_with(token.text);
    if (!begins) AddMark(&content_marks_, token.text, Does::kDrop);
  }
  if (start == ReasoningStart::kOpen) {
    state_ = State::kReasoning;
    trim_ = true;
    AddMark(&reasoning_marks_, dialect.reasoning->begin, Does::kDrop);
  }
}

void TaggedParser::AddMark(std::vector<Mark>* marks, std::string_view text, Does does) const {
  if (!text.empty()) marks->push_back({text, does});
}

const std::vector<TaggedParser::Mark>& TaggedParser::Marks() const {
  switch (state_) {
    case State::kReasoning:
      return reasoning_marks_;
    case State::kSection:
      return section_marks_;
    case State::kAfterCall:
      return after_marks_;
    case State::kBrokenCall:
      return broken_marks_;
    case State::kUnclosedCall:
      return unclosed_marks_;
    default:
      return content_marks_;
  }
}

void TaggedParser::Feed(std::string_view text, std::vector<OutputPiece>* pieces) {
  sink_.set_pieces(pieces);
  for (const char c : text) Take(c);
}

void TaggedParser::Take(char c) {
  if (state_ == State::kCall) {
    TakeCall(c);
  } else {
    TakeMarked(c);
  }
}

// Holds back what may become a mark.
void TaggedParser::TakeMarked(char c) {
  held_ += c;
  while (!held_.empty()) {
    bool waits = false;
    for (const Mark& mark : Marks()) {
      const MarkMatch match = MatchMark(held_, mark.text);
      if (match == MarkMatch::kWhole) {
        const Mark found = mark;  // states have marks of their own
        held_.clear();
        OnMark(found);
        return;
      }
      waits = waits || match == MarkMatch::kPrefix;
    }
    if (waits) return;
    if (state_ == State::kAfterCall && !BelongsToCall(held_[0])) {
      LeaveCall();
      continue;
    }
    const std::string rest = held_.substr(1);
    const char first = held_[0];
    held_.clear();
    Release(first);
    if (rest.empty()) return;
    if (state_ == State::kCall) {
      for (const char later : rest) Take(later);
      return;
    }
    held_ = rest;
  }
}

void TaggedParser::OnMark(const Mark& mark) {
  switch (mark.does) {
    case Does::kOpenReasoning: {
      // A thought opens the output; later its mark is text, unless it is a token of its own.
      const bool token = dialect_.MarkTokenOf(TrimmedMark(mark.text)).has_value();
      if ((reasoned_ || !at_start_ || calls_ > 0) && !token) {
        for (const char c : mark.text) ContentByte(c);
        return;
      }
      DropSpace();
      state_ = State::kReasoning;
      trim_ = true;
      return;
    }
    case Does::kCloseReasoning:
      DropSpace();
      state_ = State::kContent;
      reasoned_ = trim_ = at_start_ = true;
      return;
    case Does::kOpenSection:
      raw_ = std::exchange(space_, {}) + std::string(mark.text);
      in_section_ = true;
      state_ = State::kSection;
      return;
    case Does::kCloseSection:
      raw_.clear();
      DropSpace();
      in_section_ = false;
      state_ = State::kContent;
      trim_ = at_start_ = true;
      return;
    case Does::kOpenCall:
    case Does::kReplayCall:
      if (!in_section_) raw_.clear();
      raw_ += std::exchange(space_, {});
      OpenCall(mark.does == Does::kOpenCall ? std::string_view() : mark.text);
      if (mark.does == Does::kOpenCall) raw_ += mark.text;
      return;
    case Does::kEndCall:
      LeaveCall();
      return;
    case Does::kDrop:
      return;
  }
}

// Behind a call: models close a brace or a fence too many.
bool TaggedParser::BelongsToCall(char c) const {
  return IsJsonSpace(c) || (!after_marks_.empty() && (c == '}' || c == ']' || c == '`'));
}

void TaggedParser::LeaveCall() {
  raw_.clear();
  state_ = in_section_ ? State::kSection : State::kContent;
  trim_ = at_start_ = true;
}

// A byte that belongs to no mark.
void TaggedParser::Release(char c) {
  switch (state_) {
    case State::kContent:
      ContentByte(c);
      return;
    case State::kReasoning:
      ReasoningByte(c);
      return;
    case State::kBrokenCall:
      sink_.Arguments({&c, 1});
      return;
    case State::kUnclosedCall:
      raw_ += c;
      if (raw_.size() > limits::kMaxCallHeaderBytes) GiveUpCall();
      return;
    case State::kAfterCall:
      return;
    case State::kSection:
      if (IsJsonSpace(c) || c == ',') {
        if (calls_ == 0 || !raw_.empty()) raw_ += c;
        if (raw_.size() > limits::kMaxCallHeaderBytes) GiveUpCall();
        return;
      }
      raw_ += c;
      GiveUpCall();
      return;
    case State::kCall:
      TakeCall(c);
      return;
  }
}

void TaggedParser::ContentByte(char c) {
  if (IsJsonSpace(c)) {
    if (trim_) return;
    space_ += c;
    if (space_.size() > limits::kMaxHeldSpaceBytes) sink_.Content(std::exchange(space_, {}));
    return;
  }
  const CallShape shape = dialect_.tools->shape;
  const bool unmarked = tools_ != nullptr && !dialect_.tools->marked() &&
                        (shape == CallShape::kJson || shape == CallShape::kPython);
  if (unmarked && at_start_) {
    if (c == '{' || c == '[') {
      raw_ = std::exchange(space_, {});
      OpenCall({&c, 1});
      return;
    }
    if (calls_ > 0 && (c == ';' || c == ',')) return;
  }
  at_start_ = trim_ = false;
  sink_.Content(std::exchange(space_, {}));
  sink_.Content({&c, 1});
}

void TaggedParser::ReasoningByte(char c) {
  if (IsJsonSpace(c)) {
    if (trim_) return;
    space_ += c;
    if (space_.size() > limits::kMaxHeldSpaceBytes) sink_.Reasoning(std::exchange(space_, {}));
    return;
  }
  trim_ = false;
  sink_.Reasoning(std::exchange(space_, {}));
  sink_.Reasoning({&c, 1});
}

// `replay`: text that belongs to the call already.
void TaggedParser::OpenCall(std::string_view replay) {
  reader_ = NewCallReader(*dialect_.tools, *tools_);
  state_ = State::kCall;
  for (const char c : replay) {
    if (state_ == State::kCall) TakeCall(c);
  }
}

void TaggedParser::TakeCall(char c) {
  const int32_t before = calls_;
  const bool was_in_call = reader_->in_call();
  const bool was_unclosed = reader_->unclosed();
  const CallReader::Step step = reader_->Take(c, &sink_);
  if (calls_ > before || was_in_call) {
    raw_.clear();  // it is told
  } else {
    raw_ += c;
  }
  switch (step) {
    case CallReader::Step::kMore:
      return;
    case CallReader::Step::kDone:
    case CallReader::Step::kEnded:
      reader_.reset();
      raw_.clear();
      state_ = State::kAfterCall;
      trim_ = at_start_ = true;
      if (step == CallReader::Step::kEnded) TakeMarked(c);
      return;
    case CallReader::Step::kBad:
      if (!was_unclosed || (!was_in_call && broken_marks_.empty())) {
        GiveUpCall();
        return;
      }
      if (!raw_.empty()) raw_.pop_back();  // this byte is looked at again
      reader_.reset();
      state_ = was_in_call ? State::kBrokenCall : State::kUnclosedCall;
      TakeMarked(c);
      return;
  }
}

// What was taken for a call is content. It is not looked at again: no mark in it counts.
void TaggedParser::GiveUpCall() {
  reader_.reset();
  state_ = State::kContent;
  in_section_ = at_start_ = trim_ = false;
  sink_.Content(std::exchange(raw_, {}));
}

// Behind the calls so far, whose arguments are complete, stands only what closes them.
bool TaggedParser::SaysNoMore() const {
  const auto closes = [](std::string_view text) {
    return text.find_first_not_of(" \n\t\r]}`") == std::string_view::npos;
  };
  switch (state_) {
    case State::kAfterCall:
      return true;
    case State::kSection:
      return closes(raw_) && dialect_.tools->section_end.starts_with(held_);
    case State::kContent:
      return at_start_ && held_.empty();
    case State::kCall:
      return !reader_->in_call() && closes(raw_);
    default:
      return false;
  }
}

void TaggedParser::Finish(std::vector<OutputPiece>* pieces) {
  sink_.set_pieces(pieces);
  const int32_t before = calls_;
  ends_with_call_ = calls_ > 0 && SaysNoMore();
  if (state_ == State::kCall) {
    const bool told = reader_->Finish(&sink_);
    if (!told) sink_.Content(raw_);
    ends_in_call_ = !told && calls_ == before;
    // Those that are read as a whole, at the end of the output.
    ends_with_call_ = ends_with_call_ || (told && calls_ > before);
  } else {
    for (const char c : std::exchange(held_, {})) Release(c);
    const bool waits = state_ == State::kSection || state_ == State::kUnclosedCall;
    if (waits && !raw_.empty()) sink_.Content(raw_);
    // White space at the end is content's own, unless it stands behind calls or thoughts only.
    if (state_ == State::kContent && calls_ == 0) sink_.Content(space_);
  }
  raw_.clear();
  space_.clear();
  reader_.reset();
}

}  // namespace vivace::dialect
