#include "server/service/deadlines.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace vivace::server {
namespace {

// Timers of the loop cannot be taken back; a short one is soon over, whatever comes.
constexpr int64_t kLookMs = 1'000;
constexpr int64_t kNanosPerMs = 1'000'000;

}  // namespace

void Deadlines::Add(int64_t at_ns, const std::shared_ptr<Generation>& generation) {
  waiting_.emplace(at_ns, generation);
  Arm(SteadyNanos());
}

void Deadlines::Arm(int64_t now_ns) {
  if (waiting_.empty()) return;
  const int64_t first = waiting_.begin()->first;
  if (armed_ns_ != 0 && armed_ns_ <= std::max(first, now_ns)) return;
  // Rounded up, so that the time has come when it fires.
  const int64_t ms = std::clamp<int64_t>((first - now_ns) / kNanosPerMs + 1, 1, kLookMs);
  armed_ns_ = now_ns + ms * kNanosPerMs;
  http_->After(static_cast<int>(ms), [this, look = ++look_] { Look(look); });
}

void Deadlines::Look(uint64_t look) {
  if (look != look_) return;
  const int64_t now = SteadyNanos();
  armed_ns_ = 0;
  std::erase_if(waiting_, [](const auto& entry) { return entry.second.expired(); });
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    const auto generation = waiting_.begin()->second.lock();
    waiting_.erase(waiting_.begin());
    if (generation != nullptr) due_(generation);
  }
  Arm(now);
}

}  // namespace vivace::server
