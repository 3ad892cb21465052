#include "load/client/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace vivace::load {
Dispatcher::Dispatcher(Session* session, const BodyWriter& body, const Workload& workload,
                       std::span<const double> arrivals_s, Options options)
    : session_(session),
      body_(body),
      workload_(workload),
      arrivals_s_(arrivals_s),
      options_(std::move(options)),
      chains_(ChainsOf(workload)),
      chains_left_(chains_.size()) {
  closed_loop_ = arrivals_s_.empty() && !HaveOwnTimes(chains_) && options_.max_concurrency > 0;
  MakeRecords();
}

void Dispatcher::MakeRecords() {
  records_.resize(workload_.requests.size());
  for (size_t i = 0; i < records_.size(); ++i) {
    const PlannedRequest& request = workload_.requests[i];
    records_[i].index = static_cast<int32_t>(i);
    records_[i].conversation = request.conversation;
    records_[i].wanted_prompt_tokens = request.prompt_tokens;
    records_[i].wanted_output_tokens = body_.sets_length() ? request.output_tokens : 0;
    records_[i].cached_tokens = -1;
  }
}

// ---- When ----

int64_t Dispatcher::DueOf(double at_s) const {
  constexpr double kLatest = 1e9;  // three decades, and in nanoseconds well within 63 bits
  return start_ns_ + static_cast<int64_t>(std::clamp(at_s, 0.0, kLatest) * kNanosPerSecond);
}

double Dispatcher::ArrivalOf(size_t chain) const {
  if (chain < arrivals_s_.size()) return arrivals_s_[chain];
  return std::max(chains_[chain].at_s, 0.0);
}

void Dispatcher::Start(int64_t start_ns) {
  start_ns_ = start_ns;
  if (closed_loop_) {
    session_->loop()->At(start_ns, [this, start_ns] { FillPlaces(start_ns); });
  } else {
    ArmArrival();
  }
}

void Dispatcher::ArmArrival() {
  if (next_chain_ == chains_.size()) return;
  arrival_ = session_->loop()->At(DueOf(ArrivalOf(next_chain_)), [this] {
    arrival_ = {};
    OnArrival();
  });
}

void Dispatcher::OnArrival() {
  const Due due = {&chains_[next_chain_], DueOf(ArrivalOf(next_chain_))};
  ++next_chain_;
  ArmArrival();
  if (waiting_.empty() && HasPlace()) {
    Begin(due.chain, due.scheduled_ns);
  } else {
    waiting_.push_back(due);
    waited_for_connections_ += options_.max_concurrency == 0;
  }
}

// `free_ns`: since when there is a place.
void Dispatcher::FillPlaces(int64_t free_ns) {
  while (HasPlace()) {
    if (!waiting_.empty()) {
      const Due due = waiting_.front();
      waiting_.pop_front();
      Begin(due.chain, due.scheduled_ns);
    } else if (closed_loop_ && next_chain_ < chains_.size()) {
      Begin(&chains_[next_chain_++], free_ns);
    } else {
      return;
    }
  }
}

// ---- One chain ----

void Dispatcher::Begin(const Chain* chain, int64_t scheduled_ns) {
  auto active = std::make_unique<Active>();
  active->chain = chain;
  active->transfer = session_->Acquire();
  active->at = active_.size();
  active_.push_back(std::move(active));
  SendTurn(active_.back().get(), scheduled_ns);
}

void Dispatcher::SendTurn(Active* active, int64_t scheduled_ns) {
  const size_t index = active->chain->requests[active->turn];
  const PlannedRequest& request = workload_.requests[index];
  RequestRecord& record = records_[index];
  record.scheduled_ns = scheduled_ns;
  const bool goes_on = active->turn + 1 < active->chain->requests.size();
  Transfer::Request sent = {
      .body = body_.Write(request, active->turn == 0 ? nullptr : &active->history),
      .id = options_.id_prefix.empty() ? "" : fmt::format("{}{}", options_.id_prefix, index),
      .timeout_s = options_.request_timeout_s,
      .options = {.keep_text = goes_on,
                  .max_events = body_.MostEvents(request),
                  .live_tokens = &live_tokens_}};
  active->transfer->Send(std::move(sent), &record, [this, active] { OnAnswer(active); });
}

void Dispatcher::OnAnswer(Active* active) {
  const size_t index = active->chain->requests[active->turn];
  const RequestRecord& record = records_[index];
  const bool completed = record.outcome == Outcome::kCompleted;
  ++(completed ? completed_ : failed_);
  if (++active->turn == active->chain->requests.size()) return EndChain(active, record.ended_ns);
  if (!completed) {
    LeaveOut(*active->chain, active->turn, "an earlier turn of its conversation failed");
    return EndChain(active, record.ended_ns);
  }
  active->history.Add(workload_.requests[index], active->transfer->answer().text());
  const size_t next = active->chain->requests[active->turn];
  const int64_t due_ns = std::max(record.ended_ns, workload_.requests[next].at_s >= 0
                                                       ? DueOf(workload_.requests[next].at_s)
                                                       : int64_t{0});
  active->timer = session_->loop()->At(due_ns, [this, active, due_ns] {
    active->timer = {};
    SendTurn(active, due_ns);
  });
}

void Dispatcher::EndChain(Active* active, int64_t ended_ns) {
  session_->Release(active->transfer);
  const size_t at = active->at;
  std::swap(active_[at], active_.back());
  active_[at]->at = at;
  active_.pop_back();
  --chains_left_;
  FillPlaces(ended_ns);
}

// ---- The end ----

void Dispatcher::LeaveOut(const Chain& chain, size_t from_turn, const std::string& reason) {
  for (size_t i = from_turn; i < chain.requests.size(); ++i) {
    RequestRecord& record = records_[chain.requests[i]];
    record.outcome = Outcome::kNotRun;
    record.reason = reason;
    if (record.scheduled_ns == 0) record.scheduled_ns = SteadyNanos();
  }
}

void Dispatcher::Stop(const std::string& reason, Outcome under_way) {
  session_->loop()->Cancel(&arrival_);
  for (const auto& active : active_) {
    session_->loop()->Cancel(&active->timer);
    if (active->transfer->busy()) {
      active->transfer->Abort(under_way, reason);
      const size_t index = active->chain->requests[active->turn++];
      const Outcome outcome = records_[index].outcome;
      completed_ += outcome == Outcome::kCompleted;
      failed_ += outcome != Outcome::kCompleted && outcome != Outcome::kNotRun;
    }
    LeaveOut(*active->chain, active->turn, reason);
    session_->Release(active->transfer);
  }
  active_.clear();
  for (const Due& due : waiting_) LeaveOut(*due.chain, 0, reason);
  waiting_.clear();
  for (; next_chain_ < chains_.size(); ++next_chain_) LeaveOut(chains_[next_chain_], 0, reason);
  chains_left_ = 0;
}

}  // namespace vivace::load
