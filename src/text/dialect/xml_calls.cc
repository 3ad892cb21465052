#include "text/dialect/xml_calls.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/limits.h"
#include "text/dialect/json_scanner.h"
#include "text/dialect/json_text.h"
#include "text/dialect/mark_match.h"

namespace vivace::dialect {
namespace {

// The value as JSON text if it is JSON (or Python's spelling of a constant) of one of `kinds`;
// empty if it is not. `strings`: also if it is a string.
std::string AsJson(std::string_view text, unsigned kinds, bool strings) {
  text = TrimSpace(text);
  if (text == "True") text = "true";
  if (text == "False") text = "false";
  if (text == "None") text = "null";
  boost::system::error_code error;
  const boost::json::value value =
      boost::json::parse(text, error, {}, {.max_depth = limits::kMaxArgumentDepth});
  if (error) return {};
  const unsigned kind = KindOf(value);
  // A quoted text is a text with quotes where text is allowed: it stands between marks.
  if ((kinds & kind) == 0 || (kind == kStringKind && !strings)) return {};
  return std::string(text);
}

}  // namespace

CallReader::Step XmlCall::Take(char c, PieceSink* sink) {
  switch (state_) {
    case State::kBeforeName: {
      if (held_.empty() && IsJsonSpace(c)) return Step::kMore;
      if (marks_.name_begin.empty()) {
        state_ = State::kName;
        return TakeName(c, sink);
      }
      held_ += c;
      const MarkMatch match = MatchMark(held_, marks_.name_begin);
      if (match == MarkMatch::kWhole) {
        held_.clear();
        state_ = State::kName;
      }
      return match == MarkMatch::kNone ? Step::kBad : Step::kMore;
    }
    case State::kName:
      return TakeName(c, sink);
    case State::kBetween:
      return TakeBetween(c, sink);
    case State::kKey:
      return TakeKey(c, sink);
    case State::kBeforeValue:
      if (held_.empty() && IsJsonSpace(c)) return Step::kMore;
      held_ += c;
      switch (MatchMark(held_, marks_.value_begin)) {
        case MarkMatch::kNone:
          held_.pop_back();
          TellRest(sink);
          return Step::kBad;
        case MarkMatch::kWhole:
          BeginValue(sink);
          break;
        case MarkMatch::kPrefix:
          break;
      }
      return Step::kMore;
    case State::kValue:
      return TakeValue(c, sink);
  }
  return Step::kBad;
}

// The name ends at its mark; where that is a line break, also at the first other mark.
CallReader::Step XmlCall::TakeName(char c, PieceSink* sink) {
  const std::string_view end = marks_.name_end;
  if (c == end.back() && name_.ends_with(end.substr(0, end.size() - 1))) {
    name_.resize(name_.size() + 1 - end.size());
    name_ = std::string(TrimSpace(name_));
    return BeginCall(sink);
  }
  if (c == '<' && end.size() == 1 && !name_.empty()) {
    name_ = std::string(TrimSpace(name_));
    if (BeginCall(sink) == Step::kBad) return Step::kBad;
    return TakeBetween(c, sink);
  }
  name_ += c;
  return name_.size() < limits::kMaxToolNameBytes + end.size() ? Step::kMore : Step::kBad;
}

CallReader::Step XmlCall::BeginCall(PieceSink* sink) {
  if (!IsCallName(name_)) return Step::kBad;
  tool_ = tools_.Find(name_);
  sink->BeginCall(name_);
  sink->Arguments("{");
  in_call_ = true;
  state_ = State::kBetween;
  return Step::kMore;
}

CallReader::Step XmlCall::TakeBetween(char c, PieceSink* sink) {
  if (held_.empty() && IsJsonSpace(c)) return Step::kMore;
  held_ += c;
  const MarkMatch key = MatchMark(held_, marks_.key_begin);
  const MarkMatch end = MatchMark(held_, marks_.call_end.empty() ? call_end_ : marks_.call_end);
  if (key == MarkMatch::kWhole) {
    held_.clear();
    key_.clear();
    state_ = State::kKey;
  } else if (end == MarkMatch::kWhole) {
    held_.clear();
    sink->Arguments("}");
    in_call_ = false;
    return Step::kDone;
  } else if (key == MarkMatch::kNone && end == MarkMatch::kNone) {
    held_.pop_back();
    TellRest(sink);
    return Step::kBad;
  }
  return Step::kMore;
}

CallReader::Step XmlCall::TakeKey(char c, PieceSink* sink) {
  key_ += c;
  if (key_.ends_with(marks_.key_end)) {
    key_.resize(key_.size() - marks_.key_end.size());
    key_ = std::string(TrimSpace(key_));
    if (marks_.value_begin.empty()) {
      BeginValue(sink);
    } else {
      state_ = State::kBeforeValue;
    }
    return Step::kMore;
  }
  if (key_.size() <= limits::kMaxCallHeaderBytes) return Step::kMore;
  key_.pop_back();
  TellRest(sink);
  return Step::kBad;
}

// What the value is, by its key or else the tool's schema. True: the key has said it.
bool XmlCall::FindKind() {
  for (const std::string_view says : {marks_.says_text, marks_.says_json}) {
    if (says.empty() || !key_.ends_with(says)) continue;
    key_.resize(key_.size() - says.size());
    json_ = says == marks_.says_json;
    kinds_ = json_ ? kAnyKind : kStringKind;
    listed_ = false;
    return true;
  }
  if (!marks_.says_text.empty() && key_.ends_with('"')) key_.pop_back();
  return json_ = false;
}

void XmlCall::BeginValue(PieceSink* sink) {
  held_.clear();
  value_.clear();
  state_ = State::kValue;
  begun_value_ = held_break_ = false;
  if (!FindKind()) {
    kinds_ = ArgumentKinds(tool_, key_);
    listed_ = HasListedValues(tool_, key_);
  }
  streams_ = kinds_ == kStringKind && !listed_;
  std::string text = members_++ > 0 ? ", " : "";
  AppendQuoted(key_, &text);
  text += streams_ ? ": \"" : ": ";
  sink->Arguments(text);
}

CallReader::Step XmlCall::TakeValue(char c, PieceSink* sink) {
  held_ += c;
  while (!held_.empty()) {
    const MarkMatch match = MatchMark(held_, marks_.value_end);
    if (match == MarkMatch::kPrefix) return Step::kMore;
    if (match == MarkMatch::kWhole) {
      EndValue(sink);
      return Step::kMore;
    }
    ValueByte(held_[0], sink);
    held_.erase(0, 1);
  }
  return Step::kMore;
}

void XmlCall::ValueByte(char c, PieceSink* sink) {
  const bool first = !begun_value_;
  begun_value_ = true;
  const bool is_break = c == '\n' && !marks_.keeps_breaks;
  if (first && is_break) return;
  std::string text;
  if (held_break_) text += '\n';
  held_break_ = is_break;
  if (!held_break_) text += c;
  if (!streams_) {
    value_ += text;
    if (value_.size() <= limits::kMaxCallBufferBytes) return;
    // Too long to wait for its end: it is text.
    streams_ = true;
    text = std::move(value_);
    sink->Arguments("\"");
  }
  std::string escaped;
  AppendEscaped(text, &escaped);
  sink->Arguments(escaped);
}

void XmlCall::EndValue(PieceSink* sink) {
  held_.clear();
  held_break_ = false;
  state_ = State::kBetween;
  if (streams_) {
    sink->Arguments("\"");
    return;
  }
  std::string text = AsJson(value_, kinds_, json_);
  if (text.empty()) AppendQuoted(listed_ ? TrimSpace(value_) : value_, &text);
  sink->Arguments(text);
}

void XmlCall::TellRest(PieceSink* sink) {
  std::string text;
  if (state_ == State::kKey || state_ == State::kBeforeValue) {
    text = std::string(marks_.key_begin) + key_;
    if (state_ == State::kBeforeValue) text += marks_.key_end;
  }
  if (state_ == State::kValue) {
    text = value_;
    if (held_break_) text += '\n';
  }
  text += held_;
  if (state_ != State::kValue || !streams_) {
    sink->Arguments(text);
    return;
  }
  std::string escaped;
  AppendEscaped(held_break_ ? "\n" + held_ : held_, &escaped);
  sink->Arguments(escaped);
}

bool XmlCall::Finish(PieceSink* sink) {
  if (in_call_) TellRest(sink);
  return in_call_;
}

}  // namespace vivace::dialect
