// How long a request that comes now will wait, from what the engine has measured of itself. Pure.
//
// What decides whether to refuse leans to the early side, for nobody who could have been served in
// time should be refused: it counts the prompts that are queued, which have to be computed first,
// and neither the request's own nor how long places will be held, which nobody knows.
#pragma once

#include "engine/engine.h"

namespace vivace::server {

inline constexpr int kMinRetryAfterSeconds = 1;
inline constexpr int kMaxRetryAfterSeconds = 60;

// Seconds that the prompts which are queued now take to compute; 0: none is, or their speed is not
// known yet.
double LeastQueueSeconds(const EngineStats& stats);

// Seconds until what is queued now has been taken up, as it went of late: at least those, and where
// it waits for places, as long as the queue has taken for as many tokens or as many requests,
// whichever is less, for long prompts may have come after short ones, or the other way round.
double QueueSeconds(const EngineStats& stats);

// A wait as Retry-After says it: whole seconds, rounded up, from 1 to 60.
int RetryAfterSeconds(double wait_seconds);
inline int RetryAfterSeconds(const EngineStats& stats) {
  return RetryAfterSeconds(QueueSeconds(stats));
}

}  // namespace vivace::server
