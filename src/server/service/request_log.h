// One line of the log for each request that asked for work: what it was, how it ended, how long it
// took. Nothing of what a client wrote. Never waits: the log drops lines when it is behind.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"

namespace vivace::server {

// For an answer that its client did not wait for, as other servers log it.
inline constexpr int kStatusClientGone = 499;

struct RequestLine {
  std::string_view id;    // of the answer; empty: it got none
  std::string_view path;  // of a route
  int status = 0;
  int64_t started_ns = 0;  // steady clock, when the body was in
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  int64_t first_token_ns = 0;  // steady clock; 0: none
};

inline void LogRequest(const RequestLine& line) {
  log::Info("request",
            {{"id", line.id},
             {"method", "POST"},
             {"path", line.path},
             {"status", line.status},
             {"ms", (SteadyNanos() - line.started_ns) / 1'000'000},
             {"first_token_ms", line.first_token_ns == 0
                                    ? int64_t{-1}
                                    : (line.first_token_ns - line.started_ns) / 1'000'000},
             {"prompt_tokens", line.prompt_tokens},
             {"output_tokens", line.output_tokens}});
}

}  // namespace vivace::server
