#include "server/service/embedding.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "server/error_response.h"
#include "server/openai/choice_output.h"
#include "server/openai/embedding_vector.h"
#include "server/service/engine_failure.h"
#include "server/service/forecast.h"
#include "server/service/report_headers.h"
#include "server/service/request_log.h"
#include "server/service/time_limits.h"

namespace vivace::server {

Embedding::Embedding(const Context& context, ExchangePtr exchange,
                     std::shared_ptr<Admission::Ticket> ticket,
                     std::unique_ptr<PreparedEmbedding> prepared, AnswerIdentity identity)
    : context_(context),
      exchange_(std::move(exchange)),
      ticket_(std::move(ticket)),
      prepared_(std::move(prepared)),
      identity_(std::move(identity)),
      prepared_ns_(SteadyNanos()),
      taken_(prepared_->inputs.size()) {
  requests_.reserve(taken_.size());
  if (params().endpoint == kEmbeddings) {
    items_.resize(taken_.size());
  } else {
    embeddings_.resize(taken_.size());
  }
}

Status Embedding::Submit() {
  VIVACE_RETURN_IF_ERROR(
      CheckTimeLimits(params(), context_.engine->stats(), context_.arrived_ns, prepared_ns_));
  const size_t at_once = std::min(taken_.size(), kInputsAtOnce);
  VIVACE_RETURN_IF_ERROR(ticket_->Grow(static_cast<int64_t>(at_once) - 1));
  if (Status status = SubmitSome(); !status) {
    AbortAll();
    ended_ = true;
    return status;
  }
  record_ = context_.records->Begin(identity_.request_id, [this] { return Record(); });
  return {};
}

// Where the queue is full, what is in the engine already makes room in time.
Status Embedding::SubmitSome() {
  while (requests_.size() < taken_.size() && requests_.size() - num_taken_ < kInputsAtOnce) {
    const size_t i = requests_.size();
    auto tokens = prepared_->inputs[i];
    GenerationRequest wanted = prepared_->TakeEngineRequest(i);
    // The first input is what stands in the queue for the request; the others follow it.
    AddTimeLimits(params(), context_.arrived_ns, prepared_ns_, /*queued=*/i == 0, &wanted);
    const auto count = static_cast<int64_t>(tokens.size());
    auto request = context_.engine->Submit(std::move(wanted), nullptr);
    if (!request) {
      const bool full = request.error().code == ErrorCode::kResourceExhausted;
      if (!full || requests_.size() == num_taken_) {
        return tl::unexpected<Error>(std::move(request.error()));
      }
      prepared_->inputs[i] = std::move(tokens);
      return {};
    }
    tokens_ += count;
    context_.metrics->prompt_tokens_per_request->Observe(static_cast<double>(count));
    requests_.push_back(std::move(*request));
  }
  return {};
}

Answer::Progress Embedding::Pump() {
  if (ended_) return Progress::kEnded;
  for (size_t i = first_open_; i < requests_.size(); ++i) {
    if (taken_[i]) continue;
    const FinishReason reason = requests_[i]->choices.front()->finish_reason();
    if (reason == FinishReason::kNone) continue;
    if (reason != FinishReason::kLength || !Take(i)) {
      FailWith(EngineFailure(reason == FinishReason::kLength ? FinishReason::kError : reason));
      return Progress::kEnded;
    }
  }
  while (first_open_ < taken_.size() && taken_[first_open_]) ++first_open_;
  if (const Status status = SubmitSome(); !status) {
    FailWith(status.error());
    return Progress::kEnded;
  }
  if (num_taken_ < taken_.size()) return Progress::kOpen;
  Complete();
  return Progress::kEnded;
}

// False: it is not finite.
bool Embedding::Take(size_t i) {
  taken_[i] = true;
  ++num_taken_;
  // Similarity is of directions, whatever the request says of lengths.
  const bool normalize = params().normalize || params().endpoint != kEmbeddings;
  std::vector<float> embedding =
      MakeEmbedding(std::exchange(requests_[i]->pooled, {}), prepared_->dimensions, normalize);
  if (embedding.empty()) return false;
  if (params().endpoint == kEmbeddings) {
    items_[i] = EmbeddingItem(i, embedding, params().base64);
  } else {
    embeddings_[i] = std::move(embedding);
  }
  return true;
}

std::vector<float> Embedding::Scores() const {
  std::vector<float> scores;
  const size_t first = prepared_->num_first;
  for (size_t i = first; i < embeddings_.size(); ++i) {
    const size_t other = first == 1 ? 0 : i - first;
    scores.push_back(CosineSimilarity(embeddings_[other], embeddings_[i]));
  }
  return scores;
}

// Best first, the earlier one among equals.
std::vector<RankedDocument> Embedding::Ranked() const {
  std::vector<RankedDocument> ranked;
  for (const float score : Scores()) ranked.push_back({ranked.size(), score});
  std::ranges::stable_sort(ranked, std::greater(), &RankedDocument::score);
  const auto wanted = static_cast<size_t>(params().top_n);
  if (wanted > 0 && wanted < ranked.size()) ranked.resize(wanted);
  return ranked;
}

std::string Embedding::Body() const {
  switch (params().endpoint) {
    case kRerank:
      return RerankAnswer(identity_, Ranked(), tokens_, params());
    case kScore:
      return ScoreAnswer(identity_, Scores(), tokens_, params());
    default:
      return EmbeddingsAnswer(identity_, items_, tokens_, params());
  }
}

Headers Embedding::AnswerHeaders() const {
  Headers headers = {{"content-type", "application/json"}, {"x-request-id", identity_.request_id}};
  headers.emplace_back("server-timing", ServerTiming(PartsOf(Record(), SteadyNanos())));
  AddReportHeaders(params(), &headers);
  return headers;
}

void Embedding::Complete() {
  exchange_->Send(200, AnswerHeaders(), Body());
  ServerMetrics& metrics = *context_.metrics;
  metrics.CountResponse(200);
  const auto seconds = [](int64_t ns) { return static_cast<double>(ns) * 1e-9; };
  for (const RequestPtr& request : requests_) {
    const int64_t arrived = request->times.arrived_ns.load(std::memory_order_relaxed);
    const int64_t scheduled = request->times.scheduled_ns.load(std::memory_order_relaxed);
    const int64_t finished = request->times.finished_ns.load(std::memory_order_relaxed);
    metrics.CountFinish(FinishLabel::kStop);
    metrics.e2e_latency->Observe(seconds(finished - arrived));
    metrics.queue_time->Observe(seconds(scheduled - arrived));
  }
  End(200, "stop");
}

void Embedding::FailWith(const Error& error) {
  if (ended_) return;
  AbortAll();
  SendError(*exchange_, error, ErrorShape::kOpenAi, RetryAfterSeconds(context_.engine->stats()),
            identity_.request_id);
  context_.metrics->CountResponse(HttpStatus(error.code));
  context_.metrics->CountFinish(FinishLabel::kError);
  End(HttpStatus(error.code), OutcomeOfFailure(error, context_.metrics));
}

void Embedding::Abandon() {
  if (ended_) return;
  AbortAll();
  context_.metrics->clients_gone->Add();
  context_.metrics->CountFinish(FinishLabel::kAbort);
  End(kStatusClientGone, "gone");
}

void Embedding::AbortAll() {
  for (size_t i = first_open_; i < requests_.size(); ++i) {
    if (!taken_[i]) context_.engine->Abort(requests_[i], -1);
  }
}

void Embedding::End(int status, std::string_view outcome) {
  ended_ = true;
  ticket_->Release();
  RequestRecord record = Record();
  record.status = status;
  record.outcome = outcome;
  record.ended_ns = SteadyNanos();
  LogRequest({.id = identity_.request_id,
              .path = record.path,
              .status = status,
              .started_ns = context_.arrived_ns,
              .prompt_tokens = tokens_});
  context_.records->End(record_, std::move(record));
}

// As it is now; what End adds is left open.
RequestRecord Embedding::Record() const {
  RequestRecord record;
  record.id = identity_.request_id;
  record.path = exchange_->request().path;
  record.owner = context_.owner;
  record.created_s = identity_.created_s;
  record.arrived_ns = context_.arrived_ns;
  record.prepared_ns = prepared_ns_;
  record.choices = 0;
  for (size_t i = 0; i < requests_.size(); ++i) {
    AddPrompt(*requests_[i], requests_.size() - i, &record);
  }
  return record;
}

}  // namespace vivace::server
