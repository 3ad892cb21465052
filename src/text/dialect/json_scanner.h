// Finds the end of one JSON value in text that comes byte by byte, and checks it (RFC 8259) on the
// way. Memory: one bit of nesting per level, at most limits::kMaxArgumentDepth.
#pragma once

#include <cstdint>
#include <vector>

namespace vivace::dialect {

class JsonScanner {
 public:
  enum class Step : uint8_t {
    kMore,   // the value goes on
    kDone,   // it ended with this byte
    kEnded,  // it ended before this byte, which is not its own
    kBad,    // no JSON value goes on like this
  };
  // The next byte; white space before the value is not the scanner's matter.
  Step Take(char c);
  void Reset() { *this = JsonScanner(); }
  // Nothing of the value has come.
  bool AtBegin() const { return state_ == State::kValue && open_.empty(); }

 private:
  enum class State : uint8_t {
    kValue,       // a value must begin
    kFirstValue,  // of an array: a value or its end
    kFirstKey,    // of an object: a key or its end
    kKey,         // a key must begin
    kColon,
    kAfterValue,  // inside an array or object
    kString,
    kEscape,
    kHex,
    kLiteral,
    kNumber,
  };
  // Of a number, by the grammar of RFC 8259.
  enum class Number : uint8_t { kMinus, kZero, kInt, kDot, kFraction, kE, kESign, kExponent };

  Step Begin(char c);
  Step TakeString(char c);
  Step TakeNumber(char c);
  Step AfterValue(char c);
  Step Close(char bracket);
  Step EndValue();

  State state_ = State::kValue;
  Number number_ = Number::kInt;
  bool in_key_ = false;
  uint8_t hex_left_ = 0;
  const char* literal_ = nullptr;  // what is left of true, false or null
  std::vector<char> open_;         // brackets
};

// White space in JSON's sense.
inline bool IsJsonSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

}  // namespace vivace::dialect
