// The first request: is the server there, does it answer what we ask, and which of our wishes does
// it take. What is wrong is said before anything is measured, with what to do about it.
#pragma once

#include <atomic>

#include "base/result.h"
#include "load/client/request_body.h"
#include "load/client/session.h"

namespace vivace::load {

struct ProbeOptions {
  double ready_timeout_s = 0;  // tries again so long while the server is not there or not ready
  double request_timeout_s = 0;
  const std::atomic<bool>* stop = nullptr;  // ends the waiting; may be null
};

// Sends strangers to `like` until one is answered. Returns the options as this server takes them:
// without continuous usage, or without stream options at all, where it refuses them by name.
Result<BodyOptions> Probe(Session* session, const BodyOptions& wanted, const PlannedRequest& like,
                          const ProbeOptions& options);

// The sentence for a first request that failed: what happened, and what to do. Pure.
Error ProbeError(const RequestRecord& record, const Target& target, const std::string& model);

}  // namespace vivace::load
