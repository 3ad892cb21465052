// One accepted socket, plain or with TLS: reads and writes that never wait, and waits that call
// back. Plain and TLS differ in here and nowhere else; a plain connection pays one branch.
// Includes Asio: for the .cc files of this folder alone. Loop thread only.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "server/http/asio.h"
#include "server/http/tls.h"

namespace vivace::server {

// TCP or a Unix socket.
using Socket = boost::asio::generic::stream_protocol::socket;

class Stream {
 public:
  // `tls` null: plain.
  Stream(Socket socket, const TlsContext* tls) : socket_(std::move(socket)) {
    if (tls != nullptr) session_ = std::make_unique<TlsSession>(*tls, socket_.native_handle());
  }

  // False if the client is gone already.
  bool Prepare() {
    boost::system::error_code error;
    socket_.non_blocking(true, error);
    if (error) return false;
    // Unix sockets know no delay; a TCP client that is gone fails at its first read.
    socket_.set_option(boost::asio::ip::tcp::no_delay(true), error);
    return true;
  }

  bool secure() const { return session_ != nullptr; }
  IoResult Handshake() { return session_->Handshake(); }
  // From now on a plain socket: what can still be said is no TLS.
  void GoPlain() { session_.reset(); }

  IoResult Read(std::span<char> to) {
    if (session_ != nullptr) return session_->Read(to);
    boost::system::error_code error;
    const size_t bytes = socket_.read_some(boost::asio::buffer(to.data(), to.size()), error);
    return Outcome(error, bytes, IoState::kWantRead);
  }
  IoResult Write(std::string_view bytes) {
    if (session_ != nullptr) return session_->Write(bytes);
    boost::system::error_code error;
    const size_t sent = socket_.write_some(boost::asio::buffer(bytes.data(), bytes.size()), error);
    return Outcome(error, sent, IoState::kWantWrite);
  }

  // `done(error)`, later and from the loop: the socket is ready, or was closed.
  template <typename Done>
  void WhenReadable(Done done) {
    socket_.async_wait(Socket::wait_read, std::move(done));
  }
  template <typename Done>
  void WhenWritable(Done done) {
    socket_.async_wait(Socket::wait_write, std::move(done));
  }
  template <typename Done>
  void WhenBroken(Done done) {
    socket_.async_wait(Socket::wait_error, std::move(done));
  }

  // No more comes from us. False: the client is gone.
  bool EndSending() {
    if (session_ != nullptr) session_->SayGoodbye();
    boost::system::error_code error;
    socket_.shutdown(Socket::shutdown_send, error);
    return !error;
  }
  void Close(bool reset) {
    boost::system::error_code ignored;
    if (reset) socket_.set_option(Socket::linger(true, 0), ignored);
    if (!reset && session_ != nullptr) session_->SayGoodbye();
    socket_.close(ignored);
  }

 private:
  static IoResult Outcome(const boost::system::error_code& error, size_t bytes, IoState wait) {
    namespace asio = boost::asio;
    if (!error) return {IoState::kDone, bytes};
    if (error == asio::error::would_block || error == asio::error::try_again ||
        error == asio::error::interrupted) {
      return {wait, 0};
    }
    return {error == asio::error::eof ? IoState::kEnd : IoState::kFailed, 0};
  }

  Socket socket_;
  std::unique_ptr<TlsSession> session_;  // null: plain
};

}  // namespace vivace::server
