#include "server/service/forecast.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"

namespace vivace::server {
namespace {

constexpr int64_t kObserveEveryNs = 20'000'000;
constexpr int64_t kEnoughTokens = 32;  // a measurement of fewer says little
constexpr double kNewShare = 0.3;      // of a moving average

double Moved(double average, double value) {
  return average == 0.0 ? value : average + kNewShare * (value - average);
}

}  // namespace

// The two waits overlap, so the longer one is a lower bound of both together.
double Forecast::FirstTokenSeconds(int64_t prompt_tokens) const {
  const auto tokens = static_cast<double>(pending_tokens + prompt_tokens);
  const double computing = tokens_per_s > 0.0 ? tokens / tokens_per_s : 0.0;
  const int64_t before = sequences + 1 - max_sequences;  // that must end first
  const double places =
      before > 0 && ends_per_s > 0.0 ? static_cast<double>(before) / ends_per_s : 0.0;
  return std::max(computing, places);
}

int RetryAfterSeconds(double wait_seconds) {
  // Written so that NaN is the least.
  if (!(wait_seconds > kMinRetryAfterSeconds)) return kMinRetryAfterSeconds;
  if (wait_seconds >= kMaxRetryAfterSeconds) return kMaxRetryAfterSeconds;
  return static_cast<int>(std::ceil(wait_seconds));
}

void LoadMeter::Observe(const EngineStats& stats, int64_t now_ns) {
  if (observed_ns_ != 0 && now_ns - observed_ns_ < kObserveEveryNs) return;
  observed_ns_ = now_ns;
  const int64_t tokens = stats.prompt_step_tokens - prompt_tokens_;
  const int64_t ns = stats.prompt_step_ns - prompt_ns_;
  if (tokens < kEnoughTokens || ns <= 0) return;  // goes into the next one
  prompt_tokens_ = stats.prompt_step_tokens;
  prompt_ns_ = stats.prompt_step_ns;
  now_.tokens_per_s = Moved(
      now_.tokens_per_s, static_cast<double>(tokens) * kNanosPerSecond / static_cast<double>(ns));
}

void LoadMeter::Submitted(int64_t prompt_tokens, int64_t sequences) {
  now_.pending_tokens += prompt_tokens;
  now_.sequences += sequences;
}

void LoadMeter::Started(int64_t prompt_tokens) { now_.pending_tokens -= prompt_tokens; }

// Only while all places are taken does the rate of ends say how soon one becomes free.
void LoadMeter::Ended(int64_t sequences, int64_t now_ns) {
  const bool full = now_.sequences >= now_.max_sequences;
  now_.sequences -= sequences;
  const int64_t since = last_end_ns_;
  last_end_ns_ = full ? now_ns : 0;
  if (!full || since == 0 || now_ns <= since) return;
  now_.ends_per_s = Moved(now_.ends_per_s, static_cast<double>(sequences) * kNanosPerSecond /
                                               static_cast<double>(now_ns - since));
}

}  // namespace vivace::server
