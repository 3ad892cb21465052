#include "server/server.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "server/error_response.h"

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

Status Server::CheckAccess(const ServerConfig& config) {
  VIVACE_RETURN_IF_ERROR(LoadKeys(config.keys));
  VIVACE_RETURN_IF_ERROR(Cors::Make(config.cors));
  if (config.tls.enabled()) VIVACE_RETURN_IF_ERROR(TlsContext::Load(config.tls));
  return {};
}

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
  served.grammar->Prepare();
  served.created_s = WallSeconds();
  served.longest_token_bytes = LongestTokenBytes(*model.tokenizer);
  ServiceOptions options = config.service;
  VIVACE_ASSIGN(options.keys, LoadKeys(config.keys));
  options.public_metrics = config.keys.public_metrics;
  VIVACE_ASSIGN(options.cors, Cors::Make(config.cors));
  HttpOptions http = config.http;
  http.error_body = EarlyErrorBody;
  if (config.tls.enabled()) {
    VIVACE_ASSIGN(http.tls, TlsContext::Load(config.tls));
  }
  server->service_ =
      std::make_unique<Service>(std::move(served), server->engine_.get(), std::move(options));
  Service* service = server->service_.get();
  http.error_headers = [service](const EarlyRequest& request) {
    return service->EarlyHeaders(request);
  };
  VIVACE_ASSIGN(server->http_,
                HttpServer::Listen(
                    http, [service](const HttpRequest& request) { return service->Check(request); },
                    [service](ExchangePtr exchange) { service->Handle(std::move(exchange)); }));
  service->Attach(server->http_.get());
  server->WatchFiles(config);
  return server;
}

// ---- keys and certificates that change ----------------------------------------------------------

void Server::WatchFiles(const ServerConfig& config) {
  std::vector<FileWatch::Item> items;
  std::vector<std::string> key_files;
  for (const std::string& file : {config.keys.api_key_file, config.keys.admin_key_file}) {
    if (!file.empty()) key_files.push_back(file);
  }
  if (!key_files.empty()) {
    items.push_back({std::move(key_files), /*poll=*/true,
                     [this, options = config.keys] { ReloadKeys(options); }});
  }
  if (config.tls.enabled()) {
    items.push_back({{config.tls.certificate_file, config.tls.key_file, config.tls.ca_file},
                     config.refresh_tls,
                     [this, options = config.tls] { ReloadTls(options); }});
  }
  if (!items.empty()) files_ = std::make_unique<FileWatch>(std::move(items));
}

void Server::ReloadFiles() {
  if (files_ != nullptr) files_->ReloadAll();
}

void Server::ReloadKeys(const KeyOptions& options) {
  auto keys = LoadKeys(options);
  if (!keys) {
    log::Warn("the API keys stay as they were", {{"why", keys.error().message}});
    return;
  }
  log::Info("the API keys were read again",
            {{"keys", (*keys)->users.size()}, {"admin_keys", (*keys)->admins.size()}});
  http_->Post([this, keys = std::move(*keys)] { service_->UseKeys(keys); });
}

void Server::ReloadTls(const TlsOptions& options) {
  auto tls = TlsContext::Load(options);
  if (!tls) {
    log::Warn("the TLS certificate stays as it was", {{"why", tls.error().message}});
    return;
  }
  log::Info("the TLS certificate was read again; new connections use it");
  http_->UseTls(std::move(*tls));
}

// The engine's thread wakes the loop and prep threads post to it, so both end before the loop does;
// what the loop still holds refers to the service.
Server::~Server() {
  files_.reset();  // its thread posts to the loop
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
