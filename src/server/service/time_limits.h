// deadline_ms and max_queue_ms: what cannot be kept is refused at once, the rest goes to the
// engine, which keeps it. Pure; loop thread.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "engine/engine.h"
#include "server/params/request_params.h"

namespace vivace::server {

// What is late already, or foreseen to be. Times: steady clock; limits count from the arrival of
// the request's headers.
Status CheckTimeLimits(const RequestParams& params, const EngineStats& stats, int64_t arrived_ns,
                       int64_t now_ns);

// Those of a request that goes to the engine now. `queued`: it is what max_queue_ms speaks of.
void AddTimeLimits(const RequestParams& params, int64_t arrived_ns, int64_t now_ns, bool queued,
                   GenerationRequest* request);

}  // namespace vivace::server
