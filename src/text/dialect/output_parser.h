// Tells an output's text apart as it comes: content, thoughts, tool calls and their arguments.
//
// A piece goes out as soon as it is certain and is never taken back; text that may still become a
// mark waits. The pieces, neighbours of one kind joined, do not depend on how the text is cut into
// feeds. Nothing of the text is lost but the marks and the white space beside them:
//   - a call that proves malformed before its name and arguments have begun is content, as written;
//   - one that proves so later keeps what follows, up to its end mark, as arguments, as written;
//   - one that the end of the output cuts keeps the arguments it has.
// Content of an output with neither thoughts nor calls is the text itself.
//
// Memory: what waits is bounded (limits::kMaxCall*, kMaxHeldSpaceBytes). Cost: a few compares per
// byte. Owned by one thread; `dialect` must outlive it.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "text/dialect/dialect.h"
#include "text/dialect/output_piece.h"
#include "text/dialect/tool_set.h"

namespace vivace {

class OutputParser {
 public:
  virtual ~OutputParser() = default;

  // `tools`: null, and calls are text.
  static std::unique_ptr<OutputParser> New(const Dialect& dialect, ReasoningStart start,
                                           std::shared_ptr<const dialect::ToolSet> tools);

  virtual void Feed(std::string_view text, std::vector<OutputPiece>* pieces) = 0;
  // The end of the output: what waited.
  virtual void Finish(std::vector<OutputPiece>* pieces) = 0;

  // Calls that have begun.
  virtual int32_t calls() const = 0;
  // What comes next is thought, as far as is known.
  virtual bool reasoning() const = 0;
  // After Finish: the last that was said is a call whose arguments are complete, and nothing but
  // marks and white space came behind it. Such an output is whole, however it ended.
  virtual bool ends_with_call() const = 0;
  // After Finish: the content that it told is the beginning of a call, cut before its name was
  // known.
  virtual bool ends_in_call() const { return false; }
};

}  // namespace vivace
