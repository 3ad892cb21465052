// The OpenAI protocol behind HTTP: routes, admission, preparation, and answers.
//
// Threads: everything runs on the HTTP loop but parsing, rendering and tokenising, which prep
// threads do for requests that hold a place. The service outlives the HttpServer it is attached to;
// StopPrep comes before that one's end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/engine.h"
#include "server/access/access_control.h"
#include "server/access/cors.h"
#include "server/http/http.h"
#include "server/metrics/server_metrics.h"
#include "server/openai/answer_writer.h"
#include "server/openai/embedding_prepare.h"
#include "server/openai/prepare.h"
#include "server/openai/served_model.h"
#include "server/router.h"
#include "server/service/admission.h"
#include "server/service/dispatcher.h"
#include "server/service/grammar_waits.h"
#include "server/service/prep_pool.h"
#include "server/service/request_records.h"

namespace vivace::server {

inline constexpr int kDefaultPingIntervalMs = 15'000;

struct ServiceOptions {
  int prep_threads = 1;
  int ping_interval_ms = kDefaultPingIntervalMs;     // of silent streams; 0: no pings
  AdmissionLimits admission = {};                    // zero: from the engine's configuration
  std::shared_ptr<const AccessKeys> keys = nullptr;  // null: everything is open
  bool public_metrics = false;
  Cors cors = {};
};

class Service {
 public:
  // `engine` outlives the service.
  Service(ServedModel model, Engine* engine, ServiceOptions options = {});
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Once, before requests come.
  void Attach(HttpServer* http);

  // The two callbacks of HttpServer::Listen.
  HttpServer::Refusal Check(const HttpRequest& request);
  void Handle(ExchangePtr exchange);
  // Of HttpOptions::error_headers: what every answer has, and the request's id.
  Headers EarlyHeaders(const EarlyRequest& request);

  // Loop thread: the keys that open it from now on.
  void UseKeys(std::shared_ptr<const AccessKeys> keys) { access_.Use(std::move(keys)); }

  // Loop thread: refuse new work, let the rest finish.
  void BeginDrain();
  // Loop thread: end the rest with an error.
  void EndAll();
  // After the loop's run: waits for the prep threads.
  void StopPrep() {
    prep_.Stop();
    grammar_prep_.Stop();
  }
  // Requests in preparation or running.
  int64_t open_requests() const { return admission_.requests(); }

 private:
  struct Client;
  struct Call;
  struct Small;

  HttpServer::Refusal CheckRoute(const HttpRequest& request);
  std::vector<Route> MakeRoutes();
  std::shared_ptr<Call> MakeCall(const ExchangePtr& exchange);
  void Generate(Endpoint endpoint, const ExchangePtr& exchange);
  void Embed(Endpoint endpoint, const ExchangePtr& exchange);
  void GenerateOnceCompiled(Endpoint endpoint, std::shared_ptr<Call> call,
                            const EarlyWishes& wishes);
  void BeginWait(Call* call, AnswerIdentity identity, const EarlyWishes& wishes);
  void StartGeneration(Endpoint endpoint, Call* call,
                       Result<std::unique_ptr<PreparedRequest>> prepared);
  template <typename Work, typename Next>
  void InPrep(PrepPool* pool, std::shared_ptr<Call> call, Work work, Next next);
  template <typename Prepared, typename Make>
  void Start(Call* call, Endpoint endpoint, Result<Prepared> prepared, Make make);
  bool IsWanted(const Call& call, const Error* error);
  void RefuseCall(const Call& call, const Error& error);
  using Answerer = Result<TextAnswer> (*)(std::string_view body, const ServedModel& model);
  void AnswerInPrep(Answerer answer, const ExchangePtr& exchange);

  // `tail`: what stands for the `*` of their route.
  void ListModels(Exchange& exchange, std::string_view tail);
  void ShowModel(Exchange& exchange, std::string_view tail);
  void ShowReadiness(Exchange& exchange, std::string_view tail);
  void ShowMetrics(Exchange& exchange, std::string_view tail);
  void ShowVersion(Exchange& exchange, std::string_view tail);
  void ListRequests(Exchange& exchange, std::string_view tail);
  void ShowRequest(Exchange& exchange, std::string_view tail);
  void ShowOpenApi(Exchange& exchange, std::string_view tail);
  void ShowWebFile(Exchange& exchange, std::string_view tail);
  void ShowPage(Exchange& exchange, std::string_view tail);
  void SayOk(Exchange& exchange, std::string_view tail);
  void ResetPrefixCache(Exchange& exchange, std::string_view tail);

  void SendJson(Exchange& exchange, std::string body);
  void Refuse(Exchange& exchange, const Error& error, std::string_view id = {});
  ErrorShape ShapeOf(const HttpRequest& request) const;
  std::string NewRequestId(std::string_view given);
  std::string NewRequestId(const HttpRequest& request);
  int RetryAfter();
  void CountRefusal(const Error& error);
  AnswerIdentity NewIdentity(Endpoint endpoint, std::string request_id);

  const ServedModel model_;
  const ServedModel ready_model_;  // whose grammars are those that were compiled before
  Engine* const engine_;
  AccessControl access_;
  const Cors cors_;
  ServerMetrics metrics_;
  Admission admission_;
  RequestRecords records_;
  GrammarWaits grammar_waits_;
  Dispatcher dispatcher_;
  const Router router_;
  const std::string openapi_;
  const std::string id_prefix_;  // random, so that ids differ between runs
  uint64_t next_id_ = 0;
  HttpServer* http_ = nullptr;
  // Last: their threads use the members above. Requests whose grammars must be compiled wait for
  // each other, not the others for them.
  PrepPool prep_;
  PrepPool grammar_prep_;
};

}  // namespace vivace::server
