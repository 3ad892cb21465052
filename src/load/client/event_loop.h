// One thread's events: descriptors by epoll, times by a timerfd, in nanoseconds of the steady
// clock. Everything of a measured run happens on it, so it also says how late it was.
//
// Cost: one epoll_wait a wake-up; a timer is a node of a map. All members: the thread that runs it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/file_io.h"
#include "base/result.h"

namespace vivace::load {

// How late timers ran: counts in buckets of a share of an eighth, so that any number fits.
class LagCounts {
 public:
  void Add(int64_t ns);
  void Clear() { *this = LagCounts(); }
  int64_t n() const { return n_; }
  double PercentileMs(double percent) const;  // 0 where nothing was counted

 private:
  std::array<int64_t, 64 * 8> counts_{};
  int64_t n_ = 0;
};

class EventLoop {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void OnReady(int fd, uint32_t events) = 0;
  };
  using TimerKey = std::pair<int64_t, uint64_t>;  // when, and a number; {0, 0}: none

  static Result<std::unique_ptr<EventLoop>> Create();

  // `handler` outlives the watch. Watching again changes the events.
  void Watch(int fd, uint32_t events, Handler* handler);
  void Unwatch(int fd);

  // Runs `work` once at `when_ns`, or as soon as possible after it. `counts`: how late it ran is a
  // sample of lag().
  TimerKey At(int64_t when_ns, std::function<void()> work, bool counts = false);
  // Nothing happens where it has run. The key is none afterwards.
  void Cancel(TimerKey* timer);

  // Handles events until `done`, which is asked after each of them.
  void RunUntil(const std::function<bool()>& done);

  LagCounts& lag() { return lag_; }

 private:
  struct Timer {
    std::function<void()> work;
    bool counts;
  };

  EventLoop() = default;
  bool RunTimers(const std::function<bool()>& done);
  void Arm();

  Descriptor epoll_, timer_fd_;
  std::unordered_map<int, Handler*> handlers_;
  std::map<TimerKey, Timer> timers_;
  uint64_t next_number_ = 1;
  int64_t armed_ns_ = 0;
  LagCounts lag_;
};

}  // namespace vivace::load
