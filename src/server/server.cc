#include "server/server.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/utf8.h"

namespace vivace::server {
namespace {

constexpr int kDrainPollMs = 20;
// For the last answers to reach their clients.
constexpr int kFarewellMs = 200;
// How long a drain waits for clients to read answers that are complete.
constexpr int64_t kUnreadAnswerNs = 2 * kNanosPerSecond;

// Names go into answers, metrics and logs as they are.
Status CheckServedName(std::string_view name) {
  const bool control = std::any_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
  if (!name.empty() && !control && utf8::IsValid(name)) return {};
  return Fail(ErrorCode::kInvalidArgument, "bad_model_name", "served-model-name",
              "a name in --served-model-name is empty, or not UTF-8, or has control characters; "
              "give one of plain text");
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Create(const ServerConfig& config, ServerModel model) {
  if (config.served_model_names.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "no_model_name", "served-model-name",
                "the model needs a name to be served under");
  }
  for (const std::string& name : config.served_model_names) {
    VIVACE_RETURN_IF_ERROR(CheckServedName(name));
  }
  std::unique_ptr<Server> server(new Server(config.shutdown_timeout_s));
  server->engine_ = std::move(model.engine);
  ServedModel served;
  served.names = config.served_model_names;
  served.tokenizer = model.tokenizer;
  served.chat_template = std::move(model.chat_template);
  served.eos_ids = std::move(model.eos_ids);
  served.vocab = server->engine_->limits().vocab;
  served.max_model_len = server->engine_->limits().max_model_len;
  served.grammar = NewGrammarCompiler(model.tokenizer, served.vocab,
                                      {.eos_ids = served.eos_ids,
                                       .worker = config.grammar_worker,
                                       .max_compile_ms = limits::kMaxGrammarCompileMs});
  served.created_s = WallSeconds();
  served.longest_token_bytes = LongestTokenBytes(*model.tokenizer);
  server->service_ =
      std::make_unique<Service>(std::move(served), server->engine_.get(), config.service);
  Service* service = server->service_.get();
  VIVACE_ASSIGN(
      server->http_,
      HttpServer::Listen(
          config.http, [service](const HttpRequest& request) { return service->Check(request); },
          [service](ExchangePtr exchange) { service->Handle(std::move(exchange)); }));
  service->Attach(server->http_.get());
  return server;
}

// The engine's thread wakes the loop and prep threads post to it, so both end before the loop does;
// what the loop still holds refers to the service.
Server::~Server() {
  if (engine_ != nullptr) engine_->Stop();
  if (service_ != nullptr) service_->StopPrep();
  http_.reset();
}

void Server::Run() {
  http_->Run();
  engine_->Stop();
}

void Server::BeginDrain() {
  http_->Post([this] {
    if (std::exchange(draining_, true)) return;
    service_->BeginDrain();
    WatchDrain(SteadyNanos() + shutdown_timeout_s_ * kNanosPerSecond);
  });
}

void Server::WatchDrain(int64_t deadline_ns) {
  const int64_t now = SteadyNanos();
  if (service_->open_requests() > 0) {
    answered_ns_ = 0;
  } else if (answered_ns_ == 0) {
    answered_ns_ = now;
  }
  const bool answered = answered_ns_ != 0;
  const bool read = http_->active_exchanges() == 0;
  if (answered && (read || now - answered_ns_ >= kUnreadAnswerNs)) {
    StopSoon();
  } else if (now >= deadline_ns) {
    service_->EndAll();
    StopSoon();
  } else {
    http_->After(kDrainPollMs, [this, deadline_ns] { WatchDrain(deadline_ns); });
  }
}

void Server::StopSoon() {
  const int farewell_ms = http_->open_connections() == 0 ? 0 : kFarewellMs;
  http_->After(farewell_ms, [this] { http_->Stop(); });
}

void Server::StopNow() {
  http_->Post([this] {
    draining_ = true;
    service_->BeginDrain();
    service_->EndAll();
    StopSoon();
  });
}

}  // namespace vivace::server
