// Reads JSON in passing, without a DOM: what a caller does not ask for is skipped. For events of a
// stream, where a DOM costs more than all else the client does.
//
// Checks what it walks over: brackets that match, strings that end, words that are JSON's, nesting
// up to kDepth. Commas and numbers are taken leniently. Never reads past the text; the views it
// gives point into it. After a fault ok() is false and every member says "no more".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vivace::load {

class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool ok() const { return ok_; }
  // The next character that is no space; 0 at the end or after a fault.
  char Peek();

  bool BeginObject() { return Take('{'); }
  bool BeginArray() { return Take('['); }
  // The next member's name, as written; false behind the last, whose bracket is then taken.
  bool Member(std::string_view* name);
  bool Item();

  // Between the quotes, escapes as written.
  bool String(std::string_view* raw);
  // A whole number, however it is written ("12.0", "1e3"); any other value is a fault.
  bool Int(int64_t* value);
  // Any value.
  bool Skip();
  // Nothing but space is left.
  bool AtEnd() { return ok_ && Peek() == 0; }

 private:
  static constexpr int kDepth = 64;

  bool Take(char c);
  bool Fault() {
    ok_ = false;
    return false;
  }
  bool SkipWord();

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

// Appends what the escapes of a JSON string stand for; a half of a surrogate pair is U+FFFD.
void AppendUnescaped(std::string_view raw, std::string* out);

}  // namespace vivace::load
