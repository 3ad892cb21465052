// A server that has no model: it answers OpenAI's requests at the times it is told, or wrongly, and
// remembers exactly what it did (GET /sim/truth). For tests of the client, and for planning without
// hardware. `vivace bench simulate`.
//
// One thread: that of Run. Times are to the millisecond of the event loop's timers, and never
// early; each token is due at an absolute time, so delays do not add up.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "load/sim/sim_options.h"

namespace vivace::load {

class SimServer {
 public:
  static Result<std::unique_ptr<SimServer>> Listen(const SimOptions& options);
  virtual ~SimServer() = default;

  virtual uint16_t port() const = 0;
  // Serves on the calling thread until Stop, which any thread may call.
  virtual void Run() = 0;
  virtual void Stop() = 0;
};

}  // namespace vivace::load
