// What clients and the figures are told of an answer that ended before it was complete. Loop
// thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "engine/request.h"
#include "server/metrics/server_metrics.h"

namespace vivace::server {

// `reason`: neither kNone, kStop nor kLength. `constraint`: of the choice that ended so, or null.
Error EngineFailure(FinishReason reason, const TokenConstraint* constraint = nullptr);

// Counts a failed request's limit of time, if it passed one, and gives its outcome for the records.
std::string_view OutcomeOfFailure(const Error& error, ServerMetrics* metrics);

}  // namespace vivace::server
