// HTTP/1.1 as handlers see it: no Boost here. One event-loop thread owns all sockets; everything
// below happens on it unless said otherwise.
//
// A request is handed over once its body is complete and has passed the framing policy
// (http/policy.h). The handler answers through its Exchange, at once or later, whole or as a
// stream; an Exchange that is dropped unanswered sends 500, one dropped in mid-stream is cut.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace vivace::server {

struct HttpRequest {
  std::string method;  // upper case
  std::string path;    // of the target, without query; not decoded, no "//", no dot segments
  std::string query;   // after '?', may be empty
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  bool keep_alive = true;
  int64_t arrived_ns = 0;  // steady clock, when the headers were in
  // What the HeaderCheck attached (a guard, say); released when the exchange is over, or
  // when the body never comes.
  std::shared_ptr<void> ticket;

  // First value of a header by its lower-case name; empty if absent.
  std::string_view header(std::string_view name) const;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

// The path with its %XX escapes decoded, for parts of it that are names. It has passed the framing
// policy: its escapes are whole and none is NUL.
std::string DecodedPath(std::string_view path);

// One request's answer. Shared by the connection and whoever answers.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const HttpRequest& request() const = 0;
  // Moves the body out, so that it need not live as long as the answer takes.
  virtual std::string TakeBody() = 0;

  // The whole answer. For HEAD the body is left out, its length kept.
  virtual void Send(int status, Headers headers, std::string body) = 0;

  // A streamed answer (chunked; SSE): Begin once, Write any number, End once. Chunks written while
  // the socket is busy are joined into one write.
  virtual void BeginStream(int status, Headers headers) = 0;
  virtual void Write(std::string_view bytes) = 0;
  virtual void EndStream() = 0;

  // Bytes written and not yet taken by the kernel: what a slow client owes.
  virtual size_t pending_bytes() const = 0;
  // Drops the connection at once (slow client, fatal error mid-stream).
  virtual void Cut() = 0;

  virtual bool closed() const = 0;
  // Called once if the client goes away before the answer is complete: its end of the connection
  // closed (either direction), a write stalled, Cut, or Stop. Always later, from the loop, never
  // from inside this call. Set before answering.
  virtual void OnClose(std::function<void()> callback) = 0;
};

using ExchangePtr = std::shared_ptr<Exchange>;
using Handler = std::function<void(ExchangePtr)>;

class TlsContext;

// What is known of a request that is refused before it is read, or while it is: of a malformed head
// too, so it decides what the error looks like and nothing else. Empty: none was read, or it is no
// plain text.
struct EarlyRequest {
  std::string_view path;
  std::string_view origin;
  std::string_view request_id;  // the header X-Request-Id
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;  // 0: any free port
  std::string uds = {};  // path of a Unix socket to listen on instead; empty: host and port
  std::shared_ptr<const TlsContext> tls = nullptr;  // null: plain
  size_t max_body_bytes = 0;                        // 0: limits::kMaxBodyBytes
  size_t max_reading_bytes = 0;                     // 0: limits::kMaxReadingBytes
  int header_timeout_ms = 10'000;  // absolute, from the first byte; as much for a TLS handshake
  int body_timeout_ms = 30'000;
  int idle_timeout_ms = 60'000;  // keep-alive
  int write_stall_ms = 30'000;   // without any progress of a pending write
  int max_connections = 0;       // 0: from the file-descriptor limit
  // The body of an error that is found here, in the shape of what `path` names (empty where that is
  // not known). Null: error_body.h's.
  std::function<std::string(std::string_view path, int status, std::string_view code,
                            std::string_view message)>
      error_body = nullptr;
  // Headers that such an error has besides. Loop thread. Null: none.
  std::function<Headers(const EarlyRequest&)> error_headers = nullptr;
};

class HttpServer {
 public:
  // Called when the headers of a request are in, before its body is read: an error answer refuses
  // the request from the header alone (admission, unknown route, method).
  struct Refusal {
    int status = 0;   // 0: go on
    Headers headers;  // of the refusal; if the request goes on, added to its answer
    std::string body;
    std::shared_ptr<void> ticket;  // for HttpRequest::ticket, if the request goes on
  };
  using HeaderCheck = std::function<Refusal(const HttpRequest& without_body)>;

  // Binds and listens; a port in use is an error that says so and what to do.
  static Result<std::unique_ptr<HttpServer>> Listen(const HttpOptions& options, HeaderCheck check,
                                                    Handler handler);
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;

  // Runs the event loop on the calling thread until Stop.
  virtual void Run() = 0;

  // Any thread: connections accepted from now on speak by this context; the others keep theirs.
  virtual void UseTls(std::shared_ptr<const TlsContext> tls) = 0;

  // Any thread: runs `work` on the loop.
  virtual void Post(std::function<void()> work) = 0;
  // Any thread, wait-free, coalescing: runs the OnWake callback on the loop soon. For the engine.
  virtual void Wake() = 0;
  virtual void OnWake(std::function<void()> callback) = 0;
  // Loop thread: runs `work` once after `ms`.
  virtual void After(int ms, std::function<void()> work) = 0;

  // Loop thread: close idle connections, refuse bodies on their way, answer with "Connection:
  // close" from now on. New connections are still taken, so that probes can see the drain; what
  // the HeaderCheck lets in is answered.
  virtual void BeginDrain() = 0;
  // Loop thread: what Retry-After says of the refusals that are made here (503).
  virtual void SetRetryAfter(int seconds) = 0;
  virtual int open_connections() const = 0;
  // Answers not wholly taken by the kernel yet.
  virtual int active_exchanges() const = 0;
  // Any thread: closes everything; Run returns.
  virtual void Stop() = 0;
};

}  // namespace vivace::server
