// HTTP without sockets: an exchange that keeps what was sent, and a loop that the test turns.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/http/http.h"

namespace vivace::server::testing {

class FakeExchange final : public Exchange {
 public:
  FakeExchange(std::string method, std::string path, std::string body) {
    request_.method = std::move(method);
    request_.path = std::move(path);
    request_.headers = {{"content-length", std::to_string(body.size())}};
    request_.body = std::move(body);
  }

  const HttpRequest& request() const override { return request_; }
  std::string TakeBody() override { return std::exchange(request_.body, {}); }
  void Send(int status, Headers headers, std::string body) override {
    answers_ += 1;
    status_ = status;
    headers_ = std::move(headers);
    body_ = std::move(body);
    complete_ = true;
  }
  void BeginStream(int status, Headers headers) override {
    answers_ += 1;
    status_ = status;
    headers_ = std::move(headers);
  }
  void Write(std::string_view bytes) override { body_ += bytes; }
  void EndStream() override { complete_ = true; }
  size_t pending_bytes() const override { return pending_bytes_; }
  void Cut() override { Close(); }
  bool closed() const override { return closed_; }
  void OnClose(std::function<void()> callback) override { on_close_ = std::move(callback); }

  // The client's side.
  void Close() {
    if (std::exchange(closed_, true) || complete_) return;
    if (on_close_) on_close_();
  }
  void AddHeader(std::string name, std::string value) {
    request_.headers.emplace_back(std::move(name), std::move(value));
  }
  void set_headers(Headers headers) {
    request_.headers.insert(request_.headers.end(), headers.begin(), headers.end());
  }
  void set_ticket(std::shared_ptr<void> ticket) { request_.ticket = std::move(ticket); }
  void set_pending_bytes(size_t bytes) { pending_bytes_ = bytes; }
  int status() const { return status_; }
  int answers() const { return answers_; }
  bool complete() const { return complete_; }
  const std::string& body() const { return body_; }
  std::string header(std::string_view name) const {
    for (const auto& [key, value] : headers_) {
      if (key == name) return value;
    }
    return "";
  }

 private:
  HttpRequest request_;
  int status_ = 0;
  int answers_ = 0;
  Headers headers_;
  std::string body_;
  bool complete_ = false;
  bool closed_ = false;
  size_t pending_bytes_ = 0;
  std::function<void()> on_close_;
};

class FakeHttp final : public HttpServer {
 public:
  uint16_t port() const override { return 0; }
  void Run() override {}
  void SetRetryAfter(int seconds) override { retry_after_s_ = seconds; }
  int retry_after_s() const { return retry_after_s_; }
  void UseTls(std::shared_ptr<const TlsContext>) override {}
  void Post(std::function<void()> work) override {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
    changed_.notify_all();
  }
  void Wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  void OnWake(std::function<void()> callback) override { on_wake_ = std::move(callback); }
  void After(int, std::function<void()> work) override { timers_.push_back(std::move(work)); }
  void BeginDrain() override { draining_ = true; }
  int open_connections() const override { return 0; }
  int active_exchanges() const override { return 0; }
  void Stop() override { stopped_ = true; }

  // Waits for a job of another thread to be posted, and runs it. False after ten seconds.
  bool RunPosted() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(10), [this] { return !posted_.empty(); })) {
      return false;
    }
    const std::function<void()> work = std::move(posted_.front());
    posted_.pop_front();
    lock.unlock();
    work();
    return true;
  }
  void RunWake() {
    {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(woken_, false)) return;
    }
    on_wake_();
  }
  void RunTimers() {
    for (const auto& work : std::exchange(timers_, {})) work();
  }
  bool draining() const { return draining_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> posted_;
  bool woken_ = false;
  std::function<void()> on_wake_;
  std::vector<std::function<void()>> timers_;
  bool draining_ = false;
  bool stopped_ = false;
  int retry_after_s_ = 0;
};

}  // namespace vivace::server::testing
