#include "text/dialect/listed_calls.h"

#include <cctype>
#include <utility>

#include "base/limits.h"
#include "text/dialect/json_calls.h"
#include "text/dialect/json_scanner.h"
#include "text/dialect/literals.h"

namespace vivace::dialect {
namespace {

bool IsNameByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
}

}  // namespace

CallReader::Step ListedCalls::Take(char c, PieceSink* sink) {
  if (state_ == State::kJson) return TakeJson({&c, 1}, sink);
  if (text_.size() >= limits::kMaxCallBufferBytes) return Step::kBad;
  text_ += c;
  switch (state_) {
    case State::kBegin:
      if (IsJsonSpace(c)) return Step::kMore;
      if (c == '{') return TakeJson(text_, sink);
      state_ = State::kList;
      depth_ = 1;
      return c == '[' ? Step::kMore : Step::kBad;
    case State::kList:
      if (IsJsonSpace(c)) return Step::kMore;
      if (c == '{') return TakeJson(text_, sink);
      state_ = State::kName;
      [[fallthrough]];
    case State::kName:
      if (c == '(' && tools_.Find(name_) != nullptr) {
        state_ = State::kBody;
        ++depth_;
        return Step::kMore;
      }
      name_ += c;
      return IsNameByte(c) && name_.size() <= limits::kMaxToolNameBytes ? Step::kMore : Step::kBad;
    case State::kString:
    case State::kEscape:
      return TakeString(c, sink);
    default:
      return TakeBody(c, sink);
  }
}

CallReader::Step ListedCalls::TakeJson(std::string_view text, PieceSink* sink) {
  if (json_ == nullptr) json_ = std::make_unique<JsonCalls>(&tools_);
  state_ = State::kJson;
  Step step = Step::kMore;
  for (size_t i = 0; i < text.size() && step == Step::kMore; ++i) step = json_->Take(text[i], sink);
  in_call_ = json_->in_call();
  return step;
}

CallReader::Step ListedCalls::TakeBody(char c, PieceSink* sink) {
  switch (c) {
    case '"':
    case '\'':
      state_ = State::kString;
      quote_ = text_.size() - 1;
      quotes_ = 1;
      return Step::kMore;
    case '(':
    case '[':
    case '{':
      return ++depth_ <= limits::kMaxArgumentDepth ? Step::kMore : Step::kBad;
    case ')':
    case ']':
    case '}':
      if (--depth_ > 0) return Step::kMore;
      return Tell(sink) ? Step::kDone : Step::kBad;
    default:
      return Step::kMore;
  }
}

// As literals.cc reads it: '…', "…", or with three quotes on each side.
CallReader::Step ListedCalls::TakeString(char c, PieceSink* sink) {
  if (state_ == State::kEscape) {
    state_ = State::kString;
    return Step::kMore;
  }
  const char quote = text_[quote_];
  const size_t length = text_.size() - quote_;  // with its opening quotes and this byte
  if (quotes_ == 1 && length == 2 && c == quote) {
    quotes_ = 2;  // an empty string, or the second of three
    return Step::kMore;
  }
  if (quotes_ == 2) {
    if (c == quote) {
      quotes_ = 3;
      return Step::kMore;
    }
    state_ = State::kBody;
    text_.pop_back();
    return Take(c, sink);
  }
  if (c == '\\') {
    state_ = State::kEscape;
    return Step::kMore;
  }
  if (c != quote || length < 2 * quotes_) return Step::kMore;
  const std::string_view end = std::string_view(text_).substr(text_.size() - quotes_);
  if (end.find_first_not_of(quote) == std::string_view::npos) state_ = State::kBody;
  return Step::kMore;
}

bool ListedCalls::Tell(PieceSink* sink) {
  auto calls = PythonCalls(text_, tools_);
  if (!calls) return false;
  for (WholeCall& call : *calls) {
    sink->BeginCall(std::move(call.name));
    sink->Arguments(call.arguments);
  }
  return true;
}

bool ListedCalls::Finish(PieceSink* sink) {
  return state_ == State::kJson ? json_->Finish(sink) : Tell(sink);
}

}  // namespace vivace::dialect
