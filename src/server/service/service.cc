#include "server/service/service.h"

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <charconv>
#include <random>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "server/error_response.h"
#include "server/json/json_writer.h"
#include "server/service/health.h"
#include "server/service/ignored_header.h"
#include "server/service/request_log.h"
#include "server/service/without_throwing.h"

namespace vivace::server {
namespace {

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

HttpServer::Refusal RefusalOf(int status, const Error& error, int retry_after_s = 1) {
  return {.status = status,
          .headers = ErrorHeaders(error, retry_after_s),
          .body = ErrorBody(error),
          .ticket = nullptr};
}

HttpServer::Refusal NotJson() {
  return RefusalOf(415,
                   {ErrorCode::kInvalidArgument, "unsupported_media_type",
                    "the body must be JSON; send the header Content-Type: application/json", ""});
}

std::string_view IdPrefix(Endpoint endpoint) {
  switch (endpoint) {
    case kChat:
      return "chatcmpl-";
    case kCompletions:
      return "cmpl-";
    case kTokenize:
    case kDetokenize:
      break;
  }
  return "tok-";
}

std::string RandomPrefix() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

void WriteModel(const ServedModel& model, std::string_view name, JsonWriter* w) {
  w->BeginObject();
  w->KeyString("id", name);
  w->KeyString("object", "model");
  w->KeyInt("created", model.created_s);
  w->KeyString("owned_by", "vivace");
  w->KeyString("root", model.name());
  w->KeyNull("parent");
  w->KeyInt("max_model_len", model.max_model_len);
  w->EndObject();
}

}  // namespace

// Whether the client still waits; what its close callback may touch.
struct Service::Client {
  bool gone = false;
  std::weak_ptr<Generation> generation;
};

// A request that holds a place and waits for its preparation.
struct Service::Call {
  ExchangePtr exchange;
  std::string body;  // let go by the prep thread
  std::shared_ptr<Admission::Ticket> ticket;
  std::shared_ptr<Client> client;
  int64_t arrived_ns = 0;
  uint64_t owner = 0;  // who asked
  ResponseWriter::Identity identity;

  void Log(int status) const {
    LogRequest({.id = identity.id,
                .path = exchange->request().path,
                .status = status,
                .started_ns = arrived_ns});
  }
};

Service::Service(ServedModel model, Engine* engine, ServiceOptions options)
    : model_(std::move(model)),
      engine_(engine),
      access_(options.public_metrics),
      cors_(std::move(options.cors)),
      metrics_(model_.name(), {.block_size = engine->limits().block_size,
                               .num_blocks = engine->limits().num_blocks,
                               .prefix_caching = engine->config().enable_prefix_caching &&
                                                 !engine->limits().recurrent}),
      admission_(AdmissionFor(*engine, options.admission)),
      load_(engine->limits().max_sequences),
      dispatcher_(engine, &load_),
      router_(MakeRoutes()),
      id_prefix_(RandomPrefix()),
      prep_(options.prep_threads) {
  access_.Use(std::move(options.keys));
}

void Service::Attach(HttpServer* http) {
  http_ = http;
  dispatcher_.Attach(http);
}

std::vector<Route> Service::MakeRoutes() {
  const auto generate = [this](Endpoint endpoint) {
    return [this, endpoint](const ExchangePtr& x, std::string_view) { Generate(endpoint, x); };
  };
  const auto in_prep = [this](Answerer answer) {
    return [this, answer](const ExchangePtr& x, std::string_view) { AnswerInPrep(answer, x); };
  };
  const auto show = [this](void (Service::*answer)(Exchange&)) {
    return [this, answer](const ExchangePtr& x, std::string_view) { (this->*answer)(*x); };
  };
  const auto show_model = [this](const ExchangePtr& x, std::string_view name) {
    ShowModel(*x, name);
  };
  return {
      {"POST", "/v1/chat/completions", true, generate(kChat)},
      {"POST", "/v1/completions", true, generate(kCompletions)},
      {"POST", "/chat/completions", true, generate(kChat)},
      {"POST", "/completions", true, generate(kCompletions)},
      {"POST", "/tokenize", true, in_prep(AnswerTokenize)},
      {"POST", "/detokenize", true, in_prep(AnswerDetokenize)},
      {"GET", "/v1/models", false, show(&Service::ListModels)},
      {"GET", "/models", false, show(&Service::ListModels)},
      {"GET", "/v1/models/*", false, show_model},
      {"GET", "/health", false, show(&Service::ShowReadiness), AccessLevel::kOpen},
      {"GET", "/ready", false, show(&Service::ShowReadiness), AccessLevel::kOpen},
      {"GET", "/live", false,
       [this](const ExchangePtr& x, std::string_view) { SendJson(*x, R"({"status":"ok"})"); },
       AccessLevel::kOpen},
      {"GET", "/metrics", false, show(&Service::ShowMetrics), AccessLevel::kMetrics},
      {"GET", "/version", false, show(&Service::ShowVersion)},
      {"GET", "/v1/requests", false, show(&Service::ListRequests)},
      {"GET", "/v1/requests/*", false,
       [this](const ExchangePtr& x, std::string_view name) { ShowRequest(*x, name); }},
      {"POST", "/reset_prefix_cache", false,
       [this](const ExchangePtr& x, std::string_view) {
         engine_->ResetPrefixCache();
         SendJson(*x, R"({"status":"ok"})");
       },
       AccessLevel::kAdmin},
      {"GET", "/", false, show(&Service::ShowWelcome)},
  };
}

// ---- from request to handler --------------------------------------------------------------------

HttpServer::Refusal Service::Check(const HttpRequest& request) {
  HttpServer::Refusal verdict;
  if (auto preflight = cors_.Preflight(request)) {
    verdict = std::move(*preflight);
    metrics_.CountResponse(verdict.status);
    return verdict;
  }
  verdict = CheckRoute(request);
  for (auto& header : cors_.AnswerHeaders(request)) verdict.headers.push_back(std::move(header));
  return verdict;
}

HttpServer::Refusal Service::CheckRoute(const HttpRequest& request) {
  const Router::Match match = router_.Find(request.method, request.path);
  if (auto refusal = access_.Check(Router::AccessOf(match), request)) {
    metrics_.CountRejection(Rejection::kNoAccess);
    metrics_.CountResponse(refusal->status);
    return std::move(*refusal);
  }
  HttpServer::Refusal verdict;
  if (match.route == nullptr) {
    verdict = RefusalOf(match.status, Router::ErrorOf(match, request.method, request.path));
    if (!match.allow.empty()) verdict.headers.emplace_back("allow", match.allow);
    metrics_.CountRejection(Rejection::kNoRoute);
    metrics_.CountResponse(verdict.status);
    return verdict;
  }
  if (!match.route->generates) return verdict;
  if (!SaysJson(request)) {
    metrics_.CountRejection(Rejection::kInvalid);
    verdict = NotJson();
    metrics_.CountResponse(verdict.status);
    return verdict;
  }
  const Status room = admission_.Check(DeclaredBytes(request));
  if (room) return verdict;
  CountRefusal(room.error());
  return RefusalOf(HttpStatus(room.error().code), room.error(), RetryAfter());
}

void Service::Handle(ExchangePtr exchange) {
  const HttpRequest& request = exchange->request();
  const Router::Match match = router_.Find(request.method, request.path);
  VIVACE_CHECK(match.route != nullptr);  // Check let it in
  match.route->handle(exchange, match.tail);
}

// Null: there is no place for it, and it has been told so.
std::shared_ptr<Service::Call> Service::MakeCall(Endpoint endpoint, const ExchangePtr& exchange) {
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
    if (const auto generation = client->generation.lock()) dispatcher_.Abandon(generation);
  });
  return std::make_shared<Call>(
      Call{exchange, std::move(body), std::make_shared<Admission::Ticket>(std::move(*ticket)),
           std::move(client), request.arrived_ns != 0 ? request.arrived_ns : SteadyNanos(),
           access_.WhoIs(request).id, NewIdentity(endpoint)});
}

void Service::Generate(Endpoint endpoint, const ExchangePtr& exchange) {
  auto call = MakeCall(endpoint, exchange);
  if (call == nullptr) return;
  prep_.Post([this, endpoint, call = std::move(call)]() mutable {
    using Prepared = Result<std::unique_ptr<PreparedRequest>>;
    auto prepared = std::make_shared<Prepared>(
        WithoutThrowing([&] { return PrepareGeneration(endpoint, call->body, model_); }));
    call->body = std::string();
    // The call moves on, so that the exchange is let go on the loop only.
    http_->Post([this, call = std::move(call), prepared] { Start(call, std::move(*prepared)); });
  });
}

void Service::Start(const std::shared_ptr<Call>& call,
                    Result<std::unique_ptr<PreparedRequest>> prepared) {
  call->ticket->EndPrep();
  if (call->client->gone) {
    metrics_.clients_gone->Add();
    call->ticket->Release();
    call->Log(kStatusClientGone);
    return;
  }
  if (!prepared) {
    call->ticket->Release();
    Refuse(*call->exchange, prepared.error());
    call->Log(HttpStatus(prepared.error().code));
    return;
  }
  auto generation = std::make_shared<Generation>(
      Generation::Context{engine_, &model_, &metrics_, &load_, &records_, call->arrived_ns,
                          call->owner},
      call->exchange, call->ticket, std::move(*prepared), call->identity);
  if (const Status status = dispatcher_.Start(generation); !status) {
    call->ticket->Release();
    Refuse(*call->exchange, status.error());
    call->Log(HttpStatus(status.error().code));
    return;
  }
  call->client->generation = generation;
}

void Service::AnswerInPrep(Answerer answer, const ExchangePtr& exchange) {
  auto call = MakeCall(kTokenize, exchange);
  if (call == nullptr) return;
  prep_.Post([this, answer, call = std::move(call)]() mutable {
    auto text = std::make_shared<Result<TextAnswer>>(
        WithoutThrowing([&] { return answer(call->body, model_); }));
    call->body = std::string();
    http_->Post([this, call = std::move(call), text] {
      call->ticket->Release();
      call->Log(call->client->gone ? kStatusClientGone
                : *text            ? 200
                                   : HttpStatus(text->error().code));
      if (call->client->gone) return;
      if (*text) {
        metrics_.CountResponse(200);
        Headers headers = {{"content-type", "application/json"}};
        AddIgnoredHeader((*text)->ignored, &headers);
        call->exchange->Send(200, std::move(headers), std::move((*text)->body));
      } else {
        Refuse(*call->exchange, text->error());
      }
    });
  });
}

// ---- life ---------------------------------------------------------------------------------------

void Service::BeginDrain() {
  admission_.BeginDrain();
  engine_->BeginDrain();
  http_->BeginDrain();
}

void Service::EndAll() {
  dispatcher_.FailAll({ErrorCode::kUnavailable, "shutting_down",
                       "the server shut down before the answer was complete", ""});
}

// ---- small answers ------------------------------------------------------------------------------

void Service::ListModels(Exchange& exchange) {
  std::string body;
  JsonWriter w(&body);
  w.BeginObject();
  w.KeyString("object", "list");
  w.Key("data");
  w.BeginArray();
  for (const std::string& name : model_.names) WriteModel(model_, name, &w);
  w.EndArray();
  w.EndObject();
  SendJson(exchange, std::move(body));
}

void Service::ShowModel(Exchange& exchange, std::string_view name) {
  const std::string decoded = DecodedPath(name);
  if (const Status status = model_.CheckName(decoded); !status) {
    Refuse(exchange, status.error());
    return;
  }
  std::string body;
  JsonWriter w(&body);
  WriteModel(model_, decoded, &w);
  SendJson(exchange, std::move(body));
}

void Service::ShowReadiness(Exchange& exchange) {
  Status status = CheckEngine(engine_->stats(), SteadyNanos());
  if (admission_.draining()) {
    status = Fail(ErrorCode::kUnavailable, "shutting_down", "", "the server is shutting down");
  }
  if (!status) {
    metrics_.CountResponse(HttpStatus(status.error().code));
    SendError(exchange, status.error(), RetryAfter());
    return;
  }
  SendJson(exchange, R"({"status":"ok"})");
}

void Service::ShowMetrics(Exchange& exchange) {
  metrics_.CountResponse(200);
  exchange.Send(200, {{"content-type", "text/plain; version=0.0.4; charset=utf-8"}},
                metrics_.Render(engine_->stats()));
}

void Service::ShowVersion(Exchange& exchange) {
  SendJson(exchange, R"({"version":")" VIVACE_VERSION R"("})");
}

// Callers see their own; the administrator, and everyone where there is none, sees all.
void Service::ListRequests(Exchange& exchange) {
  const AccessControl::Caller caller = access_.WhoIs(exchange.request());
  const int64_t now = SteadyNanos();
  std::string body;
  JsonWriter w(&body);
  w.BeginObject();
  w.KeyString("object", "list");
  w.Key("data");
  w.BeginArray();
  records_.ForEach([&](const RequestRecord& record) {
    if (access_.MaySee(caller, record.owner)) WriteRequestRow(record, now, &w);
  });
  w.EndArray();
  w.EndObject();
  SendJson(exchange, std::move(body));
}

void Service::ShowRequest(Exchange& exchange, std::string_view name) {
  constexpr std::string_view kTimeline = "/timeline";
  if (name.ends_with(kTimeline)) name.remove_suffix(kTimeline.size());
  const AccessControl::Caller caller = access_.WhoIs(exchange.request());
  const auto record = records_.Find(DecodedPath(name));
  // What may not be seen is not said to be there.
  if (!record || !access_.MaySee(caller, record->owner)) {
    Refuse(exchange, {ErrorCode::kNotFound, "request_not_found",
                      fmt::format("there is no record of this request; the last {} that ended are "
                                  "kept",
                                  limits::kMaxTimelines),
                      ""});
    return;
  }
  std::string body;
  JsonWriter w(&body);
  WriteTimeline(*record, SteadyNanos(), &w);
  SendJson(exchange, std::move(body));
}

void Service::ShowWelcome(Exchange& exchange) {
  metrics_.CountResponse(200);
  exchange.Send(200, {{"content-type", "text/plain; charset=utf-8"}},
                fmt::format("Vivace {} serves {} over the OpenAI API at /v1\n", VIVACE_VERSION,
                            model_.name()));
}

void Service::SendJson(Exchange& exchange, std::string body) {
  metrics_.CountResponse(200);
  exchange.Send(200, {{"content-type", "application/json"}}, std::move(body));
}

void Service::Refuse(Exchange& exchange, const Error& error) {
  CountRefusal(error);
  SendError(exchange, error, RetryAfter());
}

// Of this moment; the HTTP layer's own refusals say the same.
int Service::RetryAfter() {
  load_.Observe(engine_->stats(), SteadyNanos());
  const int seconds = load_.retry_after_s();
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

ResponseWriter::Identity Service::NewIdentity(Endpoint endpoint) {
  return {fmt::format("{}{}{:08x}", IdPrefix(endpoint), id_prefix_, ++next_id_), WallSeconds(),
          model_.name()};
}

}  // namespace vivace::server
