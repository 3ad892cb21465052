// Calls as JSON objects: {"name": …, "arguments": {…}}, one or a list of them.
#pragma once

#include <string>

#include "text/dialect/call_reader.h"
#include "text/dialect/json_scanner.h"

namespace vivace::dialect {

// Arguments are passed on as they are written, from their first brace. Where they stand before the
// name they wait for it; where they are a string, it is read as JSON text.
class JsonCalls : public CallReader {
 public:
  // `known`: only these names make a call, and only with arguments; null: any name.
  explicit JsonCalls(const ToolSet* known) : known_(known) {}

  Step Take(char c, PieceSink* sink) override;
  bool Finish(PieceSink*) override { return in_call_ || began_; }
  bool unclosed() const override { return in_call_ || began_; }

 private:
  enum class State : uint8_t {
    kOutside,   // before the object or list, or between the objects of one
    kFirstKey,  // a key or the end
    kKey,       // inside a key
    kColon,
    kValue,  // a value must begin
    kInValue,
    kAfterValue,  // a comma or the end
  };
  enum class Role : uint8_t { kOther, kName, kArguments };

  Step TakeOutside(char c);
  Step BeginValue(char c, PieceSink* sink);
  Step TakeValue(char c, PieceSink* sink);
  Step EndValue();
  Step EndObject(PieceSink* sink);
  Step Begin(PieceSink* sink);
  bool Keep(char c, size_t limit);

  const ToolSet* known_;
  State state_ = State::kOutside;
  Role role_ = Role::kOther;
  bool list_ = false;
  bool need_comma_ = false;  // in a list, behind an object
  bool passing_ = false;     // arguments go out as they come
  bool began_ = false;       // the object's call
  bool has_arguments_ = false;
  JsonScanner scanner_;
  std::string text_;  // of a key or value
  std::string name_;
  std::string arguments_;  // that wait for the name
};

}  // namespace vivace::dialect
