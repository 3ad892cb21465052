// An answer under way that waits for the engine: what the dispatcher takes news to. It ends in
// exactly one way: complete, with an error, or because the client left; whatever still ran for it
// in the engine has been aborted then. Loop thread only.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "engine/request.h"

namespace vivace::server {

class Answer {
 public:
  enum class Progress : uint8_t {
    kOpen,     // more to come
    kBlocked,  // the client reads too slowly; call Pump again later
    kEnded,
  };

  virtual ~Answer() = default;

  // Hands work to the engine; an error is for the caller to send (nothing runs then).
  virtual Status Submit() = 0;
  // What the engine has of it; Pump may add more at the end.
  virtual std::span<const RequestPtr> requests() const = 0;
  // Takes what the engine published and writes what can be written.
  virtual Progress Pump() = 0;
  // Lets the client hear of it if it streams and has been silent for `quiet_ns` or longer.
  virtual void KeepAlive(int64_t /*now_ns*/, int64_t /*quiet_ns*/) {}
  // The client left.
  virtual void Abandon() = 0;
  // Ends with `error`: as the answer, or as an event in a stream that has begun.
  virtual void FailWith(const Error& error) = 0;
  virtual bool ended() const = 0;

  // The dispatcher's notes.
  size_t watched = 0;  // of requests()
  bool waiting_for_client = false;
};

}  // namespace vivace::server
