// One chat or completion request from its tokens to the end of its answer. Loop thread only.
//
// It owns the exchange, its place in the queue and the text of every choice. It ends in exactly one
// way: the answer is complete, an error was sent, or the client left; whatever still ran for it in
// the engine has been aborted then, and its place given back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "server/http/http.h"
#include "server/metrics/server_metrics.h"
#include "server/openai/choice_output.h"
#include "server/openai/prepare.h"
#include "server/openai/response_writer.h"
#include "server/openai/served_model.h"
#include "server/service/admission.h"
#include "server/service/forecast.h"
#include "server/service/request_records.h"

namespace vivace::server {

class Generation {
 public:
  // What it works with; all outlive it.
  struct Context {
    Engine* engine;
    const ServedModel* model;
    ServerMetrics* metrics;
    LoadMeter* load;
    RequestRecords* records;
    int64_t arrived_ns = 0;  // steady clock, when the headers were in: limits of time count from it
    uint64_t owner = 0;      // who asked
  };

  Generation(const Context& context, ExchangePtr exchange,
             std::shared_ptr<Admission::Ticket> ticket, std::unique_ptr<PreparedRequest> prepared,
             ResponseWriter::Identity identity);

  // Hands every prompt to the engine; an error is for the caller to send (nothing runs then): one
  // is that its limits of time cannot be kept.
  Status Submit();
  std::span<const RequestPtr> requests() const { return requests_; }

  enum class Progress : uint8_t {
    kOpen,     // more to come
    kBlocked,  // the client reads too slowly; call Pump again later
    kEnded,
  };
  // Takes what the engine published and writes what can be written.
  Progress Pump();

  // Steady clock: when CheckTime is to be called next; 0: never.
  int64_t next_check_ns() const;
  // Ends it if one of its limits of time has passed.
  Progress CheckTime(int64_t now_ns);

  // The client left.
  void Abandon();
  // Ends with `error`: as the answer, or as an event in a stream that has begun.
  void FailWith(const Error& error);

  bool ended() const { return ended_; }
  // The owner's note that it looks again later.
  bool waiting_for_client() const { return waiting_for_client_; }
  void set_waiting_for_client(bool waiting) { waiting_for_client_ = waiting; }

 private:
  // Where an answer stands besides its text.
  struct Choice {
    ChoiceOutput output;
    size_t prompt = 0;  // index of its request
    TokenStream* stream = nullptr;
    bool begun = false;   // its first chunk was written
    bool closed = false;  // its last one
    int64_t last_news_ns = 0;
  };

  void AddChoices(size_t prompt);
  void Feed(Choice* choice, int32_t number);
  void ObserveTokens(Choice* choice, int64_t tokens);
  void WriteChunks(Choice* choice, size_t index);
  void Flush();
  void Complete();
  void SendWhole();
  void CountUnfinished(FinishLabel label);
  void ObserveEnd();
  void ObserveTimes(const RequestPtr& request, int64_t now);
  void AbortAll();
  void End(int status, std::string_view outcome);
  Status CheckLimits(int64_t now_ns) const;
  void EndByDeadline();
  void CountStarted(size_t prompt);
  RequestRecord Record() const;
  RequestParts AnswerParts() const;
  ChoicePart PartOf(const Choice& choice, size_t index) const;
  Usage UsageNow() const;
  Headers AnswerHeaders(const char* content_type) const;
  const RequestParams& params() const { return prepared_->params; }

  const Context context_;
  const ExchangePtr exchange_;
  const std::shared_ptr<Admission::Ticket> ticket_;
  const std::unique_ptr<PreparedRequest> prepared_;
  const ResponseWriter writer_;
  const std::string id_;
  std::vector<RequestPtr> requests_;
  std::vector<Choice> choices_;
  std::string buffer_;          // chunks on their way to the exchange; reused
  int64_t deadline_ns_ = 0;     // steady clock; 0: none
  int64_t queue_limit_ns_ = 0;  // the same, until the first step
  int64_t prepared_ns_ = 0;
  int64_t created_s_ = 0;
  std::vector<bool> started_;  // per prompt: it has its first token
  bool cut_by_deadline_ = false;
  bool stream_begun_ = false;
  bool ended_ = false;
  bool waiting_for_client_ = false;
};

}  // namespace vivace::server
