// A call as keys and values between marks: Qwen3-Coder, GLM, MiniMax, DeepSeek V3.2. The arguments
// become a JSON object; the tool's schema says of which kind a value is. Values that can only be
// text go out as they come, others when they are complete.
#pragma once

#include <string>

#include "text/dialect/call_reader.h"

namespace vivace::dialect {

class XmlCall : public CallReader {
 public:
  XmlCall(const XmlMarks& marks, std::string_view call_end, const ToolSet& tools)
      : marks_(marks), call_end_(call_end), tools_(tools) {}
  Step Take(char c, PieceSink* sink) override;
  bool Finish(PieceSink* sink) override;

 private:
  enum class State : uint8_t {
    kBeforeName,
    kName,
    kBetween,  // a key or the call's end
    kKey,
    kBeforeValue,
    kValue,
  };

  Step TakeName(char c, PieceSink* sink);
  Step TakeBetween(char c, PieceSink* sink);
  Step TakeKey(char c, PieceSink* sink);
  Step BeginCall(PieceSink* sink);
  bool FindKind();
  void BeginValue(PieceSink* sink);
  Step TakeValue(char c, PieceSink* sink);
  void ValueByte(char c, PieceSink* sink);
  void EndValue(PieceSink* sink);
  // What was taken and not told yet, as it was written.
  void TellRest(PieceSink* sink);

  const XmlMarks& marks_;
  std::string_view call_end_;
  const ToolSet& tools_;
  const Tool* tool_ = nullptr;
  State state_ = State::kBeforeName;
  std::string held_;  // the begin of a mark
  std::string name_, key_, value_;
  unsigned kinds_ = 0;        // that the value may be of
  bool streams_ = false;      // the value is text and goes out
  bool listed_ = false;       // it is one of a list
  bool json_ = false;         // its key says that it is JSON
  bool begun_value_ = false;  // its first byte was seen
  bool held_break_ = false;   // a line break that may be the last byte
  int members_ = 0;
};

}  // namespace vivace::dialect
