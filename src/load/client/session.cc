#include "load/client/session.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/clock.h"

namespace vivace::load {
namespace {

constexpr int64_t kOtherDescriptors = 64;
constexpr int kFewKept = 16;
constexpr int kMostMissed = 100'000;  // beats counted after one stall, or a night asleep

// How many of `connections` there is room for.
Result<int64_t> MakeRoom(int64_t connections, int64_t least) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return connections;
  const auto wanted = static_cast<rlim_t>(connections + kOtherDescriptors);
  if (files.rlim_cur >= wanted) return connections;
  const rlim_t hard = files.rlim_max;
  files.rlim_cur = std::min(wanted, hard);
  setrlimit(RLIMIT_NOFILE, &files);
  if (hard >= wanted) return connections;
  const int64_t room = static_cast<int64_t>(hard) - kOtherDescriptors;
  if (room >= least) return room;
  return Fail(ErrorCode::kResourceExhausted, "too_few_files", "max-concurrency",
              "{} connections at once and the program itself need {} open files, and this process "
              "may have {}: raise the limit (ulimit -n {}), or lower --max-concurrency",
              least, least + kOtherDescriptors, hard, least + kOtherDescriptors);
}

}  // namespace

Result<std::unique_ptr<Session>> Session::Create(const Target& target, int64_t connections,
                                                 int64_t least) {
  VIVACE_ASSIGN(connections, MakeRoom(connections, least));
  std::unique_ptr<Session> session(new Session(target));
  session->connections_ = connections;
  VIVACE_ASSIGN(session->loop_, EventLoop::Create());
  const int64_t kept = std::clamp<int64_t>(connections + 1, kFewKept, 1 << 20);
  VIVACE_ASSIGN(session->driver_, CurlDriver::Create(session->loop_.get(), static_cast<int>(kept)));
  return session;
}

Transfer* Session::Acquire() {
  if (free_.empty()) {
    transfers_.push_back(std::make_unique<Transfer>(target_, loop_.get(), driver_.get()));
    return transfers_.back().get();
  }
  Transfer* transfer = free_.back();
  free_.pop_back();
  return transfer;
}

Heartbeat::Heartbeat(EventLoop* loop, int64_t interval_ns, std::function<void()> work)
    : loop_(loop),
      interval_ns_(interval_ns),
      work_(std::move(work)),
      next_ns_(SteadyNanos() + interval_ns) {
  Arm();
}

void Heartbeat::Arm() {
  timer_ = loop_->At(
      next_ns_,
      [this] {
        timer_ = {};
        SkipMissed();
        Arm();
        work_();
      },
      /*counts=*/true);
}

// Beats that fell into a stall were late as well, each by what was left of it: a stall of a second
// is as many samples as a second has beats, not one.
void Heartbeat::SkipMissed() {
  const int64_t now_ns = SteadyNanos();
  next_ns_ += interval_ns_;
  for (int i = 0; i < kMostMissed && next_ns_ < now_ns; ++i, next_ns_ += interval_ns_) {
    loop_->lag().Add(now_ns - next_ns_);
  }
  next_ns_ = std::max(next_ns_, now_ns);
}

}  // namespace vivace::load
