#include "server/service/dispatcher.h"

#include "base/clock.h"

namespace vivace::server {
namespace {

// How long a slow client is left alone before it is looked at again.
constexpr int kBlockedRetryMs = 50;

}  // namespace

void Dispatcher::Attach(HttpServer* http) {
  http_ = http;
  deadlines_.Attach(http);
  http->OnWake([this] { TakeNews(); });
  engine_->OnReady([http] { http->Wake(); });
}

Status Dispatcher::Start(const std::shared_ptr<Generation>& generation) {
  VIVACE_RETURN_IF_ERROR(generation->Submit());
  for (const RequestPtr& request : generation->requests()) {
    by_request_.emplace(request->id.value, generation);
  }
  if (const int64_t at = generation->next_check_ns(); at != 0) deadlines_.Add(at, generation);
  return {};
}

void Dispatcher::Abandon(const std::shared_ptr<Generation>& generation) {
  generation->Abandon();
  Forget(*generation);
}

void Dispatcher::FailAll(const Error& error) {
  while (!by_request_.empty()) {
    const std::shared_ptr<Generation> generation = by_request_.begin()->second;
    generation->FailWith(error);
    Forget(*generation);
  }
}

void Dispatcher::CheckTime(const std::shared_ptr<Generation>& generation) {
  if (generation->CheckTime(SteadyNanos()) == Generation::Progress::kEnded) {
    Forget(*generation);
  } else if (const int64_t at = generation->next_check_ns(); at != 0) {
    deadlines_.Add(at, generation);
  }
}

void Dispatcher::TakeNews() {
  load_->Observe(engine_->stats(), SteadyNanos());
  engine_->TakeReady(&news_);
  for (const RequestPtr& request : news_) {
    const auto found = by_request_.find(request->id.value);
    // What was abandoned may still have had news on the way.
    if (found == by_request_.end()) continue;
    Pump(std::shared_ptr<Generation>(found->second));
  }
  news_.clear();
}

void Dispatcher::Pump(const std::shared_ptr<Generation>& generation) {
  switch (generation->Pump()) {
    case Generation::Progress::kOpen:
      break;
    case Generation::Progress::kBlocked:
      if (generation->waiting_for_client()) break;
      generation->set_waiting_for_client(true);
      http_->After(kBlockedRetryMs, [this, weak = std::weak_ptr<Generation>(generation)] {
        const auto alive = weak.lock();
        if (alive == nullptr || alive->ended()) return;
        alive->set_waiting_for_client(false);
        Pump(alive);
      });
      break;
    case Generation::Progress::kEnded:
      Forget(*generation);
      break;
  }
}

void Dispatcher::Forget(const Generation& generation) {
  for (const RequestPtr& request : generation.requests()) by_request_.erase(request->id.value);
}

}  // namespace vivace::server
