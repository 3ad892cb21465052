// How long a request that comes now will wait, from what the server has measured of itself: the
// speed at which prompts are computed and the rate at which sequences end.
//
// LoadMeter measures and counts (loop thread only); the rest is pure. A forecast leans to the early
// side: it decides whether to refuse, and nobody who could have been served in time should be.
#pragma once

#include <cstdint>

#include "engine/engine.h"

namespace vivace::server {

// The load of a moment. Rates are 0 while nothing was measured.
struct Forecast {
  int64_t pending_tokens = 0;  // of prompts that have no first token yet
  int64_t sequences = 0;       // waiting and running
  int64_t max_sequences = 0;   // that run at once
  double tokens_per_s = 0.0;   // of prompts, while prompts are computed
  double ends_per_s = 0.0;     // sequences that end, while all places are taken

  // Seconds until a prompt of so many tokens that comes now has its first token; 0: not known.
  double FirstTokenSeconds(int64_t prompt_tokens) const;
  // Until what waits now has been taken up.
  double QueueSeconds() const { return FirstTokenSeconds(0); }
};

inline constexpr int kMinRetryAfterSeconds = 1;
inline constexpr int kMaxRetryAfterSeconds = 60;

// A wait as Retry-After says it: whole seconds, rounded up, from 1 to 60.
int RetryAfterSeconds(double wait_seconds);

class LoadMeter {
 public:
  explicit LoadMeter(int64_t max_sequences) { now_.max_sequences = max_sequences; }

  // Takes in the engine's figures; cheap, and does nothing if the last time was just now.
  void Observe(const EngineStats& stats, int64_t now_ns);

  void Submitted(int64_t prompt_tokens, int64_t sequences);
  // It has its first token, or ends without one.
  void Started(int64_t prompt_tokens);
  void Ended(int64_t sequences, int64_t now_ns);

  const Forecast& now() const { return now_; }
  int retry_after_s() const { return RetryAfterSeconds(now_.QueueSeconds()); }

 private:
  Forecast now_;
  int64_t observed_ns_ = 0;
  int64_t prompt_tokens_ = 0;  // as last observed
  int64_t prompt_ns_ = 0;
  int64_t last_end_ns_ = 0;  // the last one that freed a place others waited for
};

}  // namespace vivace::server
