// How long a request that comes now will wait, from what the engine has measured of itself. Pure.
//
// A forecast leans to the early side, for it decides whether to refuse, and nobody who could have
// been served in time should be: it counts what is queued, not the request's own prompt. What is
// queued takes as long as its prompts take to compute; and where they wait for places, as long as
// the queue has taken for as many tokens or as many requests, whichever is less: long prompts may
// have come after short ones, or the other way round. How long those that hold the places now will
// go on is not foreseen.
#pragma once

#include "engine/engine.h"

namespace vivace::server {

inline constexpr int kMinRetryAfterSeconds = 1;
inline constexpr int kMaxRetryAfterSeconds = 60;

// Seconds until what is queued now has been taken up; 0: nothing is, or its speed is not known yet.
double QueueSeconds(const EngineStats& stats);

// A wait as Retry-After says it: whole seconds, rounded up, from 1 to 60.
int RetryAfterSeconds(double wait_seconds);
inline int RetryAfterSeconds(const EngineStats& stats) {
  return RetryAfterSeconds(QueueSeconds(stats));
}

}  // namespace vivace::server
