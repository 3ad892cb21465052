// Knows which answer a request of the engine belongs to, and moves news from the one to the other.
//
// The engine wakes the loop; the loop takes the requests with news and pumps their answers. An
// answer whose client reads too slowly is left alone for a moment: its tokens wait in the engine's
// streams and go out as one larger delta. Loop thread only, but for the wake-up.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "server/http/http.h"
#include "server/service/answer.h"

namespace vivace::server {

class Dispatcher {
 public:
  // `ping_interval_ms`: streams that have been silent for so long say something, within half as
  // long again; 0: never.
  Dispatcher(Engine* engine, int ping_interval_ms)
      : engine_(engine), ping_interval_ms_(ping_interval_ms) {}

  // Once, before the first Start. `http` outlives the dispatcher's use.
  void Attach(HttpServer* http);

  // Submits and watches; an error means nothing was started.
  Status Start(const std::shared_ptr<Answer>& answer);
  void Abandon(const std::shared_ptr<Answer>& answer);
  // Ends every answer under way.
  void FailAll(const Error& error);

  size_t requests() const { return by_request_.size(); }

 private:
  void TakeNews();
  void Pump(const std::shared_ptr<Answer>& answer);
  void ArmPings();
  void PingAll();
  void Watch(const std::shared_ptr<Answer>& answer);
  void Forget(const Answer& answer);

  Engine* const engine_;
  const int ping_interval_ms_;
  bool pings_armed_ = false;
  HttpServer* http_ = nullptr;
  std::unordered_map<uint64_t, std::shared_ptr<Answer>> by_request_;
  std::vector<RequestPtr> news_;  // reused
};

}  // namespace vivace::server
