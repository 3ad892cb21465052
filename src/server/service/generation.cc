#include "server/service/generation.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "server/error_response.h"
#include "server/service/engine_failure.h"
#include "server/service/report_headers.h"
#include "server/service/request_log.h"

namespace vivace::server {
namespace {

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

Generation::Generation(const Context& context, ExchangePtr exchange,
                       std::shared_ptr<Admission::Ticket> ticket,
                       std::unique_ptr<PreparedRequest> prepared, AnswerIdentity identity)
    : context_(context),
      exchange_(std::move(exchange)),
      ticket_(std::move(ticket)),
      prepared_(std::move(prepared)),
      writer_(MakeAnswerWriter(prepared_->params, *context.model->tokenizer, identity)),
      request_id_(identity.request_id.empty() ? std::move(identity.id)
                                              : std::move(identity.request_id)) {}

Status Generation::Submit() {
  const auto sequences = static_cast<int64_t>(prepared_->prompts.size()) * params().n;
  VIVACE_RETURN_IF_ERROR(ticket_->Grow(sequences - 1));
  for (size_t i = 0; i < prepared_->prompts.size(); ++i) {
    auto request = context_.engine->Submit(
        prepared_->EngineRequest(i, context_.model->max_model_len), nullptr);
    if (!request) {
      AbortAll();
      ended_ = true;
      return tl::unexpected<Error>(std::move(request.error()));
    }
    requests_.push_back(std::move(*request));
  }
  for (size_t i = 0; i < requests_.size(); ++i) AddChoices(i);
  prepared_->prompts = {};  // the engine's requests have them
  context_.metrics->params_n->Observe(static_cast<double>(params().n));
  return {};
}

void Generation::AddChoices(size_t prompt) {
  const ActiveRequest& request = *requests_[prompt];
  const int64_t now = SteadyNanos();
  for (const auto& stream : request.choices) {
    choices_.push_back({ChoiceOutput(params(), context_.model->tokenizer, context_.model->eos_ids,
                                     prepared_->reading),
                        prompt, stream.get(), false, false, false, now});
    if (params().echo) {
      choices_.back().output.Echo(request.request.prompt,
                                  params().logprobs ? &request.prompt_logprobs : nullptr);
    }
  }
  context_.metrics->prompt_tokens_per_request->Observe(
      static_cast<double>(request.request.prompt.size()));
  context_.metrics->params_max_tokens->Observe(
      static_cast<double>(request.request.sampling.max_tokens));
}

Generation::Progress Generation::Pump() {
  if (ended_) return Progress::kEnded;
  if (params().stream && exchange_->pending_bytes() > limits::kMaxPendingStreamBytes) {
    context_.metrics->slow_consumer_waits->Add();
    return Progress::kBlocked;
  }
  for (size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    if (choice.output.finished()) continue;
    Feed(&choice, static_cast<int32_t>(i % static_cast<size_t>(params().n)));
    const FinishReason failure = choice.output.failure();
    if (failure != FinishReason::kNone) {
      FailWith(EngineFailure(failure));
      return Progress::kEnded;
    }
    if (params().stream) WriteNews(&choice, i);
  }
  Flush();
  const bool all = std::all_of(choices_.begin(), choices_.end(),
                               [](const Choice& choice) { return choice.output.finished(); });
  if (!all) return Progress::kOpen;
  Complete();
  return Progress::kEnded;
}

// `number`: of the choice within its request.
void Generation::Feed(Choice* choice, int32_t number) {
  const int64_t before = choice->output.tokens();
  choice->output.Feed(choice->stream);
  ObserveTokens(choice, choice->output.tokens() - before);
  if (choice->output.must_abort()) {
    context_.engine->Abort(requests_[choice->prompt], number);
  }
  // The engine has done with its constraint only once the stream says so.
  if (choice->stream->finish_reason() == FinishReason::kNone) return;
  const TokenConstraint* constraint = requests_[choice->prompt]->request.constraint(number);
  choice->steered = constraint != nullptr && constraint->steered();
  prepared_->params.steered |= choice->steered;
}

// Tokens that came together share the time since the last ones.
void Generation::ObserveTokens(Choice* choice, int64_t tokens) {
  if (tokens <= 0) return;
  const int64_t now = SteadyNanos();
  const bool first = choice->output.tokens() == tokens;
  const int64_t gaps = first ? tokens - 1 : tokens;
  if (gaps > 0) {
    context_.metrics->inter_token_latency->Observe(
        Seconds(now - choice->last_news_ns) / static_cast<double>(tokens), gaps);
  }
  choice->last_news_ns = now;
}

ChoicePart Generation::PartOf(const Choice& choice, size_t index) const {
  return {.index = static_cast<int32_t>(index),
          .first = !choice.begun,
          .pieces = choice.output.pieces(),
          .logprobs = choice.output.logprobs(),
          .token_ids = choice.output.token_ids(),
          .prompt_token_ids = requests_[choice.prompt]->request.prompt,
          .prompt_logprobs =
              params().prompt_logprobs ? &requests_[choice.prompt]->prompt_logprobs : nullptr,
          .end = nullptr};
}

void Generation::WriteNews(Choice* choice, size_t index) {
  ChoiceOutput& output = choice->output;
  if (output.tokens() == 0 && !output.finished()) return;
  if (!begun_) {
    begun_ = true;
    writer_->Begin(UsageNow(), &buffer_);
  }
  if (!choice->open) {
    choice->open = true;
    ChoicePart opening;
    opening.index = static_cast<int32_t>(index);
    opening.prompt_token_ids = requests_[choice->prompt]->request.prompt;
    writer_->Open(opening, UsageNow(), &buffer_);
  }
  if (!output.pieces().empty() || !output.logprobs().empty() || !output.token_ids().empty()) {
    writer_->Delta(PartOf(*choice, index), UsageNow(), &buffer_);
    choice->begun = true;
    output.Consume();
  }
  if (!output.finished() || choice->closed) return;
  choice->closed = true;
  ChoicePart last = PartOf(*choice, index);
  ChoiceEnd end = output.end();
  end.steered = choice->steered;
  last.end = &end;
  writer_->Close(last, UsageNow(), &buffer_);
}

Headers Generation::AnswerHeaders(const char* content_type) const {
  Headers headers = {{"content-type", content_type}, {"x-request-id", request_id_}};
  // Anthropic's name for it.
  if (params().endpoint == kMessages) headers.emplace_back("request-id", request_id_);
  AddReportHeaders(params(), &headers);
  return headers;
}

void Generation::Flush() {
  if (buffer_.empty()) return;
  if (!stream_begun_) {
    stream_begun_ = true;
    Headers headers = AnswerHeaders("text/event-stream; charset=utf-8");
    headers.emplace_back("cache-control", "no-cache");
    exchange_->BeginStream(200, std::move(headers));
  }
  exchange_->Write(buffer_);
  buffer_.clear();
}

Usage Generation::UsageNow() const {
  Usage usage;
  for (const RequestPtr& request : requests_) {
    usage.prompt_tokens += static_cast<int64_t>(request->request.prompt.size());
    usage.cached_tokens += request->cached_tokens.load(std::memory_order_relaxed);
  }
  for (const Choice& choice : choices_) {
    usage.completion_tokens += choice.output.tokens();
    usage.reasoning_tokens += choice.output.reasoning_tokens();
  }
  return usage;
}

void Generation::Complete() {
  if (params().stream) {
    writer_->End(UsageNow(), &buffer_);
    Flush();
    exchange_->EndStream();
  } else {
    SendWhole();
  }
  context_.metrics->CountResponse(200);
  for (const Choice& choice : choices_) {
    context_.metrics->CountFinish(choice.output.end().by_length ? FinishLabel::kLength
                                                                : FinishLabel::kStop);
  }
  ObserveEnd();
  End(200);
}

void Generation::SendWhole() {
  std::vector<ChoicePart> parts;
  parts.reserve(choices_.size());
  for (size_t i = 0; i < choices_.size(); ++i) {
    parts.push_back(PartOf(choices_[i], i));
    parts.back().end = &choices_[i].output.end();
  }
  exchange_->Send(200, AnswerHeaders("application/json"), writer_->Whole(parts, UsageNow()));
}

void Generation::FailWith(const Error& error) {
  if (ended_) return;
  AbortAll();
  if (stream_begun_) {
    Flush();
    writer_->Failure(error, &buffer_);
    Flush();
    exchange_->EndStream();
  } else {
    SendError(*exchange_, error, writer_->error_shape());
  }
  context_.metrics->CountResponse(stream_begun_ ? 200 : HttpStatus(error.code));
  CountUnfinished(FinishLabel::kError);
  End(HttpStatus(error.code));
}

void Generation::Abandon() {
  if (ended_) return;
  AbortAll();
  context_.metrics->clients_gone->Add();
  CountUnfinished(FinishLabel::kAbort);
  End(kStatusClientGone);
}

void Generation::CountUnfinished(FinishLabel label) {
  for (size_t i = 0; i < choices_.size(); ++i) context_.metrics->CountFinish(label);
}

void Generation::AbortAll() {
  for (const RequestPtr& request : requests_) context_.engine->Abort(request, -1);
}

void Generation::End(int status) {
  ended_ = true;
  ticket_->Release();
  const Usage usage = UsageNow();
  LogRequest({.path = exchange_->request().path,
              .status = status,
              .started_ns = context_.started_ns,
              .prompt_tokens = usage.prompt_tokens,
              .output_tokens = usage.completion_tokens});
}

void Generation::ObserveEnd() {
  ServerMetrics& metrics = *context_.metrics;
  const int64_t now = SteadyNanos();
  for (const RequestPtr& request : requests_) {
    const RequestTimes& times = request->times;
    const int64_t arrived = times.arrived_ns.load(std::memory_order_relaxed);
    const int64_t scheduled = times.scheduled_ns.load(std::memory_order_relaxed);
    const int64_t first = times.first_token_ns.load(std::memory_order_relaxed);
    metrics.e2e_latency->Observe(Seconds(now - arrived));
    if (scheduled != 0) metrics.queue_time->Observe(Seconds(scheduled - arrived));
    if (first == 0) continue;
    metrics.time_to_first_token->Observe(Seconds(first - arrived));
    if (scheduled != 0) metrics.prefill_time->Observe(Seconds(first - scheduled));
    metrics.decode_time->Observe(Seconds(now - first));
  }
  for (const Choice& choice : choices_) {
    metrics.generation_tokens_per_request->Observe(static_cast<double>(choice.output.tokens()));
  }
}

}  // namespace vivace::server
