#include "server/server.h"

#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace vivace::server {
namespace {

constexpr int kDrainPollMs = 20;
// For the last errors to reach their sockets.
constexpr int kFarewellMs = 200;

}  // namespace

Result<std::unique_ptr<Server>> Server::Create(const ServerConfig& config, ServerModel model) {
  if (config.served_model_names.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "no_model_name", "served-model-name",
                "the model needs a name to be served under");
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
  if (service_->open_requests() == 0 && http_->active_exchanges() == 0) {
    http_->Stop();
  } else if (SteadyNanos() >= deadline_ns) {
    EndAllAndStop();
  } else {
    http_->After(kDrainPollMs, [this, deadline_ns] { WatchDrain(deadline_ns); });
  }
}

void Server::EndAllAndStop() {
  service_->EndAll();
  http_->After(kFarewellMs, [this] { http_->Stop(); });
}

void Server::StopNow() {
  http_->Post([this] {
    draining_ = true;
    service_->BeginDrain();
    EndAllAndStop();
  });
}

}  // namespace vivace::server
