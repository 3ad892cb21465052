// The process that compiles what clients send, so that no schema can crash, hang or fill the
// server: it is stopped from outside when a compile takes too long, and its memory is limited.
//
// Messages go both ways over one socket, its descriptor 0: a length of four bytes (this machine's
// order), then so many bytes. First the vocabulary; then for every grammar how long it may compute,
// its kind, whether it names tokens, and its text, each answered by a status byte and xgrammar's
// serialised grammar, or a sentence.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/lower.h"
#include "grammar/vocabulary.h"

namespace vivace::grammar {

// The server's side. One thread at a time. The child is started when it is first needed and again
// after it was stopped or has died.
class WorkerProcess {
 public:
  // `command`: the program and its arguments.
  WorkerProcess(std::vector<std::string> command, std::shared_ptr<const Vocabulary> vocabulary);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Starts the child, if it does not run, and hands it the vocabulary. kInternal: it could not be
  // started.
  Status Prepare();

  // The serialised grammar. `time`: that the child may compute; several times that may pass where
  // it waits for a processor. Without a field: kInvalidArgument "bad_grammar", a verdict on the
  // text, or "grammar_too_costly" for what ran out of time or memory, or ended the child, this
  // time; kResourceExhausted "grammar_busy", where it got no processor; kInternal: the child could
  // not be started.
  Result<std::string> Compile(const Lowered& text, std::chrono::milliseconds time);

  pid_t pid() const { return pid_; }  // -1: not running

 private:
  using Clock = std::chrono::steady_clock;
  Status Start(Clock::time_point deadline);
  void Stop();
  Error WhyItEnded(Clock::time_point deadline, std::chrono::milliseconds time);
  bool Send(std::string_view payload, Clock::time_point deadline);
  bool Receive(std::string* payload, Clock::time_point deadline);

  std::vector<std::string> command_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  pid_t pid_ = -1;
  int socket_ = -1;
};

}  // namespace vivace::grammar
