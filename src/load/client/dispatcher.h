// Sends a workload: which request goes when, and into which place. Everything is fixed before:
// arrivals are absolute times, so a late answer or a late client never moves what comes after.
//
// Closed loop (no arrivals, a concurrency): a request is due when the place before it becomes free.
// Open loop: due at its arrival, or at its own time in a trace; where all places are taken it
// waits, and its latency counts from when it was due. Conversations: a turn is due when the last
// one ended (or at its own time, if that is later), in the same place. The loop's thread.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "load/chains.h"
#include "load/client/request_body.h"
#include "load/client/session.h"
#include "load/record.h"
#include "load/workload.h"

namespace vivace::load {

class Dispatcher {
 public:
  struct Options {
    int32_t max_concurrency = 0;  // 0: unlimited
    double request_timeout_s = 0;
    std::string id_prefix;  // of X-Request-Id
  };

  // `arrivals_s`: seconds after the start, one for each chain; empty: the trace's times, or a
  // closed loop, or all at once where there is no concurrency either. All outlive it.
  Dispatcher(Session* session, const BodyWriter& body, const Workload& workload,
             std::span<const double> arrivals_s, Options options);

  void Start(int64_t start_ns);
  bool done() const { return chains_left_ == 0; }
  // Ends what is under way as `under_way` and leaves out the rest, which is kNotRun: because of
  // `reason`.
  void Stop(const std::string& reason, Outcome under_way);

  // Requests that waited for a connection, because there may be no more of them (Session).
  int64_t waited_for_connections() const { return waited_for_connections_; }

  // The next request is due at no known time any more: all were sent, or wait for a place.
  bool all_due() const { return next_chain_ == chains_.size(); }

  int32_t running() const { return static_cast<int32_t>(active_.size()); }
  int64_t completed() const { return completed_; }
  int64_t failed() const { return failed_; }
  int64_t live_tokens() const { return live_tokens_; }
  std::vector<RequestRecord> TakeRecords() { return std::move(records_); }

 private:
  struct Active {  // one place that is taken
    const Chain* chain = nullptr;
    size_t turn = 0;
    History history;
    Transfer* transfer = nullptr;
    EventLoop::TimerKey timer{};  // for a turn whose own time has not come
    size_t at = 0;                // in active_
  };
  struct Due {
    const Chain* chain;
    int64_t scheduled_ns;
  };

  void MakeRecords();
  int64_t DueOf(double at_s) const;
  double ArrivalOf(size_t chain) const;
  bool HasPlace() const {
    return running() < session_->connections() &&
           (options_.max_concurrency == 0 || running() < options_.max_concurrency);
  }
  void ArmArrival();
  void OnArrival();
  void FillPlaces(int64_t free_ns);
  void Begin(const Chain* chain, int64_t scheduled_ns);
  void SendTurn(Active* active, int64_t scheduled_ns);
  void OnAnswer(Active* active);
  void EndChain(Active* active, int64_t ended_ns);
  void LeaveOut(const Chain& chain, size_t from_turn, const std::string& reason);

  Session* const session_;
  const BodyWriter& body_;
  const Workload& workload_;
  const std::span<const double> arrivals_s_;
  const Options options_;
  std::vector<Chain> chains_;
  std::vector<RequestRecord> records_;  // never grows: transfers write into it
  bool closed_loop_ = false;
  int64_t start_ns_ = 0;
  size_t next_chain_ = 0;
  size_t chains_left_ = 0;
  std::deque<Due> waiting_;  // for a place
  std::vector<std::unique_ptr<Active>> active_;
  EventLoop::TimerKey arrival_{};
  int64_t completed_ = 0, failed_ = 0, live_tokens_ = 0;
  int64_t waited_for_connections_ = 0;
};

}  // namespace vivace::load
