// One request for text from its tokens to the end of its answer, whatever the answer's shape. Loop
// thread only.
//
// It owns the exchange, its place in the queue and the text of every choice. It ends in exactly one
// way: the answer is complete, an error was sent, or the client left; whatever still ran for it in
// the engine has been aborted then, and its place given back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "server/http/http.h"
#include "server/metrics/server_metrics.h"
#include "server/openai/answer_writer.h"
#include "server/openai/choice_output.h"
#include "server/openai/prepare.h"
#include "server/openai/served_model.h"
#include "server/service/admission.h"
#include "server/service/answer.h"
#include "server/service/request_records.h"

namespace vivace::server {

class Generation final : public Answer {
 public:
  // What it works with; all outlive it.
  struct Context {
    Engine* engine;
    const ServedModel* model;
    ServerMetrics* metrics;
    RequestRecords* records;
    int64_t arrived_ns = 0;  // steady clock, when the headers were in: limits of time count from it
    uint64_t owner = 0;      // who asked
    int64_t grammar_ns = 0;  // waited for its grammar's compilation
  };

  Generation(const Context& context, ExchangePtr exchange,
             std::shared_ptr<Admission::Ticket> ticket, std::unique_ptr<PreparedRequest> prepared,
             AnswerIdentity identity);

  // Refuses at once what its own limits of time cannot be kept for.
  Status Submit() override;
  std::span<const RequestPtr> requests() const override { return requests_; }
  Progress Pump() override;
  void KeepAlive(int64_t now_ns, int64_t quiet_ns) override;
  void Abandon() override;
  void FailWith(const Error& error) override;
  bool ended() const override { return ended_; }

 private:
  // Where an answer stands besides its text.
  struct Choice {
    ChoiceOutput output;
    size_t prompt = 0;  // index of its request
    TokenStream* stream = nullptr;
    bool open = false;    // its stream was opened
    bool begun = false;   // its first delta was written
    bool closed = false;  // its end
    int64_t last_news_ns = 0;
    bool steered = false;  // its constraint imposed its end
  };

  void AddChoices(size_t prompt);
  void Feed(Choice* choice, int32_t number);
  void ObserveTokens(Choice* choice, int64_t tokens);
  void WriteNews(Choice* choice, size_t index);
  void Flush();
  void Complete();
  void SendWhole();
  void CountUnfinished(FinishLabel label);
  void ObserveEnd();
  void ObserveTimes(const RequestPtr& request, int64_t now);
  void AbortAll();
  void End(int status, std::string_view outcome);
  bool NothingByDeadline() const;
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
  const std::unique_ptr<AnswerWriter> writer_;
  const std::string request_id_;
  const int64_t created_s_;
  const int64_t prepared_ns_;
  RequestRecords::Key record_ = 0;  // under way; 0: not yet
  std::vector<RequestPtr> requests_;
  std::vector<Choice> choices_;
  int64_t last_sent_ns_;       // of a stream: its last bytes, or when it was prepared
  std::string buffer_;         // chunks on their way to the exchange; reused
  bool begun_ = false;         // the writer has begun a stream
  bool stream_begun_ = false;  // and the exchange
  bool ended_ = false;
};

}  // namespace vivace::server
