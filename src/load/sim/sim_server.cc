#include "load/sim/sim_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json_text.h"
#include "base/limits.h"
#include "load/sim/sim_request.h"
#include "load/sim/sim_truth.h"
#include "server/error_response.h"
#include "server/http/http.h"

namespace vivace::load {
namespace {

using server::ExchangePtr;

constexpr double kEndlessGapMs = 1;  // at least, between the tokens of an endless answer

enum class Fault : uint8_t { kNone, kError, kCut, kGarbage, kStall, kEndless };

server::Headers Json() { return {{"Content-Type", "application/json"}}; }

int64_t Nanos(double ms) { return static_cast<int64_t>(ms * kNanosPerMs); }

// One answer under way.
struct Job {
  Job(ExchangePtr to, const SimRequest& what, const std::string& model, uint64_t number)
      : exchange(std::move(to)), request(what), writer(what, model, number) {}

  const ExchangePtr exchange;
  const SimRequest request;
  const SimWriter writer;
  SimTruth truth;
  Fault fault = Fault::kNone;
  int64_t due_ns = 0;  // of its next token, by the plan
  int32_t unsent = 0;  // tokens that wait for their chunk to be full
  bool stalled = false;

  int32_t half() const { return std::max(1, request.max_tokens / 2); }
};

class Server final : public SimServer {
 public:
  explicit Server(const SimOptions& options)
      : options_(options), ready_ns_(SteadyNanos() + Nanos(options.slow_start_s * 1e3)) {}

  Status Open();
  uint16_t port() const override { return http_->port(); }
  void Run() override { http_->Run(); }
  void Stop() override { http_->Stop(); }

 private:
  void Handle(ExchangePtr exchange);
  bool HandleGet(server::Exchange& exchange);
  void Generate(ExchangePtr exchange, bool chat);
  Fault FaultOf(uint64_t number) const;
  void AnswerAtOnce(Job& job);
  void StartJob(uint64_t id);
  void Schedule(uint64_t id, int64_t due_ns);
  void Arm();
  void Tick();
  void Step(uint64_t id, Job& job);
  bool Misbehave(uint64_t id, Job& job);
  void Emit(Job& job);
  void Finish(uint64_t id, Job& job);
  void End(uint64_t id, std::string outcome);
  std::string Metrics() const;

  const SimOptions options_;
  const int64_t ready_ns_;
  std::unique_ptr<server::HttpServer> http_;
  uint64_t next_id_ = 1;
  std::unordered_map<uint64_t, std::unique_ptr<Job>> jobs_;
  std::set<uint64_t> running_;
  std::deque<uint64_t> waiting_;
  std::multimap<int64_t, uint64_t> due_;
  int64_t armed_ns_ = 0;  // the earliest timer on its way; 0: none
  std::deque<SimTruth> truths_;
  int64_t finished_ = 0;
};

Status Server::Open() {
  server::HttpOptions http;
  http.host = options_.host;
  http.port = options_.port;
  http.uds = options_.uds;
  VIVACE_ASSIGN(http_,
                server::HttpServer::Listen(
                    http, [](const server::HttpRequest&) { return server::HttpServer::Refusal{}; },
                    [this](ExchangePtr exchange) { Handle(std::move(exchange)); }));
  return {};
}

// ---- Requests ----

void Server::Handle(ExchangePtr exchange) {
  const std::string& path = exchange->request().path;
  const std::string& method = exchange->request().method;
  if (path == "/sim/truth") {
    exchange->Send(200, Json(), TruthJson({truths_.begin(), truths_.end()}));
  } else if (path == "/sim/reset" && method == "POST") {
    truths_.clear();
    exchange->Send(200, Json(), "{}");
  } else if (SteadyNanos() < ready_ns_) {
    server::SendError(*exchange, {ErrorCode::kUnavailable, "loading",
                                  "The simulated model is still being loaded.", ""});
  } else if (method == "POST" && path == "/v1/completions") {
    Generate(std::move(exchange), /*chat=*/false);
  } else if (method == "POST" && path == "/v1/chat/completions") {
    Generate(std::move(exchange), /*chat=*/true);
  } else if (method == "POST" && (path == "/tokenize" || path == "/detokenize")) {
    const std::string body = exchange->TakeBody();
    const auto answer = path == "/tokenize" ? AnswerSimTokenize(body) : AnswerSimDetokenize(body);
    if (!answer) return server::SendError(*exchange, answer.error());
    exchange->Send(200, Json(), *answer);
  } else if (!HandleGet(*exchange)) {
    server::SendError(*exchange, {ErrorCode::kNotFound, "no_route",
                                  "This simulated server has no such path.", ""});
  }
}

bool Server::HandleGet(server::Exchange& exchange) {
  const std::string& path = exchange.request().path;
  if (exchange.request().method != "GET") return false;
  if (path == "/health" || path == "/ready" || path == "/live") {
    exchange.Send(200, Json(), R"({"status":"ok"})");
  } else if (path == "/version") {
    exchange.Send(200, Json(), R"({"version":"simulated )" VIVACE_VERSION R"("})");
  } else if (path == "/v1/models") {
    std::string name;
    AppendJsonString(name, options_.model);
    exchange.Send(200, Json(),
                  fmt::format(R"({{"object":"list","data":[{{"id":{},"object":"model",)"
                              R"("owned_by":"vivace bench simulate"}}]}})",
                              name));
  } else if (path == "/metrics") {
    exchange.Send(200, {{"Content-Type", "text/plain; version=0.0.4"}}, Metrics());
  } else {
    return false;
  }
  return true;
}

std::string Server::Metrics() const {
  const double most = options_.max_running > 0 ? options_.max_running : 256;
  const auto running = static_cast<double>(running_.size());
  return fmt::format(
      "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running {}\n"
      "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting {}\n"
      "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc {:.6f}\n"
      "# TYPE vllm:num_preemptions_total counter\nvllm:num_preemptions_total 0\n"
      "# TYPE vllm:request_success_total counter\nvllm:request_success_total {}\n",
      running_.size(), waiting_.size(), std::min(1.0, running / most), finished_);
}

Fault Server::FaultOf(uint64_t number) const {
  const SimFaults& f = options_.faults;
  const std::pair<int32_t, Fault> kFaults[] = {{f.error_every, Fault::kError},
                                               {f.cut_every, Fault::kCut},
                                               {f.garbage_every, Fault::kGarbage},
                                               {f.stall_every, Fault::kStall},
                                               {f.endless_every, Fault::kEndless}};
  for (const auto& [every, fault] : kFaults) {
    if (every > 0 && number % static_cast<uint64_t>(every) == 0) return fault;
  }
  return Fault::kNone;
}

void Server::Generate(ExchangePtr exchange, bool chat) {
  const std::string body = exchange->TakeBody();
  const auto request = ReadSimRequest(body, chat, options_);
  if (!request) return server::SendError(*exchange, request.error());
  const uint64_t id = next_id_++;
  auto job = std::make_unique<Job>(std::move(exchange), *request, options_.model, id);
  job->fault = FaultOf(id);
  const server::HttpRequest& head = job->exchange->request();
  job->truth.id = head.header("x-request-id");
  job->truth.arrived_ns = head.arrived_ns;
  job->truth.prompt_tokens = request->prompt_tokens;
  Job& kept = *jobs_.emplace(id, std::move(job)).first->second;
  if (kept.fault == Fault::kError) {
    server::SendError(*kept.exchange, {ErrorCode::kInternal, "simulated",
                                       "The simulated server failed, as it was told to.", ""});
    return End(id, "error");
  }
  if (options_.null_server) {
    AnswerAtOnce(kept);
    return End(id, "completed");
  }
  kept.exchange->OnClose([this, id] { End(id, "gone"); });
  if (options_.max_running > 0 && std::cmp_greater_equal(running_.size(), options_.max_running)) {
    waiting_.push_back(id);
  } else {
    StartJob(id);
  }
}

void Server::AnswerAtOnce(Job& job) {
  const int32_t tokens = job.request.max_tokens;
  job.truth.started_ns = SteadyNanos();
  job.truth.tokens = tokens;
  job.truth.events_ns = {job.truth.started_ns};
  job.truth.event_tokens = {tokens};
  if (!job.request.stream) {
    return job.exchange->Send(200, Json(), job.writer.Whole(tokens));
  }
  job.exchange->Send(
      200, {{"Content-Type", "text/event-stream"}},
      job.writer.Opening() + job.writer.Tokens(tokens, tokens) + job.writer.Closing(tokens));
}

// ---- Time ----

void Server::StartJob(uint64_t id) {
  Job& job = *jobs_.at(id);
  running_.insert(id);
  job.truth.started_ns = SteadyNanos();
  const double wait_ms = options_.ttft_ms + options_.prefill_ms_per_token *
                                                static_cast<double>(job.request.prompt_tokens);
  Schedule(id, job.truth.started_ns + Nanos(wait_ms));
}

void Server::Schedule(uint64_t id, int64_t due_ns) {
  jobs_.at(id)->due_ns = due_ns;
  due_.emplace(due_ns, id);
  Arm();
}

void Server::Arm() {
  if (due_.empty()) return;
  const int64_t next_ns = due_.begin()->first;
  if (armed_ns_ != 0 && armed_ns_ <= next_ns) return;
  armed_ns_ = next_ns;
  const int64_t left_ns = std::max<int64_t>(next_ns - SteadyNanos(), 0);
  const int64_t ms = std::min<int64_t>((left_ns + kNanosPerMs - 1) / kNanosPerMs, 1'000'000);
  http_->After(static_cast<int>(ms), [this] { Tick(); });
}

void Server::Tick() {
  armed_ns_ = 1;  // earlier than all: what is scheduled below is armed for at the end
  const int64_t now_ns = SteadyNanos();
  while (!due_.empty() && due_.begin()->first <= now_ns) {
    const uint64_t id = due_.begin()->second;
    due_.erase(due_.begin());
    const auto found = jobs_.find(id);  // it may have ended since
    if (found != jobs_.end()) Step(id, *found->second);
  }
  armed_ns_ = 0;
  Arm();
}

// One token, due now.
void Server::Step(uint64_t id, Job& job) {
  if (Misbehave(id, job)) return;
  ++job.truth.tokens;
  ++job.unsent;
  const bool last = job.truth.tokens >= job.request.max_tokens && job.fault != Fault::kEndless;
  if (job.truth.tokens == 1 || last || job.unsent >= options_.chunk_tokens) Emit(job);
  if (last) return Finish(id, job);
  double gap_ms =
      options_.itl_ms + options_.itl_ms_per_running * static_cast<double>(running_.size() - 1);
  if (job.fault == Fault::kEndless) gap_ms = std::max(gap_ms, kEndlessGapMs);
  if (job.fault == Fault::kStall && !job.stalled && job.truth.tokens >= job.half()) {
    job.stalled = true;
    gap_ms += options_.faults.stall_ms;
  }
  Schedule(id, job.due_ns + Nanos(gap_ms));
}

// Whether the answer ended by its fault.
bool Server::Misbehave(uint64_t id, Job& job) {
  if (job.truth.tokens < job.half()) return false;
  if (job.fault == Fault::kCut) {
    job.exchange->Cut();
    End(id, "cut");
    return true;
  }
  if (job.fault == Fault::kGarbage) {
    job.exchange->Write("data: {\"choices\": [{\"te\n\ndata: \x01\x02 no JSON at all\n\n");
    job.exchange->EndStream();
    End(id, "garbage");
    return true;
  }
  return false;
}

void Server::Emit(Job& job) {
  const int32_t tokens = std::exchange(job.unsent, 0);
  if (job.request.stream) {
    std::string events;
    if (job.truth.events_ns.empty()) {
      const double queue_ms =
          static_cast<double>(job.truth.started_ns - job.truth.arrived_ns) / kNanosPerMs;
      job.exchange->BeginStream(200,
                                {{"Content-Type", "text/event-stream"},
                                 {"Cache-Control", "no-cache"},
                                 {"Server-Timing", fmt::format("queue;dur={:.3f}", queue_ms)}});
      events = job.writer.Opening();
    }
    job.exchange->Write(events + job.writer.Tokens(tokens, job.truth.tokens));
  }
  if (job.truth.events_ns.size() < static_cast<size_t>(limits::kMaxSimTokens)) {
    job.truth.events_ns.push_back(SteadyNanos());
    job.truth.event_tokens.push_back(tokens);
  }
}

void Server::Finish(uint64_t id, Job& job) {
  if (job.request.stream) {
    job.exchange->Write(job.writer.Closing(job.truth.tokens));
    job.exchange->EndStream();
  } else {
    job.exchange->Send(200, Json(), job.writer.Whole(job.truth.tokens));
  }
  End(id, job.stalled ? "stalled" : "completed");
}

// Its place goes to the next that waits.
void Server::End(uint64_t id, std::string outcome) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  Job& job = *found->second;
  job.truth.outcome =
      outcome == "gone" && job.fault == Fault::kEndless ? "endless" : std::move(outcome);
  truths_.push_back(std::move(job.truth));
  if (truths_.size() > limits::kMaxSimTruths) truths_.pop_front();
  ++finished_;
  std::erase(waiting_, id);
  const bool had_place = running_.erase(id) > 0;
  jobs_.erase(found);
  if (!had_place || waiting_.empty()) return;
  const uint64_t next = waiting_.front();
  waiting_.pop_front();
  StartJob(next);
}

}  // namespace

Result<std::unique_ptr<SimServer>> SimServer::Listen(const SimOptions& options) {
  VIVACE_RETURN_IF_ERROR(CheckSim(options));
  auto server = std::make_unique<Server>(options);
  VIVACE_RETURN_IF_ERROR(server->Open());
  return std::unique_ptr<SimServer>(std::move(server));
}

}  // namespace vivace::load
