// Reads one call (or a list of them) byte by byte and says what is certain as soon as it is. One
// reader per place where a call may stand; OutputParser owns it.
//
// What was taken before a call began is kept by the caller, who shows it as content if it proves to
// be none. Memory: a header of limits::kMaxCallHeaderBytes, or for shapes that are read as a whole
// limits::kMaxCallBufferBytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "text/dialect/formats.h"
#include "text/dialect/output_piece.h"
#include "text/dialect/tool_set.h"

namespace vivace::dialect {

class CallReader {
 public:
  enum class Step : uint8_t {
    kMore,
    kDone,   // the call, or the list, ended with this byte
    kEnded,  // it ended before this byte
    kBad,    // this is no call, or not one any more
  };

  virtual ~CallReader() = default;
  virtual Step Take(char c, PieceSink* sink) = 0;
  // The output ended here. True if what was taken since the last call is told; false: it is text.
  virtual bool Finish(PieceSink*) { return in_call(); }
  // A call has begun and its arguments are not complete.
  bool in_call() const { return in_call_; }
  // A call has begun and what closes it is missing, its arguments complete or not.
  virtual bool unclosed() const { return in_call_; }

 protected:
  bool in_call_ = false;
};

// The reader for what stands behind a call's opening mark; null for kNone and kHarmony. `format`
// and `tools` must outlive it.
std::unique_ptr<CallReader> NewCallReader(const ToolFormat& format, const ToolSet& tools);

}  // namespace vivace::dialect
