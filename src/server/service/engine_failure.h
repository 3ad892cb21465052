// What a client is told of an answer that the engine ended before it was complete.
#pragma once

#include "base/result.h"
#include "engine/request.h"

namespace vivace::server {

// `reason`: neither kNone, kStop nor kLength.
Error EngineFailure(FinishReason reason);

}  // namespace vivace::server
