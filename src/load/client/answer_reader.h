// One answer from its bytes: a stream of events as OpenAI's API has it, into a RequestRecord. No
// sockets, no clock: the caller says when bytes came.
//
// Every time in the record is that of the read that brought the bytes. An event counts as content
// if it brings text, thoughts or part of a tool call, or, where the server counts as it streams, a
// token more than the last. Not thread-safe; reused for one answer after another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/sse_reader.h"
#include "load/client/chunk.h"
#include "load/record.h"

namespace vivace::load {

class AnswerReader {
 public:
  struct Options {
    bool keep_text = false;          // for the next turn of a conversation
    int64_t max_events = 0;          // with content; more is a stream that does not end
    int64_t* live_tokens = nullptr;  // counted up as tokens come; may be null
  };
  // How the exchange ended, as far as the transport knows.
  struct Ending {
    bool clean = true;                // the body was whole
    std::string_view transport = {};  // why not, as a sentence without numbers
    bool has_outcome = false;         // it was ended by us, as `outcome`, because of `reason`
    Outcome outcome = Outcome::kNotRun;
    std::string_view reason = {};
  };

  // `record` outlives the answer.
  void Begin(RequestRecord* record, const Options& options);
  // A line of the head, with its line end.
  void OnHeader(std::string_view line);
  // False: nothing more is wanted; why will be in the record.
  bool OnBody(std::string_view bytes, int64_t now_ns);
  // Puts outcome, reason and counts into the record.
  void End(const Ending& ending, int64_t now_ns);

  // Of Options::keep_text; to be taken after End.
  std::string& text() { return text_; }
  // Whether an event said that the stream is over: whatever the connection does, the answer is
  // whole.
  bool saw_done() const { return done_; }

 private:
  bool OnEvent(std::string_view event, int64_t now_ns);
  void OnContent(const Chunk& chunk, int64_t now_ns);
  void Judge(const Ending& ending);
  void Set(Outcome outcome, std::string reason);
  void SettleCounts();

  RequestRecord* record_ = nullptr;
  Options options_;
  SseReader events_;
  std::string text_;
  std::string raw_;       // the start of a body that is an error's, or no stream
  std::string location_;  // of a redirect
  size_t body_bytes_ = 0;
  int64_t last_count_ = 0;   // by continuous usage
  bool counts_each_ = true;  // every event with content so far said how many tokens there are
  bool saw_event_ = false;
  bool done_ = false;
  bool has_error_ = false;
  std::string error_;    // the server's own
  std::string garbage_;  // what is no protocol
};

}  // namespace vivace::load
