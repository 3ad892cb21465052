// What the requests of a run share: the loop, the connections, the target; and transfers that are
// used again and again. One thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "load/client/curl_driver.h"
#include "load/client/event_loop.h"
#include "load/client/transfer.h"

namespace vivace::load {

class Session {
 public:
  // `connections`: how many there are to be at once, `least`: what will do. The limit of open files
  // is raised for them, and an error says where it cannot be.
  static Result<std::unique_ptr<Session>> Create(const Target& target, int64_t connections,
                                                 int64_t least);

  const Target& target() const { return target_; }
  EventLoop* loop() { return loop_.get(); }
  CurlDriver* driver() { return driver_.get(); }
  // How many there may be at once.
  int64_t connections() const { return connections_; }

  // A transfer that is not busy, until it is given back.
  Transfer* Acquire();
  void Release(Transfer* transfer) { free_.push_back(transfer); }

 private:
  explicit Session(const Target& target) : target_(target) {}

  const Target target_;
  int64_t connections_ = 0;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<CurlDriver> driver_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
  std::vector<Transfer*> free_;
};

// Calls `work` every `interval_ns` from its making on, until it is gone. How late each beat was,
// those that a stall swallowed included, are the samples of the loop's lag(): a share of time,
// whatever else the loop does.
class Heartbeat {
 public:
  Heartbeat(EventLoop* loop, int64_t interval_ns, std::function<void()> work);
  ~Heartbeat() { loop_->Cancel(&timer_); }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void Arm();
  void SkipMissed();

  EventLoop* const loop_;
  const int64_t interval_ns_;
  const std::function<void()> work_;
  int64_t next_ns_;
  EventLoop::TimerKey timer_{};
};

}  // namespace vivace::load
