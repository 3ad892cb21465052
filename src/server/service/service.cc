#include "server/service/service.h"

#include <algorithm>
#include <atomic>
#include <boost/algorithm/string/predicate.hpp>
#include <charconv>
#include <random>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "server/error_response.h"
#include "server/openapi.h"
#include "server/params/readers.h"
#include "server/service/embedding.h"
#include "server/service/forecast.h"
#include "server/service/generation.h"
#include "server/service/report_headers.h"
#include "server/service/request_log.h"
#include "server/service/without_throwing.h"

namespace vivace::server {
namespace {

ServedModel WithReadyGrammars(ServedModel model) {
  model.grammar = WithoutWaiting(std::move(model.grammar));
  return model;
}

// Whether the work must be done again by one who may wait for a grammar.
template <typename T>
bool AwaitsGrammar(const Result<T>& made) {
  return !made && made.error().reason == kGrammarNotReady;
}

ServedModel WithDialect(ServedModel model) {
  model.dialect = DetectDialect(model.chat_template.get(), *model.tokenizer);
  return model;
}

AdmissionLimits AdmissionFor(const Engine& engine, const AdmissionLimits& wanted) {
  AdmissionLimits limits = wanted;
  if (limits.max_requests == 0) {
    limits.max_requests =
        int64_t{engine.limits().max_sequences} + engine.config().max_queued_requests;
  }
  if (limits.max_prep_bytes == 0) limits.max_prep_bytes = limits::kMaxPrepBytes;
  return limits;
}

// What the header says of the body's size; a chunked body says nothing. A promise is no reason to
// hold a place: bytes on their way are counted by the HTTP layer as they come.
size_t DeclaredBytes(const HttpRequest& request) {
  const std::string_view text = request.header("content-length");
  size_t bytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  return bytes;
}

// A JSON body may say so or say nothing; anything else is refused before it is read.
bool SaysJson(const HttpRequest& request) {
  std::string_view type = request.header("content-type");
  type = type.substr(0, type.find_first_of("; \t"));
  return type.empty() || boost::algorithm::iequals(type, "application/json");
}

HttpServer::Refusal NotJson(ErrorShape shape) {
  return RefusalOf(415,
                   {ErrorCode::kInvalidArgument, "unsupported_media_type",
                    "the body must be JSON; send the header Content-Type: application/json", ""},
                   shape);
}

// The answer, or why a strict request gets none.
Result<TextAnswer> AnswerUnlessStrict(Result<TextAnswer> (*answerer)(std::string_view,
                                                                     const ServedModel&),
                                      std::string_view body, const ServedModel& model) {
  VIVACE_ASSIGN(TextAnswer answer, answerer(body, model));
  VIVACE_RETURN_IF_ERROR(CheckStrict(answer.reports));
  return answer;
}

// What the body or else the header says, empty: nothing.
Result<std::string> GivenRequestId(const std::string& given, const HttpRequest& request) {
  if (!given.empty()) return given;
  const std::string_view id = request.header("x-request-id");
  if (id.empty() || IsRequestId(id)) return std::string(id);
  return Fail(ErrorCode::kInvalidArgument, "invalid_value", "X-Request-Id",
              "the header X-Request-Id must have 1 to {} letters, digits and ._:-",
              limits::kMaxRequestIdBytes);
}

constexpr std::string_view IdPrefix(Endpoint endpoint) {
  switch (endpoint) {
    case kCompletions:
      return "cmpl-";
    case kResponses:
      return "resp_";
    case kMessages:
      return "msg_";
    case kEmbeddings:
      return "embd-";
    case kRerank:
      return "rerank-";
    case kScore:
      return "score-";
    default:
      return "chatcmpl-";
  }
}

std::string RandomPrefix() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace

// Whether the client still waits; what its close callback may touch.
struct Service::Client {
  std::atomic<bool> gone{false};  // set by the loop
  std::weak_ptr<Answer> answer;
  std::weak_ptr<GrammarWaits::Wait> wait;  // before there is an answer
};

// A request that holds a place and waits for its preparation.
struct Service::Call {
  ExchangePtr exchange;
  std::string body;  // let go by the prep thread that needs it last
  std::shared_ptr<Admission::Ticket> ticket;
  std::shared_ptr<Client> client;
  int64_t arrived_ns = 0;
  uint64_t owner = 0;  // who asked
  std::string id;      // for errors and the log; the answer's own, once it has one
  GrammarWaits::WaitPtr wait = nullptr;  // of one whose grammar had to be compiled
  int64_t grammar_ns = 0;                // how long it waited

  void Log(int status) const {
    LogRequest(
        {.id = id, .path = exchange->request().path, .status = status, .started_ns = arrived_ns});
  }
};

Service::Service(ServedModel model, Engine* engine, ServiceOptions options)
    : model_(WithDialect(std::move(model))),
      ready_model_(WithReadyGrammars(model_)),
      engine_(engine),
      access_(options.public_metrics),
      cors_(std::move(options.cors)),
      metrics_(model_.name(), {.block_size = engine->limits().block_size,
                               .num_blocks = engine->limits().num_blocks,
                               .prefix_caching = engine->config().enable_prefix_caching &&
                                                 !engine->limits().recurrent}),
      admission_(AdmissionFor(*engine, options.admission)),
      grammar_waits_(&metrics_, &records_),
      dispatcher_(engine, options.ping_interval_ms),
      router_(MakeRoutes()),
      openapi_(OpenApiDocument(router_.routes(), VIVACE_VERSION)),
      id_prefix_(RandomPrefix()),
      prep_(options.prep_threads),
      grammar_prep_(1) {
  access_.Use(std::move(options.keys));
}

void Service::Attach(HttpServer* http) {
  http_ = http;
  dispatcher_.Attach(http);
  grammar_waits_.Attach(http);
}

// ---- from request to handler --------------------------------------------------------------------

HttpServer::Refusal Service::Check(const HttpRequest& request) {
  HttpServer::Refusal verdict;
  if (auto preflight = cors_.Preflight(request)) {
    verdict = std::move(*preflight);
    metrics_.CountResponse(verdict.status);
  } else {
    verdict = CheckRoute(request);
    for (auto& header : cors_.AnswerHeaders(request)) verdict.headers.push_back(std::move(header));
  }
  if (verdict.status >= 400) {
    AddRequestId(NewRequestId(request), ShapeOf(request), &verdict.headers);
  }
  return verdict;
}

Headers Service::EarlyHeaders(const EarlyRequest& request) {
  Headers headers = cors_.AnswerHeaders(request.origin);
  AddRequestId(NewRequestId(request.request_id), ShapeOfPath(request.path), &headers);
  return headers;
}

HttpServer::Refusal Service::CheckRoute(const HttpRequest& request) {
  const Router::Match match = router_.Find(request.method, request.path);
  const ErrorShape shape = ShapeOf(request);
  if (auto refusal = access_.Check(Router::AccessOf(match), request, shape)) {
    metrics_.CountRejection(Rejection::kNoAccess);
    metrics_.CountResponse(refusal->status);
    return std::move(*refusal);
  }
  HttpServer::Refusal verdict;
  if (match.route == nullptr) {
    verdict = RefusalOf(match.status, Router::ErrorOf(match, request.method, request.path), shape);
    if (!match.allow.empty()) verdict.headers.emplace_back("allow", match.allow);
    metrics_.CountRejection(Rejection::kNoRoute);
    metrics_.CountResponse(verdict.status);
    return verdict;
  }
  if (!match.route->generates) return verdict;
  if (!SaysJson(request)) {
    metrics_.CountRejection(Rejection::kInvalid);
    verdict = NotJson(match.route->errors);
    metrics_.CountResponse(verdict.status);
    return verdict;
  }
  const Status room = admission_.Check(DeclaredBytes(request));
  if (room) return verdict;
  CountRefusal(room.error());
  return RefusalOf(HttpStatus(room.error().code), room.error(), shape, RetryAfter());
}

void Service::Handle(ExchangePtr exchange) {
  const HttpRequest& request = exchange->request();
  const Router::Match match = router_.Find(request.method, request.path);
  VIVACE_CHECK(match.route != nullptr);  // Check let it in
  match.route->handle(exchange, match.tail);
}

// Null: there is no place for it, and it has been told so.
std::shared_ptr<Service::Call> Service::MakeCall(const ExchangePtr& exchange) {
  const HttpRequest& request = exchange->request();
  std::string body = exchange->TakeBody();
  auto ticket = admission_.Admit(body.size());
  if (!ticket) {
    Refuse(*exchange, ticket.error());
    return nullptr;
  }
  auto client = std::make_shared<Client>();
  exchange->OnClose([this, client] {
    client->gone = true;
    if (const auto answer = client->answer.lock()) dispatcher_.Abandon(answer);
    if (const auto wait = client->wait.lock()) grammar_waits_.Leave(wait);
  });
  return std::make_shared<Call>(
      Call{exchange, std::move(body), std::make_shared<Admission::Ticket>(std::move(*ticket)),
           std::move(client), request.arrived_ns != 0 ? request.arrived_ns : SteadyNanos(),
           access_.WhoIs(request).id, NewRequestId(request)});
}

// `work`, given the body, on a prep thread; then `next`, given the call and what `work` made of it,
// on the loop. The call moves on, so that the exchange is let go on the loop only. A null call has
// been answered.
template <typename Work, typename Next>
void Service::InPrep(PrepPool* pool, std::shared_ptr<Call> call, Work work, Next next) {
  if (call == nullptr) return;
  pool->Post([this, work, next, call = std::move(call)]() mutable {
    auto made = std::make_shared<decltype(work(call->body))>(
        WithoutThrowing([&] { return work(call->body); }));
    if (!AwaitsGrammar(*made)) call->body = std::string();
    http_->Post([next, call = std::move(call), made] { next(call, std::move(*made)); });
  });
}

void Service::Generate(Endpoint endpoint, const ExchangePtr& exchange) {
  const auto wishes = std::make_shared<EarlyWishes>();
  InPrep(
      &prep_, MakeCall(exchange),
      [this, endpoint, wishes](std::string_view body) {
        return PrepareGeneration(endpoint, body, ready_model_, wishes.get());
      },
      [this, endpoint, wishes](const std::shared_ptr<Call>& call, auto prepared) {
        if (!wishes->request_id.empty()) call->id = wishes->request_id;
        if (AwaitsGrammar(prepared)) return GenerateOnceCompiled(endpoint, call, *wishes);
        StartGeneration(endpoint, call.get(), std::move(prepared));
      });
}

void Service::GenerateOnceCompiled(Endpoint endpoint, std::shared_ptr<Call> call,
                                   const EarlyWishes& wishes) {
  const std::shared_ptr<Client> client = call->client;
  if (!client->gone) {
    auto request_id = GivenRequestId(wishes.request_id, call->exchange->request());
    if (!request_id) return RefuseCall(*call, request_id.error());
    BeginWait(call.get(), NewIdentity(endpoint, std::move(*request_id)), wishes);
  }
  InPrep(
      &grammar_prep_, std::move(call),
      [this, endpoint, client](std::string_view body) -> Result<std::unique_ptr<PreparedRequest>> {
        // Nobody compiles for those who have left while they waited.
        if (client->gone) return Fail(ErrorCode::kUnavailable, "client_gone", "", "nobody waits");
        return PrepareGeneration(endpoint, body, model_);
      },
      [this, endpoint](const std::shared_ptr<Call>& call, auto prepared) {
        if (call->wait != nullptr) call->grammar_ns = grammar_waits_.End(call->wait);
        // Its place was held until here, where nothing of it is in preparation any more.
        if (call->wait != nullptr && call->wait->over) return call->ticket->Release();
        StartGeneration(endpoint, call.get(), std::move(prepared));
      });
}

void Service::BeginWait(Call* call, AnswerIdentity identity, const EarlyWishes& wishes) {
  GrammarWaits::Wait wait;
  wait.identity = std::move(identity);
  wait.record.path = call->exchange->request().path;
  wait.record.owner = call->owner;
  wait.record.arrived_ns = call->arrived_ns;
  call->id = wait.identity.request_id;
  wait.refuse = [this, exchange = call->exchange, client = call->client, id = call->id,
                 arrived_ns = call->arrived_ns](const Error& error) {
    client->gone = true;  // nobody compiles for it any more
    Refuse(*exchange, error, id);
    LogRequest({.id = id,
                .path = exchange->request().path,
                .status = HttpStatus(error.code),
                .started_ns = arrived_ns});
  };
  call->wait = grammar_waits_.Begin(std::move(wait), wishes);
  call->client->wait = call->wait;
}

void Service::StartGeneration(Endpoint endpoint, Call* call,
                              Result<std::unique_ptr<PreparedRequest>> prepared) {
  Start(call, endpoint, std::move(prepared), [&](auto request, AnswerIdentity identity) {
    return std::make_shared<Generation>(
        Generation::Context{engine_, &model_, &metrics_, &records_, call->arrived_ns, call->owner,
                            call->grammar_ns},
        call->exchange, call->ticket, std::move(request), std::move(identity));
  });
}

void Service::Embed(Endpoint endpoint, const ExchangePtr& exchange) {
  InPrep(
      &prep_, MakeCall(exchange),
      [this, endpoint](std::string_view body) {
        return PrepareEmbedding(endpoint, body, model_, engine_->limits().hidden);
      },
      [this, endpoint](const std::shared_ptr<Call>& call, auto prepared) {
        Start(
            call.get(), endpoint, std::move(prepared), [&](auto request, AnswerIdentity identity) {
              return std::make_shared<Embedding>(
                  Embedding::Context{engine_, &metrics_, &records_, call->arrived_ns, call->owner},
                  call->exchange, call->ticket, std::move(request), std::move(identity));
            });
      });
}

// `make` makes the answer of what was prepared and who it is.
template <typename Prepared, typename Make>
void Service::Start(Call* call, Endpoint endpoint, Result<Prepared> prepared, Make make) {
  if (!IsWanted(*call, prepared ? nullptr : &prepared.error())) return;
  AnswerIdentity identity;
  if (call->wait != nullptr) {
    identity = std::move(call->wait->identity);
  } else {
    auto request_id = GivenRequestId((*prepared)->params.request_id, call->exchange->request());
    if (!request_id) return RefuseCall(*call, request_id.error());
    identity = NewIdentity(endpoint, std::move(*request_id));
    call->id = identity.request_id;
  }
  const std::shared_ptr<Answer> answer = make(std::move(*prepared), std::move(identity));
  if (const Status status = dispatcher_.Start(answer); !status) {
    return RefuseCall(*call, status.error());
  }
  if (call->wait != nullptr) grammar_waits_.HandOver(call->wait);
  call->client->answer = answer;
}

// After its preparation: false if the client has left, or is told that it failed.
bool Service::IsWanted(const Call& call, const Error* error) {
  call.ticket->EndPrep();
  if (call.client->gone) {
    metrics_.clients_gone->Add();
    call.ticket->Release();
    call.Log(kStatusClientGone);
    if (call.wait != nullptr) grammar_waits_.Close(call.wait, kStatusClientGone, "gone");
    return false;
  }
  if (error != nullptr) RefuseCall(call, *error);
  return error == nullptr;
}

void Service::RefuseCall(const Call& call, const Error& error) {
  call.ticket->Release();
  Refuse(*call.exchange, error, call.id);
  call.Log(HttpStatus(error.code));
  if (call.wait != nullptr) grammar_waits_.Close(call.wait, HttpStatus(error.code), "error");
}

void Service::AnswerInPrep(Answerer answer, const ExchangePtr& exchange) {
  InPrep(
      &prep_, MakeCall(exchange),
      [this, answer](std::string_view body) { return AnswerUnlessStrict(answer, body, model_); },
      [this](const std::shared_ptr<Call>& call, Result<TextAnswer> text) {
        call->ticket->Release();
        if (text && !text->request_id.empty()) call->id = text->request_id;
        call->Log(call->client->gone ? kStatusClientGone
                  : text             ? 200
                                     : HttpStatus(text.error().code));
        if (call->client->gone) return;
        const HttpRequest& request = call->exchange->request();
        if (!text) return Refuse(*call->exchange, text.error(), call->id);
        metrics_.CountResponse(200);
        Headers headers = {{"content-type", "application/json"}};
        AddRequestId(call->id, ShapeOf(request), &headers);
        AddReportHeaders(text->reports, &headers);
        call->exchange->Send(200, std::move(headers), std::move(text->body));
      });
}

// ---- life ---------------------------------------------------------------------------------------

void Service::BeginDrain() {
  admission_.BeginDrain();
  engine_->BeginDrain();
  http_->BeginDrain();
}

void Service::EndAll() {
  const Error error = {ErrorCode::kUnavailable, "shutting_down",
                       "the server shut down before the answer was complete", ""};
  dispatcher_.FailAll(error);
  grammar_waits_.FailAll(error);
}

// ---- answers and errors
// --------------------------------------------------------------------------

void Service::SendJson(Exchange& exchange, std::string body) {
  metrics_.CountResponse(200);
  exchange.Send(200, {{"content-type", "application/json"}}, std::move(body));
}

// `id`: of the request; empty: it has none yet.
void Service::Refuse(Exchange& exchange, const Error& error, std::string_view id) {
  CountRefusal(error);
  const HttpRequest& request = exchange.request();
  SendError(exchange, error, ShapeOf(request), RetryAfter(),
            id.empty() ? NewRequestId(request) : std::string(id));
}

ErrorShape Service::ShapeOf(const HttpRequest& request) const {
  const Router::Match match = router_.Find(request.method, request.path);
  return match.route != nullptr ? match.route->errors : ShapeOfPath(request.path);
}

// What its header gave, where that is one.
std::string Service::NewRequestId(std::string_view given) {
  if (IsRequestId(given)) return std::string(given);
  return fmt::format("req-{}{:08x}", id_prefix_, ++next_id_);
}

std::string Service::NewRequestId(const HttpRequest& request) {
  return NewRequestId(request.header("x-request-id"));
}

// Of this moment; the HTTP layer's own refusals say the same.
int Service::RetryAfter() {
  const int seconds = RetryAfterSeconds(engine_->stats());
  if (http_ != nullptr) http_->SetRetryAfter(seconds);
  return seconds;
}

void Service::CountRefusal(const Error& error) {
  metrics_.CountResponse(HttpStatus(error.code));
  if (error.code == ErrorCode::kResourceExhausted) {
    metrics_.CountRejection(Rejection::kOverloaded);
  } else if (error.code == ErrorCode::kUnavailable) {
    metrics_.CountRejection(Rejection::kShuttingDown);
  } else {
    metrics_.CountRejection(Rejection::kInvalid);
  }
}

AnswerIdentity Service::NewIdentity(Endpoint endpoint, std::string request_id) {
  const bool given = !request_id.empty();
  std::string id(IdPrefix(endpoint));
  id += given ? request_id : fmt::format("{}{:08x}", id_prefix_, ++next_id_);
  if (!given) request_id = id;
  return {std::move(id), WallSeconds(), model_.name(), std::move(request_id)};
}

}  // namespace vivace::server
