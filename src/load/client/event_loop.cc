#include "load/client/event_loop.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/clock.h"

namespace vivace::load {
namespace {

constexpr int kEventsAtOnce = 256;
constexpr int kTimersAtOnce = 64;  // then sockets have their turn, however many are due

}  // namespace

// ---- Lag ----

void LagCounts::Add(int64_t ns) {
  const auto value = static_cast<uint64_t>(std::max<int64_t>(ns, 8));
  const int exponent = std::bit_width(value) - 1;
  ++counts_[static_cast<size_t>(exponent * 8) + ((value >> (exponent - 3)) & 7)];
  ++n_;
}

double LagCounts::PercentileMs(double percent) const {
  const auto wanted = static_cast<int64_t>(std::ceil(static_cast<double>(n_) * percent / 100));
  int64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (counts_[i] == 0 || seen < wanted) continue;
    const double low = std::ldexp(1.0 + static_cast<double>(i % 8) / 8, static_cast<int>(i / 8));
    return low * (1 + 1.0 / 16) / kNanosPerMs;
  }
  return 0;
}

// ---- The loop ----

Result<std::unique_ptr<EventLoop>> EventLoop::Create() {
  std::unique_ptr<EventLoop> loop(new EventLoop);
  loop->epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  loop->timer_fd_ = Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = loop->timer_fd_.fd();
  if (!loop->epoll_.valid() || !loop->timer_fd_.valid() ||
      epoll_ctl(loop->epoll_.fd(), EPOLL_CTL_ADD, event.data.fd, &event) != 0) {
    return Fail(ErrorCode::kIo, "out_of_descriptors", "",
                "cannot make an event loop: the system gives no more descriptors (ulimit -n)");
  }
  return loop;
}

void EventLoop::Watch(int fd, uint32_t events, Handler* handler) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  const bool known = !handlers_.insert_or_assign(fd, handler).second;
  // A descriptor that was closed and opened again is known to us and not to the kernel, or the
  // other way round.
  if (epoll_ctl(epoll_.fd(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0) {
    epoll_ctl(epoll_.fd(), known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
  }
}

void EventLoop::Unwatch(int fd) {
  if (handlers_.erase(fd) > 0) epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::TimerKey EventLoop::At(int64_t when_ns, std::function<void()> work, bool counts) {
  const TimerKey key = {when_ns, next_number_++};
  timers_.emplace(key, Timer{std::move(work), counts});
  return key;
}

void EventLoop::Cancel(TimerKey* timer) {
  timers_.erase(*timer);
  *timer = {};
}

void EventLoop::Arm() {
  const int64_t next = timers_.empty() ? 0 : timers_.begin()->first.first;
  if (next == armed_ns_) return;
  armed_ns_ = next;
  itimerspec when{};  // zero: disarmed
  when.it_value.tv_sec = next / kNanosPerSecond;
  when.it_value.tv_nsec = next % kNanosPerSecond;
  timerfd_settime(timer_fd_.fd(), TFD_TIMER_ABSTIME, &when, nullptr);
}

bool EventLoop::RunTimers(const std::function<bool()>& done) {
  for (int i = 0; i < kTimersAtOnce && !timers_.empty(); ++i) {
    const int64_t late_ns = SteadyNanos() - timers_.begin()->first.first;
    if (late_ns < 0) break;
    const auto node = timers_.extract(timers_.begin());
    if (node.mapped().counts) lag_.Add(late_ns);
    node.mapped().work();
    if (done()) return true;
  }
  return false;
}

void EventLoop::RunUntil(const std::function<bool()>& done) {
  epoll_event events[kEventsAtOnce];
  while (!done()) {
    if (RunTimers(done)) return;
    const bool due = !timers_.empty() && timers_.begin()->first.first <= SteadyNanos();
    if (!due) Arm();
    const int n = epoll_wait(epoll_.fd(), events, kEventsAtOnce, due ? 0 : -1);
    for (int i = 0; i < n; ++i) {
      const int fd = events[i].data.fd;
      if (fd == timer_fd_.fd()) {
        uint64_t expirations;
        [[maybe_unused]] const ssize_t taken = read(fd, &expirations, sizeof expirations);
        armed_ns_ = 0;
        continue;
      }
      const auto found = handlers_.find(fd);  // an event before it may have ended this one
      if (found != handlers_.end()) found->second->OnReady(fd, events[i].events);
    }
  }
}

}  // namespace vivace::load
