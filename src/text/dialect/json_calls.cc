#include "text/dialect/json_calls.h"

#include <utility>

#include "base/limits.h"
#include "text/dialect/json_text.h"

namespace vivace::dialect {
namespace {

bool NamesFunction(std::string_view key) {
  return key == "name" || key == "tool_name" || key == "function";
}
bool NamesArguments(std::string_view key) { return key == "arguments" || key == "parameters"; }

// The text of a JSON object?
bool IsObject(std::string_view text) {
  if (!text.starts_with('{')) return false;
  JsonScanner scanner;
  for (size_t i = 0; i < text.size(); ++i) {
    const JsonScanner::Step step = scanner.Take(text[i]);
    if (step == JsonScanner::Step::kDone) return i + 1 == text.size();
    if (step != JsonScanner::Step::kMore) return false;
  }
  return false;
}

}  // namespace

bool JsonCalls::Keep(char c, size_t limit) {
  if (text_.size() >= limit) return false;
  text_ += c;
  return true;
}

CallReader::Step JsonCalls::Take(char c, PieceSink* sink) {
  if (state_ == State::kInValue) return TakeValue(c, sink);
  if (state_ == State::kKey) {
    if (!Keep(c, limits::kMaxCallHeaderBytes)) return Step::kBad;
    const JsonScanner::Step step = scanner_.Take(c);
    if (step == JsonScanner::Step::kDone) state_ = State::kColon;
    return step == JsonScanner::Step::kBad ? Step::kBad : Step::kMore;
  }
  if (IsJsonSpace(c)) return Step::kMore;
  switch (state_) {
    case State::kOutside:
      return TakeOutside(c);
    case State::kFirstKey:
      if (c != '"') return Step::kBad;
      text_ = c;
      scanner_.Reset();
      scanner_.Take(c);
      state_ = State::kKey;
      return Step::kMore;
    case State::kColon: {
      if (c != ':') return Step::kBad;
      const std::string key = Unquoted(text_);
      role_ = NamesFunction(key)    ? Role::kName
              : NamesArguments(key) ? Role::kArguments
                                    : Role::kOther;
      state_ = State::kValue;
      return Step::kMore;
    }
    case State::kValue:
      return BeginValue(c, sink);
    default:
      if (c == '}') return EndObject(sink);
      state_ = State::kFirstKey;
      return c == ',' ? Step::kMore : Step::kBad;
  }
}

CallReader::Step JsonCalls::TakeOutside(char c) {
  if (c == '[' && !list_) {
    list_ = true;
    return Step::kMore;
  }
  if (list_ && need_comma_) {
    need_comma_ = false;
    if (c == ']') return Step::kDone;
    return c == ',' ? Step::kMore : Step::kBad;
  }
  if (c != '{') return Step::kBad;
  has_arguments_ = passing_ = false;
  name_.clear();
  arguments_.clear();
  state_ = State::kFirstKey;
  return Step::kMore;
}

CallReader::Step JsonCalls::BeginValue(char c, PieceSink* sink) {
  text_.clear();
  scanner_.Reset();
  state_ = State::kInValue;
  if (role_ == Role::kName && (c != '"' || !name_.empty())) return Step::kBad;
  if (role_ == Role::kArguments) {
    if ((c != '{' && c != '"' && c != 'n') || has_arguments_) return Step::kBad;
    passing_ = c == '{' && !name_.empty();
    if (passing_) {
      has_arguments_ = true;
      if (Begin(sink) == Step::kBad) return Step::kBad;
      in_call_ = true;
    }
  }
  return TakeValue(c, sink);
}

CallReader::Step JsonCalls::TakeValue(char c, PieceSink* sink) {
  const JsonScanner::Step step = scanner_.Take(c);
  if (step == JsonScanner::Step::kBad) return Step::kBad;
  if (step == JsonScanner::Step::kEnded) {
    // A number of a member that is nothing to us.
    state_ = State::kAfterValue;
    return Take(c, sink);
  }
  if (passing_) {
    sink->Arguments({&c, 1});
  } else {
    const size_t limit =
        role_ == Role::kArguments ? limits::kMaxCallBufferBytes : limits::kMaxCallHeaderBytes;
    if (!Keep(c, limit)) return Step::kBad;
  }
  return step == JsonScanner::Step::kDone ? EndValue() : Step::kMore;
}

CallReader::Step JsonCalls::EndValue() {
  state_ = State::kAfterValue;
  if (role_ == Role::kName) {
    name_ = Unquoted(text_);
    if (!IsCallName(name_)) return Step::kBad;
    if (known_ != nullptr && known_->Find(name_) == nullptr) return Step::kBad;
    return Step::kMore;
  }
  if (role_ != Role::kArguments) return Step::kMore;
  if (passing_) {
    passing_ = in_call_ = false;
    return Step::kMore;
  }
  has_arguments_ = true;
  if (text_.starts_with('"')) text_ = TrimSpace(Unquoted(text_));
  if (text_ == "null" || text_.empty()) text_ = "{}";
  if (!IsObject(text_)) return Step::kBad;
  arguments_ = std::move(text_);
  text_.clear();
  return Step::kMore;
}

CallReader::Step JsonCalls::Begin(PieceSink* sink) {
  if (name_.empty() || (known_ != nullptr && !has_arguments_)) return Step::kBad;
  began_ = true;
  sink->BeginCall(name_);
  return Step::kMore;
}

CallReader::Step JsonCalls::EndObject(PieceSink* sink) {
  if (!began_) {
    if (Begin(sink) == Step::kBad) return Step::kBad;
    sink->Arguments(has_arguments_ ? std::string_view(arguments_) : std::string_view("{}"));
  }
  began_ = false;
  state_ = State::kOutside;
  need_comma_ = true;
  return list_ ? Step::kMore : Step::kDone;
}

}  // namespace vivace::dialect
