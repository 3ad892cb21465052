// A server on a free port with the routes tests ask for, its loop on a thread of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/http/error_body.h"
#include "server/http/http.h"

namespace vivace::server::testing {

class TestServer {
 public:
  explicit TestServer(HttpOptions options = {}) {
    options.port = 0;
    auto server = HttpServer::Listen(
        options, [this](const HttpRequest& request) { return Check(request); },
        [this](ExchangePtr exchange) { Handle(std::move(exchange)); });
    EXPECT_TRUE(server.has_value()) << (server ? "" : server.error().message);
    server_ = std::move(*server);
    thread_ = std::thread([this] { server_->Run(); });
  }
  ~TestServer() { Stop(); }

  // Ends the loop and the server; exchanges still held outlive it.
  void Stop() {
    if (!thread_.joinable()) return;
    server_->Stop();
    thread_.join();
    server_.reset();
  }

  uint16_t port() const { return server_->port(); }
  HttpServer& server() { return *server_; }

  // Runs `work` on the loop and waits for it.
  void OnLoop(const std::function<void()>& work) {
    std::promise<void> done;
    server_->Post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  int OpenConnections() {
    int count = 0;
    OnLoop([&] { count = server_->open_connections(); });
    return count;
  }
  int ActiveExchanges() {
    int count = 0;
    OnLoop([&] { count = server_->active_exchanges(); });
    return count;
  }

  std::atomic<int> handled{0};    // requests handed over
  std::atomic<int> closed{0};     // OnClose calls
  std::atomic<int> tickets{0};    // alive
  std::vector<ExchangePtr> held;  // of /hold; loop thread only

 private:
  static bool IsPost(const std::string& path) {
    return path == "/v1/completions" || path == "/v1/chat/completions" || path == "/echo";
  }

  HttpServer::Refusal Check(const HttpRequest& request) {
    static const std::vector<std::string> gets = {"/health", "/v1/models", "/hold",
                                                  "/stream", "/flood",     "/drop",
                                                  "/split",  "/throw",     "/half"};
    const bool get = std::find(gets.begin(), gets.end(), request.path) != gets.end();
    if (request.path == "/check_throws") throw std::runtime_error("on purpose");
    HttpServer::Refusal refusal;
    if (!get && !IsPost(request.path)) {
      refusal.status = 404;
    } else if (get ? request.method != "GET" && request.method != "HEAD"
                   : request.method != "POST") {
      refusal.status = 405;
      refusal.headers = {{"Allow", get ? "GET, HEAD" : "POST"}};
    }
    if (refusal.status != 0) {
      refusal.body = ErrorBody(refusal.status, "refused from the header", "refused");
      return refusal;
    }
    ++tickets;
    refusal.ticket = std::shared_ptr<void>(nullptr, [this](void*) { --tickets; });
    return refusal;
  }

  void Handle(ExchangePtr exchange) {
    ++handled;
    const HttpRequest& request = exchange->request();
    const std::string& path = request.path;
    if (path == "/hold") {
      exchange->OnClose([this, exchange] { ++closed; });  // a cycle, until the answer is complete
      held.push_back(std::move(exchange));
    } else if (path == "/stream") {
      Stream(std::move(exchange));
    } else if (path == "/flood" || path == "/half") {
      exchange->OnClose([this] { ++closed; });
      exchange->BeginStream(200, {});
      exchange->Write("first");
      if (path == "/flood") held.push_back(std::move(exchange));
    } else if (path == "/throw") {
      throw std::runtime_error("on purpose");
    } else if (path == "/split") {
      exchange->Send(200, {{"X-Request-Id", "a\r\nX-Evil: " + request.query}}, "ok");
    } else if (path == "/echo") {
      exchange->Send(200, {}, request.body);
    } else if (IsPost(path) && request.header("content-type") != "application/json") {
      exchange->Send(415, {}, ErrorBody(415, "send application/json", "content_type"));
    } else if (path != "/drop") {
      exchange->Send(200, {{"Content-Type", "text/plain"}},
                     path == "/health" ? "ok" : std::to_string(request.body.size()));
    }
  }

  // Ten chunks, one every loop turn or so.
  void Stream(ExchangePtr exchange) {
    exchange->BeginStream(200, {{"Content-Type", "text/event-stream"}});
    StreamNext(std::move(exchange), 0);
  }
  void StreamNext(ExchangePtr exchange, int i) {
    if (i == 10) return exchange->EndStream();
    exchange->Write("chunk " + std::to_string(i) + "\n");
    server_->After(1, [this, exchange = std::move(exchange), i] { StreamNext(exchange, i + 1); });
  }

  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

// Polls until true; false after the time is up.
inline bool Eventually(const std::function<bool()>& condition, int timeout_ms = 5'000) {
  for (int waited = 0; waited < timeout_ms; waited += 2) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return condition();
}

}  // namespace vivace::server::testing
