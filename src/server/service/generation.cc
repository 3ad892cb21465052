#include "server/service/generation.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "server/error_response.h"
#include "server/service/ignored_header.h"
#include "server/service/request_log.h"

namespace vivace::server {
namespace {

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

constexpr int64_t kNanosPerMs = 1'000'000;

// What was asked for as a time from `arrived`; 0: nothing.
int64_t LimitOf(const std::optional<int64_t>& ms, int64_t arrived_ns) {
  return ms ? arrived_ns + *ms * kNanosPerMs : 0;
}

Error DeadlineExceeded(int64_t deadline_ms) {
  return {ErrorCode::kDeadlineExceeded, "deadline_exceeded",
          fmt::format("the deadline of {} ms has passed before there was any output", deadline_ms),
          "deadline_ms"};
}

Error QueueTimeExceeded(int64_t max_queue_ms) {
  return {
      ErrorCode::kResourceExhausted, "queue_time_exceeded",
      fmt::format("the request has waited for max_queue_ms, {} ms; try again later", max_queue_ms),
      "max_queue_ms"};
}

Error EngineFailure(FinishReason reason) {
  if (reason == FinishReason::kError) {
    return {ErrorCode::kInternal, "non_finite_logits",
            "the model's output was not finite; the request was ended", ""};
  }
  return {ErrorCode::kInternal, "aborted", "the request was ended by the server", ""};
}

}  // namespace

Generation::Generation(const Context& context, ExchangePtr exchange,
                       std::shared_ptr<Admission::Ticket> ticket,
                       std::unique_ptr<PreparedRequest> prepared, ResponseWriter::Identity identity)
    : context_(context),
      exchange_(std::move(exchange)),
      ticket_(std::move(ticket)),
      prepared_(std::move(prepared)),
      writer_(prepared_->params, *context.model->tokenizer, identity),
      id_(std::move(identity.id)),
      deadline_ns_(LimitOf(params().deadline_ms, context.arrived_ns)),
      queue_limit_ns_(LimitOf(params().max_queue_ms, context.arrived_ns)),
      prepared_ns_(SteadyNanos()),
      created_s_(identity.created_s) {}

// Refuses at once what is foreseen to be late. A forecast leans to the early side.
Status Generation::CheckLimits(int64_t now_ns) const {
  if (deadline_ns_ == 0 && queue_limit_ns_ == 0) return {};
  if (deadline_ns_ != 0 && now_ns >= deadline_ns_) {
    return tl::unexpected<Error>(DeadlineExceeded(*params().deadline_ms));
  }
  if (queue_limit_ns_ != 0 && now_ns >= queue_limit_ns_) {
    return tl::unexpected<Error>(QueueTimeExceeded(*params().max_queue_ms));
  }
  const Forecast& load = context_.load->now();
  int64_t tokens = 0;
  for (const auto& prompt : prepared_->prompts) tokens += static_cast<int64_t>(prompt.size());
  const double first = load.FirstTokenSeconds(tokens);
  if (deadline_ns_ != 0 &&
      Seconds(now_ns - context_.arrived_ns) + first > Seconds(deadline_ns_ - context_.arrived_ns)) {
    return Fail(ErrorCode::kResourceExhausted, "deadline_exceeded", "deadline_ms",
                "the first token is expected in {:.1f} s, after the deadline of {} ms; try again "
                "later",
                first, *params().deadline_ms);
  }
  const double queue = load.QueueSeconds();
  if (queue_limit_ns_ != 0 && queue > Seconds(queue_limit_ns_ - now_ns)) {
    return Fail(
        ErrorCode::kResourceExhausted, "queue_time_exceeded", "max_queue_ms",
        "the queue is {:.1f} s long, more than max_queue_ms allows ({} ms); try again later", queue,
        *params().max_queue_ms);
  }
  return {};
}

Status Generation::Submit() {
  const auto sequences = static_cast<int64_t>(prepared_->prompts.size()) * params().n;
  VIVACE_RETURN_IF_ERROR(CheckLimits(prepared_ns_));
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
  for (size_t i = 0; i < requests_.size(); ++i) {
    AddChoices(i);
    context_.load->Submitted(static_cast<int64_t>(requests_[i]->request.prompt.size()), params().n);
  }
  started_.resize(requests_.size());
  prepared_->prompts = {};  // the engine's requests have them
  context_.records->Begin(id_, [this] { return Record(); });
  context_.metrics->params_n->Observe(static_cast<double>(params().n));
  return {};
}

void Generation::AddChoices(size_t prompt) {
  const ActiveRequest& request = *requests_[prompt];
  const int64_t now = SteadyNanos();
  for (const auto& stream : request.choices) {
    choices_.push_back({ChoiceOutput(params(), context_.model->tokenizer, context_.model->eos_ids),
                        prompt, stream.get(), false, false, now});
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
    if (params().stream) WriteChunks(&choice, i);
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
}

// Tokens that came together share the time since the last ones.
void Generation::ObserveTokens(Choice* choice, int64_t tokens) {
  if (tokens <= 0) return;
  const int64_t now = SteadyNanos();
  const bool first = choice->output.tokens() == tokens;
  const int64_t gaps = first ? tokens - 1 : tokens;
  if (first) CountStarted(choice->prompt);
  if (gaps > 0) {
    context_.metrics->inter_token_latency->Observe(
        Seconds(now - choice->last_news_ns) / static_cast<double>(tokens), gaps);
  }
  choice->last_news_ns = now;
}

// Its prompt is no load any more.
void Generation::CountStarted(size_t prompt) {
  if (started_[prompt]) return;
  started_[prompt] = true;
  context_.load->Started(static_cast<int64_t>(requests_[prompt]->request.prompt.size()));
}

ChoicePart Generation::PartOf(const Choice& choice, size_t index) const {
  return {.index = static_cast<int32_t>(index),
          .text = choice.output.text(),
          .logprobs = choice.output.logprobs(),
          .token_ids = choice.output.token_ids(),
          .prompt_token_ids = requests_[choice.prompt]->request.prompt,
          .end = nullptr};
}

void Generation::WriteChunks(Choice* choice, size_t index) {
  ChoiceOutput& output = choice->output;
  const bool chat = params().endpoint == kChat;
  if (chat && !choice->begun && (output.tokens() > 0 || output.finished())) {
    choice->begun = true;
    ChoicePart opening;
    opening.index = static_cast<int32_t>(index);
    opening.prompt_token_ids = requests_[choice->prompt]->request.prompt;
    writer_.FirstChunk(opening, UsageNow(), &buffer_);
  }
  if (!output.text().empty() || !output.logprobs().empty() || !output.token_ids().empty()) {
    if (choice->begun) {
      writer_.TextChunk(PartOf(*choice, index), UsageNow(), &buffer_);
    } else {
      writer_.FirstChunk(PartOf(*choice, index), UsageNow(), &buffer_);
    }
    choice->begun = true;
    output.Consume();
  }
  if (!output.finished() || choice->closed) return;
  choice->closed = true;
  ChoicePart last = PartOf(*choice, index);
  last.end = &output.end();
  writer_.EndChunk(last, UsageNow(), &buffer_);
}

Headers Generation::AnswerHeaders(const char* content_type) const {
  Headers headers = {{"content-type", content_type}, {"x-request-id", id_}};
  headers.emplace_back("server-timing", ServerTiming(AnswerParts()));
  AddIgnoredHeader(params().ignored, &headers);
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
  for (const Choice& choice : choices_) usage.completion_tokens += choice.output.tokens();
  return usage;
}

void Generation::Complete() {
  if (params().stream) {
    if (params().include_usage) writer_.UsageChunk(UsageNow(), &buffer_);
    ResponseWriter::Done(&buffer_);
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
  const bool by_length = std::any_of(choices_.begin(), choices_.end(), [](const Choice& choice) {
    return choice.output.end().by_length;
  });
  End(200, cut_by_deadline_ ? "deadline" : by_length ? "length" : "stop");
}

void Generation::SendWhole() {
  std::vector<ChoicePart> parts;
  parts.reserve(choices_.size());
  for (size_t i = 0; i < choices_.size(); ++i) {
    parts.push_back(PartOf(choices_[i], i));
    parts.back().end = &choices_[i].output.end();
  }
  exchange_->Send(200, AnswerHeaders("application/json"), writer_.Whole(parts, UsageNow()));
}

void Generation::FailWith(const Error& error) {
  if (ended_) return;
  AbortAll();
  if (stream_begun_) {
    Flush();
    ResponseWriter::ErrorEvent(ErrorBody(error), &buffer_);
    ResponseWriter::Done(&buffer_);
    Flush();
    exchange_->EndStream();
  } else {
    SendError(*exchange_, error, context_.load->retry_after_s());
  }
  context_.metrics->CountResponse(stream_begun_ ? 200 : HttpStatus(error.code));
  CountUnfinished(FinishLabel::kError);
  End(HttpStatus(error.code),
      error.code == ErrorCode::kDeadlineExceeded ? std::string_view("deadline") : "error");
}

// ---- limits of time -----------------------------------------------------------------------------

int64_t Generation::next_check_ns() const {
  if (ended_ || (deadline_ns_ == 0 && queue_limit_ns_ == 0)) return 0;
  if (deadline_ns_ == 0 || queue_limit_ns_ == 0) return std::max(deadline_ns_, queue_limit_ns_);
  return std::min(deadline_ns_, queue_limit_ns_);
}

Generation::Progress Generation::CheckTime(int64_t now_ns) {
  if (ended_) return Progress::kEnded;
  if (deadline_ns_ != 0 && now_ns >= deadline_ns_) {
    EndByDeadline();
    return Progress::kEnded;
  }
  if (queue_limit_ns_ != 0 && now_ns >= queue_limit_ns_) {
    queue_limit_ns_ = 0;
    const bool waits = std::all_of(requests_.begin(), requests_.end(), [](const RequestPtr& r) {
      return r->times.scheduled_ns.load(std::memory_order_relaxed) == 0;
    });
    if (waits) {
      context_.metrics->queue_limits_passed->Add();
      FailWith(QueueTimeExceeded(*params().max_queue_ms));
      return Progress::kEnded;
    }
  }
  return Progress::kOpen;
}

// With what there is: all of it goes out, however slowly the client reads.
void Generation::EndByDeadline() {
  deadline_ns_ = 0;
  context_.metrics->deadlines_passed->Add();
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i].output.finished()) continue;
    Feed(&choices_[i], static_cast<int32_t>(i % static_cast<size_t>(params().n)));
  }
  const auto failed = std::find_if(choices_.begin(), choices_.end(), [](const Choice& choice) {
    return choice.output.failure() != FinishReason::kNone;
  });
  if (failed != choices_.end()) return FailWith(EngineFailure(failed->output.failure()));
  const bool any = std::any_of(choices_.begin(), choices_.end(), [](const Choice& choice) {
    return choice.output.tokens() > 0 || choice.output.finished();
  });
  if (!any) return FailWith(DeadlineExceeded(*params().deadline_ms));
  for (size_t i = 0; i < choices_.size(); ++i) {
    cut_by_deadline_ = cut_by_deadline_ || !choices_[i].output.finished();
    choices_[i].output.EndByDeadline();
    if (params().stream) WriteChunks(&choices_[i], i);
  }
  AbortAll();
  Flush();
  Complete();
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
  for (size_t i = 0; i < requests_.size(); ++i) CountStarted(i);
  context_.load->Ended(static_cast<int64_t>(choices_.size()), SteadyNanos());
  RequestRecord record = Record();
  record.status = status;
  record.outcome = outcome;
  record.ended_ns = SteadyNanos();
  int64_t first = 0;
  for (const PromptRecord& prompt : record.prompts) first = std::max(first, prompt.first_token_ns);
  const Usage usage = UsageNow();
  LogRequest({.id = id_,
              .path = exchange_->request().path,
              .status = status,
              .started_ns = context_.arrived_ns,
              .prompt_tokens = usage.prompt_tokens,
              .output_tokens = usage.completion_tokens,
              .first_token_ns = first});
  context_.records->End(std::move(record));
}

// As it is now; what End adds is left open.
RequestRecord Generation::Record() const {
  RequestRecord record;
  record.id = id_;
  record.path = exchange_->request().path;
  record.owner = context_.owner;
  record.created_s = created_s_;
  record.arrived_ns = context_.arrived_ns;
  record.prepared_ns = prepared_ns_;
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
