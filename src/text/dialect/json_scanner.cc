#include "text/dialect/json_scanner.h"

#include "base/ascii.h"
#include "base/limits.h"

namespace vivace::dialect {
JsonScanner::Step JsonScanner::Take(char c) {
  switch (state_) {
    case State::kString:
    case State::kEscape:
    case State::kHex:
      return TakeString(c);
    case State::kNumber:
      return TakeNumber(c);
    case State::kLiteral:
      if (c != *literal_) return Step::kBad;
      return *++literal_ == '\0' ? EndValue() : Step::kMore;
    default:
      break;
  }
  if (IsJsonSpace(c)) return open_.empty() ? Step::kBad : Step::kMore;
  switch (state_) {
    case State::kFirstKey:
      if (c == '}') return Close('{');
      [[fallthrough]];
    case State::kKey:
      if (c != '"') return Step::kBad;
      in_key_ = true;
      state_ = State::kString;
      return Step::kMore;
    case State::kColon:
      state_ = State::kValue;
      return c == ':' ? Step::kMore : Step::kBad;
    case State::kAfterValue:
      return AfterValue(c);
    case State::kFirstValue:
      if (c == ']') return Close('[');
      [[fallthrough]];
    default:
      return Begin(c);
  }
}

JsonScanner::Step JsonScanner::Begin(char c) {
  switch (c) {
    case '{':
    case '[':
      if (open_.size() >= static_cast<size_t>(limits::kMaxArgumentDepth)) return Step::kBad;
      open_.push_back(c);
      state_ = c == '{' ? State::kFirstKey : State::kFirstValue;
      return Step::kMore;
    case '"':
      state_ = State::kString;
      return Step::kMore;
    case 't':
    case 'f':
    case 'n':
      literal_ = c == 't' ? "rue" : c == 'f' ? "alse" : "ull";
      state_ = State::kLiteral;
      return Step::kMore;
    default:
      if (c != '-' && !IsDigit(c)) return Step::kBad;
      number_ = c == '-' ? Number::kMinus : c == '0' ? Number::kZero : Number::kInt;
      state_ = State::kNumber;
      return Step::kMore;
  }
}

JsonScanner::Step JsonScanner::TakeString(char c) {
  if (state_ == State::kHex) {
    if (!IsHexDigit(c)) return Step::kBad;
    if (--hex_left_ == 0) state_ = State::kString;
    return Step::kMore;
  }
  if (state_ == State::kEscape) {
    state_ = State::kString;
    switch (c) {
      case 'u':
        state_ = State::kHex;
        hex_left_ = 4;
        return Step::kMore;
      case '"':
      case '\\':
      case '/':
      case 'b':
      case 'f':
      case 'n':
      case 'r':
      case 't':
        return Step::kMore;
      default:
        return Step::kBad;
    }
  }
  if (c == '\\') {
    state_ = State::kEscape;
  } else if (c == '"') {
    if (!in_key_) return EndValue();
    in_key_ = false;
    state_ = State::kColon;
  } else if (static_cast<unsigned char>(c) < 0x20) {
    return Step::kBad;
  }
  return Step::kMore;
}

JsonScanner::Step JsonScanner::TakeNumber(char c) {
  const bool digit = IsDigit(c);
  const bool e = c == 'e' || c == 'E';
  const auto go = [this](Number next) {
    number_ = next;
    return Step::kMore;
  };
  bool whole = false;  // the number may end here
  switch (number_) {
    case Number::kMinus:
      if (digit) return go(c == '0' ? Number::kZero : Number::kInt);
      break;
    case Number::kInt:
    case Number::kZero:
      whole = true;
      if (digit && number_ == Number::kInt) return Step::kMore;
      if (c == '.') return go(Number::kDot);
      if (e) return go(Number::kE);
      break;
    case Number::kFraction:
      whole = true;
      if (digit) return Step::kMore;
      if (e) return go(Number::kE);
      break;
    case Number::kDot:
      if (digit) return go(Number::kFraction);
      break;
    case Number::kE:
      if (c == '+' || c == '-') return go(Number::kESign);
      [[fallthrough]];
    case Number::kESign:
      if (digit) return go(Number::kExponent);
      break;
    case Number::kExponent:
      whole = true;
      if (digit) return Step::kMore;
      break;
  }
  if (!whole || digit) return Step::kBad;
  if (open_.empty()) return Step::kEnded;
  state_ = State::kAfterValue;
  return IsJsonSpace(c) ? Step::kMore : AfterValue(c);
}

JsonScanner::Step JsonScanner::AfterValue(char c) {
  if (c == '}') return Close('{');
  if (c == ']') return Close('[');
  if (c != ',') return Step::kBad;
  state_ = open_.back() == '{' ? State::kKey : State::kValue;
  return Step::kMore;
}

JsonScanner::Step JsonScanner::Close(char bracket) {
  if (open_.empty() || open_.back() != bracket) return Step::kBad;
  open_.pop_back();
  return EndValue();
}

JsonScanner::Step JsonScanner::EndValue() {
  state_ = State::kAfterValue;
  return open_.empty() ? Step::kDone : Step::kMore;
}

}  // namespace vivace::dialect
