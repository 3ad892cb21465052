// Calls as a list in Python's notation without marks around it, [name(key=value), …], which is the
// whole of a turn: Llama 4 (models/llama4/prompt_format.md of meta-llama/llama-models). Told when
// its last bracket closes; a list that does not begin with a tool's name and a bracket is text at
// once. JSON calls are read as such.
#pragma once

#include <memory>
#include <string>

#include "text/dialect/call_reader.h"

namespace vivace::dialect {

class ListedCalls : public CallReader {
 public:
  // Outlives it.
  explicit ListedCalls(const ToolSet& tools) : tools_(tools) {}
  Step Take(char c, PieceSink* sink) override;
  bool Finish(PieceSink* sink) override;
  bool unclosed() const override { return json_ != nullptr && json_->unclosed(); }

 private:
  enum class State : uint8_t {
    kBegin,  // `[` or a JSON object
    kList,   // the first name or object of the list
    kName,
    kBody,
    kString,
    kEscape,
    kJson,  // in another reader
  };

  Step TakeJson(std::string_view text, PieceSink* sink);
  Step TakeBody(char c, PieceSink* sink);
  Step TakeString(char c, PieceSink* sink);
  bool Tell(PieceSink* sink);

  const ToolSet& tools_;
  State state_ = State::kBegin;
  std::string text_;
  std::string name_;   // of the first call
  int depth_ = 0;      // of brackets
  size_t quote_ = 0;   // where the string that is open begins, its quotes counted
  size_t quotes_ = 0;  // how many it has: 1 or 3
  std::unique_ptr<CallReader> json_;
};

}  // namespace vivace::dialect
