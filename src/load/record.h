// What happened to one request, on the client's steady clock. The runner writes one for each
// request of the plan; everything that is reported is computed from these (figures.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vivace::load {

inline double Millis(int64_t ns) { return static_cast<double>(ns) / 1e6; }
inline double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

enum class Outcome : uint8_t {
  kCompleted,   // the stream ended as the protocol says
  kRefused,     // an HTTP status of 400 and above, or an error event before any content
  kConnection,  // could not connect, or the connection broke before any content
  kCut,         // broke, or an error event came, after some content
  kGarbage,     // not the protocol: no JSON, no events, no usage at all
  kTimeout,     // no whole answer by its deadline, or by the end of the drain
  kNotRun,      // never sent, or interrupted (Ctrl-C) before it ended
};

struct RequestRecord {
  int32_t index = 0;          // of the plan
  int32_t conversation = -1;  // turns of one conversation have one number; -1: alone
  int64_t scheduled_ns =
      0;                 // when the plan wanted it sent; in a closed loop, when its place was free
  int64_t sent_ns = 0;   // when it was handed to its connection
  int64_t first_ns = 0;  // the first event with content; 0: none came
  int64_t last_ns = 0;   // the last event with content
  int64_t ended_ns = 0;  // the end of the exchange, however it ended
  // One for each event with content.
  std::vector<int64_t> chunk_ns;
  // Tokens of each of them, where the server says so as it goes (continuous usage); empty: unknown.
  std::vector<int32_t> chunk_tokens;
  // Events with `choices` that bring nothing of the answer: a role at its start, a finish_reason at
  // its end. Nothing is measured by them here; other tools count them (compat.h).
  std::vector<int64_t> empty_ns;

  int32_t wanted_prompt_tokens = 0;  // by the dataset; 0: not known before
  int32_t wanted_output_tokens = 0;
  int32_t prompt_tokens = 0;  // by `usage`
  int32_t cached_tokens = 0;  // of them, found in the prefix cache; -1: not told
  int32_t output_tokens = 0;  // by `usage`
  int32_t choices = 1;        // answers that come at once; of several nothing is said per token
  bool counted = false;  // `usage` came; otherwise the counts are the dataset's and the chunks'

  Outcome outcome = Outcome::kNotRun;
  int32_t status = 0;  // HTTP; 0: no answer
  std::string reason;  // one sentence where it did not complete
  std::string finish_reason;
  double server_queue_ms = -1;  // by Server-Timing, where the server sends it; -1: not told
};

}  // namespace vivace::load
