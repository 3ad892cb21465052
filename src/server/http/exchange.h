// The Exchange that handlers hold: a name for one answer of a Connection, which has all the state.
// Includes Asio: for the .cc files of this folder alone.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "server/http/connection.h"

namespace vivace::server {

class ConnectionExchange final : public Exchange {
 public:
  ConnectionExchange(std::shared_ptr<Connection> connection, uint64_t serial, HttpRequest request)
      : connection_(std::move(connection)), serial_(serial), request_(std::move(request)) {}
  ~ConnectionExchange() override;

  const HttpRequest& request() const override { return request_; }
  std::string TakeBody() override { return std::exchange(request_.body, {}); }
  void Send(int status, Headers headers, std::string body) override {
    connection_->Send(serial_, status, headers, body);
  }
  void BeginStream(int status, Headers headers) override {
    connection_->BeginStream(serial_, status, headers);
  }
  void Write(std::string_view bytes) override { connection_->Write(serial_, bytes); }
  void EndStream() override { connection_->EndStream(serial_); }
  size_t pending_bytes() const override { return connection_->pending_bytes(serial_); }
  void Cut() override { connection_->Cut(serial_); }
  bool closed() const override { return !connection_->Current(serial_); }
  void OnClose(std::function<void()> callback) override {
    connection_->OnClose(serial_, std::move(callback));
  }

 private:
  const std::shared_ptr<Connection> connection_;
  const uint64_t serial_;
  HttpRequest request_;
};

}  // namespace vivace::server
