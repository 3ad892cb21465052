// A plain blocking client for tests: raw bytes out, parsed answers in, every wait bounded.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

namespace vivace::server::testing {

struct Answer {
  int status = 0;  // 0: the connection ended without one
  std::string head;
  std::string body;

  bool Has(std::string_view text) const { return head.find(text) != std::string::npos; }
};

class Client {
 public:
  // `receive_buffer` > 0 makes a reader that is soon full.
  explicit Client(uint16_t port, int receive_buffer = 0) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { Close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }

  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void Reset() {
    const linger hard = {1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    Close();
  }
  void ShutdownWrite() { shutdown(fd_, SHUT_WR); }

  // False once the server has closed. Gives up after 5 s without progress.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      pollfd ready = {fd_, POLLOUT, 0};
      if (poll(&ready, 1, 5'000) <= 0) return false;
      const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  bool SendByteByByte(std::string_view bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (!Send(bytes.substr(i, 1))) return false;
    }
    return true;
  }

  // One answer, by its own framing. `no_body` for HEAD.
  Answer Read(int timeout_ms = 5'000, bool no_body = false) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
    Answer answer;
    const size_t end = ReadUntil("\r\n\r\n", deadline);
    if (end == std::string::npos) return answer;
    answer.head = buffer_.substr(0, end);
    buffer_.erase(0, end);
    answer.status = std::atoi(answer.head.c_str() + 9);
    if (no_body || answer.status == 100 || answer.status == 204) return answer;
    if (answer.Has("Transfer-Encoding: chunked")) {
      ReadChunks(answer, deadline);
    } else if (const size_t at = answer.head.find("Content-Length: "); at != std::string::npos) {
      const size_t length = std::strtoull(answer.head.c_str() + at + 16, nullptr, 10);
      while (buffer_.size() < length && Fill(deadline)) {
      }
      answer.body = buffer_.substr(0, length);
      buffer_.erase(0, length);
    } else {
      while (Fill(deadline)) {
      }
      answer.body.swap(buffer_);
    }
    return answer;
  }

  // Bytes read so far and not yet taken, with what comes until `text` shows up.
  bool WaitFor(std::string_view text, int timeout_ms = 5'000) {
    return ReadUntil(text, Clock::now() + std::chrono::milliseconds(timeout_ms)) !=
           std::string::npos;
  }

  // Whether the server closes (FIN or RST) within the time; what it sends before goes to rest().
  bool Ends(int timeout_ms = 5'000) {
    const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
    while (Fill(deadline)) {
    }
    return ended_;
  }
  const std::string& rest() const { return buffer_; }
  bool was_reset() const { return reset_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool Fill(Clock::time_point deadline) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd ready = {fd_, POLLIN, 0};
    if (ended_ || poll(&ready, 1, std::max<int>(0, static_cast<int>(left.count()))) <= 0) {
      return false;
    }
    char bytes[65536];
    const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
    if (n <= 0) {
      ended_ = true;
      reset_ = n < 0;
      return false;
    }
    buffer_.append(bytes, static_cast<size_t>(n));
    return true;
  }

  size_t ReadUntil(std::string_view mark, Clock::time_point deadline) {
    for (;;) {
      const size_t at = buffer_.find(mark);
      if (at != std::string::npos) return at + mark.size();
      if (!Fill(deadline)) return std::string::npos;
    }
  }

  void ReadChunks(Answer& answer, Clock::time_point deadline) {
    for (;;) {
      const size_t end = ReadUntil("\r\n", deadline);
      if (end == std::string::npos) return;
      const size_t size = std::strtoull(buffer_.c_str(), nullptr, 16);
      buffer_.erase(0, end);
      while (buffer_.size() < size + 2) {
        if (!Fill(deadline)) return;
      }
      answer.body.append(buffer_, 0, size);
      buffer_.erase(0, size + 2);
      if (size == 0) return;
    }
  }

  int fd_ = -1;
  bool connected_ = false;
  bool ended_ = false;
  bool reset_ = false;
  std::string buffer_;
};

}  // namespace vivace::server::testing
