#include "load/client/event_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/client/session.h"

namespace vivace::load {
namespace {

using ::testing::ElementsAre;

TEST(EventLoop, TimersRunInTheirOrderAndNotBeforeTheirTime) {
  const auto loop = *EventLoop::Create();
  std::vector<int> ran;
  const int64_t start = SteadyNanos();
  const auto add = [&](int ms) {
    loop->At(
        start + ms * kNanosPerMs,
        [&, ms] {
          EXPECT_GE(SteadyNanos(), start + ms * kNanosPerMs);
          ran.push_back(ms);
        },
        /*counts=*/ms > 2);
  };
  add(6);
  add(2);
  add(-5);
  add(4);
  auto cancelled = loop->At(start + 3 * kNanosPerMs, [&] { ran.push_back(99); });
  loop->Cancel(&cancelled);
  loop->RunUntil([&] { return ran.size() == 4; });
  EXPECT_THAT(ran, ElementsAre(-5, 2, 4, 6));
  EXPECT_EQ(loop->lag().n(), 2);
}

class Reader final : public EventLoop::Handler {
 public:
  void OnReady(int fd, uint32_t) override {
    eventfd_t value;
    eventfd_read(fd, &value);
    ++events;
  }
  int events = 0;
};

TEST(EventLoop, TimersThatAreDueDoNotStarveDescriptors) {
  const auto loop = *EventLoop::Create();
  Reader reader;
  const int fd = eventfd(1, EFD_NONBLOCK);
  loop->Watch(fd, EPOLLIN, &reader);
  int timers = 0;
  std::function<void()> again = [&] {
    ++timers;
    loop->At(SteadyNanos() - 1, again);
  };
  again();
  loop->RunUntil([&] { return reader.events > 0 || timers > 100'000; });
  EXPECT_EQ(reader.events, 1);
  loop->Unwatch(fd);
  close(fd);
}

// A client that stands still half of the time is late half of the time, not once.
TEST(Heartbeat, BeatsThatAStallSwallowedAreLateAsWell) {
  const auto loop = *EventLoop::Create();
  constexpr int64_t kBeatNs = 2 * kNanosPerMs, kStallNs = 60 * kNanosPerMs;
  const int64_t start = SteadyNanos();
  const Heartbeat beat(loop.get(), kBeatNs, [] {});
  bool over = false;
  loop->At(start, [&] {
    while (SteadyNanos() < start + kStallNs) {
    }
  });
  loop->At(start + 2 * kStallNs, [&] { over = true; });
  loop->RunUntil([&] { return over; });
  EXPECT_GE(loop->lag().n(), 2 * kStallNs / kBeatNs - 4);
  EXPECT_GE(loop->lag().PercentileMs(75), 20);
}

TEST(LagCounts, PercentilesWithinAnEighth) {
  LagCounts lag;
  EXPECT_EQ(lag.PercentileMs(99), 0);
  for (int ms = 1; ms <= 100; ++ms) lag.Add(ms * kNanosPerMs);
  EXPECT_NEAR(lag.PercentileMs(50), 50, 50 / 8.0);
  EXPECT_NEAR(lag.PercentileMs(99), 99, 99 / 8.0);
  lag.Add(-3);  // a clock's step is no lateness
  EXPECT_LT(lag.PercentileMs(0), 0.001);
}

}  // namespace
}  // namespace vivace::load
