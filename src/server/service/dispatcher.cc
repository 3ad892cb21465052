#include "server/service/dispatcher.h"

#include <algorithm>

#include "base/clock.h"

namespace vivace::server {
namespace {

// How long a slow client is left alone before it is looked at again.
constexpr int kBlockedRetryMs = 50;

}  // namespace

void Dispatcher::Attach(HttpServer* http) {
  http_ = http;
  http->OnWake([this] { TakeNews(); });
  engine_->OnReady([http] { http->Wake(); });
}

Status Dispatcher::Start(const std::shared_ptr<Answer>& answer) {
  VIVACE_RETURN_IF_ERROR(answer->Submit());
  Watch(answer);
  ArmPings();
  return {};
}

// One timer for all, while there are any.
void Dispatcher::ArmPings() {
  if (ping_interval_ms_ <= 0 || pings_armed_ || by_request_.empty()) return;
  pings_armed_ = true;
  http_->After(std::max(ping_interval_ms_ / 2, 1), [this] {
    pings_armed_ = false;
    PingAll();
    ArmPings();
  });
}

void Dispatcher::PingAll() {
  const int64_t now = SteadyNanos(), quiet = ping_interval_ms_ * kNanosPerMs;
  for (const auto& [id, answer] : by_request_) answer->KeepAlive(now, quiet);
}

void Dispatcher::Watch(const std::shared_ptr<Answer>& answer) {
  const auto requests = answer->requests();
  for (; answer->watched < requests.size(); ++answer->watched) {
    by_request_.emplace(requests[answer->watched]->id.value, answer);
  }
}

void Dispatcher::Abandon(const std::shared_ptr<Answer>& answer) {
  answer->Abandon();
  Forget(*answer);
}

void Dispatcher::FailAll(const Error& error) {
  while (!by_request_.empty()) {
    const std::shared_ptr<Answer> answer = by_request_.begin()->second;
    answer->FailWith(error);
    Forget(*answer);
  }
}

void Dispatcher::TakeNews() {
  engine_->TakeReady(&news_);
  for (const RequestPtr& request : news_) {
    const auto found = by_request_.find(request->id.value);
    // What was abandoned may still have had news on the way.
    if (found == by_request_.end()) continue;
    Pump(std::shared_ptr<Answer>(found->second));
  }
  news_.clear();
}

void Dispatcher::Pump(const std::shared_ptr<Answer>& answer) {
  switch (answer->Pump()) {
    case Answer::Progress::kOpen:
      Watch(answer);
      break;
    case Answer::Progress::kBlocked:
      if (answer->waiting_for_client) break;
      answer->waiting_for_client = true;
      http_->After(kBlockedRetryMs, [this, weak = std::weak_ptr<Answer>(answer)] {
        const auto alive = weak.lock();
        if (alive == nullptr || alive->ended()) return;
        alive->waiting_for_client = false;
        Pump(alive);
      });
      break;
    case Answer::Progress::kEnded:
      Forget(*answer);
      break;
  }
}

void Dispatcher::Forget(const Answer& answer) {
  for (const RequestPtr& request : answer.requests()) by_request_.erase(request->id.value);
}

}  // namespace vivace::server
