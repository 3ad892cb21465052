// What a simulated server really did, for those who measured it: times of its own clock, taken when
// it gave each event to its socket.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vivace::load {

struct SimTruth {
  std::string id;                  // X-Request-Id; empty: none was sent
  int64_t arrived_ns = 0;          // its header was in
  int64_t started_ns = 0;          // its place was free; 0: never
  std::vector<int64_t> events_ns;  // each event with tokens
  std::vector<int32_t> event_tokens;
  int64_t prompt_tokens = 0;
  int32_t tokens = 0;
  // "completed", "error", "cut", "garbage", "stalled" (completed after it), "endless" or "gone"
  // (the client left), "running".
  std::string outcome = "running";
};

// {"requests": [{"id", "arrived_ns", "started_ns", "first_ns", "last_ns", "queue_ms", "ttft_ms",
// "e2e_ms", "gaps_ms": [...], "event_tokens": [...], "prompt_tokens", "output_tokens",
// "outcome"}]}. Milliseconds are from arrived_ns; null where there is none.
std::string TruthJson(const std::vector<SimTruth>& truths);

}  // namespace vivace::load
