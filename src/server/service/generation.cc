#include "server/service/generation.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "server/error_response.h"
#include "server/service/engine_failure.h"
#include "server/service/forecast.h"
#include "server/service/report_headers.h"
#include "server/service/request_log.h"
#include "server/service/time_limits.h"

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
      request_id_(std::move(identity.request_id)),
      created_s_(identity.created_s),
      prepared_ns_(SteadyNanos()),
      last_sent_ns_(prepared_ns_) {}

Status Generation::Submit() {
  const auto sequences = static_cast<int64_t>(prepared_->requests.size()) * params().n;
  VIVACE_RETURN_IF_ERROR(
      CheckTimeLimits(params(), context_.engine->stats(), context_.arrived_ns, prepared_ns_));
  VIVACE_RETURN_IF_ERROR(ticket_->Grow(sequences - 1));
  for (GenerationRequest& wanted : prepared_->requests) {
    AddTimeLimits(params(), context_.arrived_ns, prepared_ns_, /*queued=*/true, &wanted);
    wanted.follows = !requests_.empty();
    auto request = context_.engine->Submit(std::move(wanted), nullptr);
    if (!request) {
      AbortAll();
      ended_ = true;
      return tl::unexpected<Error>(std::move(request.error()));
    }
    requests_.push_back(std::move(*request));
  }
  for (size_t i = 0; i < requests_.size(); ++i) AddChoices(i);
  prepared_->requests.clear();
  record_ = context_.records->Begin(request_id_, [this] { return Record(); });
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
    const auto number = static_cast<int32_t>(i % static_cast<size_t>(params().n));
    Feed(&choice, number);
    const FinishReason failure = choice.output.failure();
    if (failure != FinishReason::kNone) {
      FailWith(EngineFailure(failure, requests_[choice.prompt]->request.constraint(number)));
      return Progress::kEnded;
    }
  }
  if (NothingByDeadline()) {
    FailWith(EngineFailure(FinishReason::kDeadline));
    return Progress::kEnded;
  }
  for (size_t i = 0; params().stream && i < choices_.size(); ++i) {
    if (!choices_[i].closed) WriteNews(&choices_[i], i);
  }
  Flush();
  const bool all = std::all_of(choices_.begin(), choices_.end(),
                               [](const Choice& choice) { return choice.output.finished(); });
  if (!all) return Progress::kOpen;
  Complete();
  return Progress::kEnded;
}

// The time was up before any choice had a token.
bool Generation::NothingByDeadline() const {
  bool late = false;
  for (const Choice& choice : choices_) {
    if (choice.output.tokens() > 0) return false;
    late = late || choice.output.by_deadline();
  }
  return late;
}

// `number`: of the choice within its request.
void Generation::Feed(Choice* choice, int32_t number) {
  const int64_t before = choice->output.tokens();
  choice->output.Feed(choice->stream);
  ObserveTokens(choice, choice->output.tokens() - before);
  prepared_->params.deadline |= choice->output.by_deadline();
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
    Usage usage = UsageNow();  // of which nothing of this choice is said yet
    usage.completion_tokens -= output.tokens();
    usage.reasoning_tokens -= output.reasoning_tokens();
    writer_->Open(opening, usage, &buffer_);
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
  Headers headers = {{"content-type", content_type}};
  AddRequestId(request_id_, writer_->error_shape(), &headers);
  headers.emplace_back("server-timing", ServerTiming(AnswerParts()));
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
  last_sent_ns_ = SteadyNanos();
}

// From the first ping on the status is 200: what fails then is told by an event.
void Generation::KeepAlive(int64_t now_ns, int64_t quiet_ns) {
  if (ended_ || !params().stream || now_ns - last_sent_ns_ < quiet_ns) return;
  if (exchange_->pending_bytes() > 0) return;  // it has not read what it was sent
  if (!begun_) {
    begun_ = true;
    writer_->Begin(UsageNow(), &buffer_);
  }
  if (buffer_.empty()) writer_->Ping(&buffer_);
  Flush();
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
  const auto any = [this](auto is) {
    return std::any_of(choices_.begin(), choices_.end(),
                       [is](const Choice& choice) { return is(choice.output); });
  };
  const bool late = any([](const ChoiceOutput& output) { return output.by_deadline(); });
  const bool cut = any([](const ChoiceOutput& output) { return output.end().by_length; });
  if (late) context_.metrics->deadlines_passed->Add();
  End(200, late ? kDeadlineReason : cut ? "length" : "stop");
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
    SendError(*exchange_, error, writer_->error_shape(),
              RetryAfterSeconds(context_.engine->stats()), request_id_);
  }
  context_.metrics->CountResponse(stream_begun_ ? 200 : HttpStatus(error.code));
  CountUnfinished(FinishLabel::kError);
  End(HttpStatus(error.code), OutcomeOfFailure(error, context_.metrics));
}

void Generation::Abandon() {
  if (ended_) return;
  AbortAll();
  context_.metrics->clients_gone->Add();
  CountUnfinished(FinishLabel::kAbort);
  End(kStatusClientGone, "gone");
}

void Generation::CountUnfinished(FinishLabel label) {
  for (size_t i = 0; i < choices_.size(); ++i) context_.metrics->CountFinish(label);
}

void Generation::AbortAll() {
  for (const RequestPtr& request : requests_) context_.engine->Abort(request, -1);
}

void Generation::End(int status, std::string_view outcome) {
  ended_ = true;
  ticket_->Release();
  RequestRecord record = Record();
  record.status = status;
  record.outcome = outcome;
  record.ended_ns = SteadyNanos();
  int64_t first = 0;
  for (const PromptRecord& prompt : record.prompts) first = std::max(first, prompt.first_token_ns);
  LogRequest({.id = request_id_,
              .path = record.path,
              .status = status,
              .started_ns = context_.arrived_ns,
              .prompt_tokens = UsageNow().prompt_tokens,
              .output_tokens = record.output_tokens,
              .first_token_ns = first});
  context_.records->End(record_, std::move(record));
}

// As it is now; what End adds is left open.
RequestRecord Generation::Record() const {
  RequestRecord record;
  record.id = request_id_;
  record.path = exchange_->request().path;
  record.owner = context_.owner;
  record.created_s = created_s_;
  record.arrived_ns = context_.arrived_ns;
  record.prepared_ns = prepared_ns_;
  record.grammar_ns = context_.grammar_ns;
  record.output_tokens = UsageNow().completion_tokens;
  record.choices = static_cast<int32_t>(choices_.size());
  for (const RequestPtr& request : requests_) record.prompts.push_back(RecordOf(*request));
  return record;
}

// What is known of the times when the answer's headers go out: of a stream, up to its first token.
RequestParts Generation::AnswerParts() const {
  RequestParts parts = PartsOf(Record(), SteadyNanos());
  if (params().stream) parts.decode_ms = parts.total_ms = -1;
  return parts;
}

void Generation::ObserveEnd() {
  ServerMetrics& metrics = *context_.metrics;
  const int64_t now = SteadyNanos();
  for (const RequestPtr& request : requests_) ObserveTimes(request, now);
  int64_t longest = 0;
  for (const Choice& choice : choices_) {
    const int64_t tokens = choice.output.tokens();
    longest = std::max(longest, tokens);
    metrics.generation_tokens_per_request->Observe(static_cast<double>(tokens));
    const int64_t first =
        requests_[choice.prompt]->times.first_token_ns.load(std::memory_order_relaxed);
    if (tokens < 2 || first == 0) continue;
    metrics.time_per_output_token->Observe(Seconds(choice.last_news_ns - first) /
                                           static_cast<double>(tokens - 1));
  }
  metrics.max_generation_tokens->Observe(static_cast<double>(longest));
}

void Generation::ObserveTimes(const RequestPtr& request, int64_t now) {
  ServerMetrics& metrics = *context_.metrics;
  const RequestTimes& times = request->times;
  const int64_t arrived = times.arrived_ns.load(std::memory_order_relaxed);
  const int64_t scheduled = times.scheduled_ns.load(std::memory_order_relaxed);
  const int64_t first = times.first_token_ns.load(std::memory_order_relaxed);
  const int32_t cached = request->cached_tokens.load(std::memory_order_relaxed);
  metrics.e2e_latency->Observe(Seconds(now - arrived));
  metrics.preemptions_per_request->Observe(request->preemptions.load(std::memory_order_relaxed));
  metrics.prompt_tokens_computed->Observe(
      static_cast<double>(std::ssize(request->request.prompt) - cached));
  metrics.cached_tokens->Add(cached);
  if (scheduled != 0) {
    metrics.queue_time->Observe(Seconds(scheduled - arrived));
    metrics.inference_time->Observe(Seconds(now - scheduled));
  }
  if (first == 0) return;
  metrics.time_to_first_token->Observe(Seconds(first - arrived));
  if (scheduled != 0) metrics.prefill_time->Observe(Seconds(first - scheduled));
  metrics.decode_time->Observe(Seconds(now - first));
}

}  // namespace vivace::server
