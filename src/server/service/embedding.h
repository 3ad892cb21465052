// One embedding, rerank or score request from its tokens to its answer. Its inputs go to the engine
// a few at a time, so that a request of thousands leaves room in the queue for others; each is
// turned into text as it comes back. Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "server/http/http.h"
#include "server/metrics/server_metrics.h"
#include "server/openai/embedding_prepare.h"
#include "server/openai/embedding_writer.h"
#include "server/service/admission.h"
#include "server/service/answer.h"
#include "server/service/request_records.h"

namespace vivace::server {

class Embedding final : public Answer {
 public:
  static constexpr size_t kInputsAtOnce = 16;  // in the engine

  // What it works with; all outlive it.
  struct Context {
    Engine* engine;
    ServerMetrics* metrics;
    RequestRecords* records;
    int64_t arrived_ns = 0;  // steady clock, when the headers were in: limits of time count from it
    uint64_t owner = 0;      // who asked
  };

  Embedding(const Context& context, ExchangePtr exchange, std::shared_ptr<Admission::Ticket> ticket,
            std::unique_ptr<PreparedEmbedding> prepared, AnswerIdentity identity);

  // Refuses at once what its own limits of time cannot be kept for.
  Status Submit() override;
  std::span<const RequestPtr> requests() const override { return requests_; }
  Progress Pump() override;
  void Abandon() override;
  void FailWith(const Error& error) override;
  bool ended() const override { return ended_; }

 private:
  Status SubmitSome();
  bool Take(size_t i);
  void Complete();
  std::string Body() const;
  std::vector<RankedDocument> Ranked() const;
  std::vector<float> Scores() const;
  Headers AnswerHeaders() const;
  void AbortAll();
  void End(int status, std::string_view outcome);
  RequestRecord Record() const;
  const RequestParams& params() const { return prepared_->params; }

  const Context context_;
  const ExchangePtr exchange_;
  const std::shared_ptr<Admission::Ticket> ticket_;
  const std::unique_ptr<PreparedEmbedding> prepared_;
  const AnswerIdentity identity_;
  const int64_t prepared_ns_;
  RequestRecords::Key record_ = 0;    // under way; 0: not yet
  std::vector<RequestPtr> requests_;  // by input
  std::vector<bool> taken_;           // by input
  size_t num_taken_ = 0;
  size_t first_open_ = 0;                       // all inputs before it are taken
  std::vector<std::string> items_;              // of embeddings, by input
  std::vector<std::vector<float>> embeddings_;  // of the others, by input
  int64_t tokens_ = 0;
  bool ended_ = false;
};

}  // namespace vivace::server
