// Whether the engine is alive, from its heartbeat: a step that takes longer than kHungStepSeconds
// is taken for hung; an idle engine is well. Pure.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "engine/engine.h"

namespace vivace::server {

inline constexpr int64_t kHungStepSeconds = 60;

// kUnavailable "engine_unavailable" if it hangs. `now_ns`: steady clock.
Status CheckEngine(const EngineStats& stats, int64_t now_ns);

}  // namespace vivace::server
