// The requests whose grammar must be compiled first, from when that is known until it is done: seen
// in the metrics and the list of requests, and given up when their own limits of time or their
// clients end the waiting. What compiles for them is not stopped, for it is of use to the next.
//
// Cost: one look at each that waits, at the end of every limit. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "server/http/http.h"
#include "server/metrics/server_metrics.h"
#include "server/openai/answer_writer.h"
#include "server/openai/prepare.h"
#include "server/service/request_records.h"

namespace vivace::server {

class GrammarWaits {
 public:
  struct Wait {
    AnswerIdentity identity;
    RequestRecord record;  // what is known before its preparation
    RequestRecords::Key record_key = 0;
    int64_t since_ns = 0;
    int64_t deadline_ns = 0;                   // steady clock; 0: none
    int64_t queue_limit_ns = 0;                // the same
    std::function<void(const Error&)> refuse;  // tells the client
    bool open = true;                          // it waits
    bool over = false;                         // its client was answered, or has left
  };
  using WaitPtr = std::shared_ptr<Wait>;

  // Both outlive it.
  GrammarWaits(ServerMetrics* metrics, RequestRecords* records)
      : metrics_(metrics), records_(records) {}
  // Once, before the first Begin.
  void Attach(HttpServer* http) { http_ = http; }

  // `wait` has its identity, its record's path, owner and arrival, and `refuse`.
  WaitPtr Begin(Wait wait, const EarlyWishes& wishes);
  // Compiled, or refused to be: nanoseconds that it took. If it is not over, its record is under
  // way until Close or HandOver.
  int64_t End(const WaitPtr& wait);
  // Its answer has begun, whose own record takes this one's place.
  void HandOver(const WaitPtr& wait);
  // There will be no answer of the model's.
  void Close(const WaitPtr& wait, int status, std::string_view outcome);
  // Its client has left.
  void Leave(const WaitPtr& wait);
  // Ends all with an error.
  void FailAll(const Error& error);

  size_t size() const { return waits_.size(); }

 private:
  void Remove(const WaitPtr& wait);
  void Refuse(const WaitPtr& wait, const Error& error);
  void Sweep();
  void Arm();

  ServerMetrics* const metrics_;
  RequestRecords* const records_;
  HttpServer* http_ = nullptr;
  std::vector<WaitPtr> waits_;  // in the order of their coming
  int64_t armed_ns_ = 0;        // when the next timer goes off; 0: there is none
};

}  // namespace vivace::server
