// TLS as a connection sees it: a context made once from files, a session for each socket.
//
// OpenSSL's own state machine over the socket's descriptor, so a TLS connection waits for its
// socket as a plain one does, and holds no buffer while it is idle (SSL_MODE_RELEASE_BUFFERS). TLS
// 1.2 and 1.3; no compression, no renegotiation; ALPN says http/1.1. A context is immutable and
// may be used on any thread; sessions keep theirs alive, so a new one (renewed certificate) harms
// no connection. Neither Asio nor OpenSSL enters by this header.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace vivace::server {

enum class ClientCertificate { kIgnored, kOptional, kRequired };

struct TlsOptions {
  std::string certificate_file;  // PEM, the chain behind it
  std::string key_file;          // PEM, unencrypted; empty: in certificate_file
  std::string ca_file;           // PEM, who may sign clients' certificates
  std::string ciphers;           // of TLS 1.2, OpenSSL's syntax; empty: OpenSSL's choice
  ClientCertificate client_certificate = ClientCertificate::kIgnored;

  bool enabled() const { return !certificate_file.empty() || !key_file.empty(); }
};

class TlsContext {
 public:
  // Reads the files; an error names the flag at fault and what to give instead. Blocks on the disk.
  static Result<std::shared_ptr<const TlsContext>> Load(const TlsOptions& options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  ssl_ctx_st* get() const { return context_; }

 private:
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* const context_;
};

enum class IoState {
  kDone,       // `bytes` were moved
  kWantRead,   // try again once the socket is readable
  kWantWrite,  // or writable
  kEnd,        // the peer sent all it will
  kFailed,     // the connection is of no use any more
  kPlainHttp,  // of a handshake: the client does not speak TLS but HTTP
};

struct IoResult {
  IoState state = IoState::kFailed;
  size_t bytes = 0;
};

// The server's side of one connection. The descriptor is borrowed and does not block.
class TlsSession {
 public:
  TlsSession(const TlsContext& context, int fd);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  IoResult Handshake();
  // At most one record; with room for a whole one (16 KiB) nothing stays behind, so that waiting
  // for the socket afterwards is right.
  IoResult Read(std::span<char> to);
  // After kWantRead or kWantWrite the next call must offer the same bytes.
  IoResult Write(std::string_view bytes);
  // Tells the peer that no more comes, as far as the socket takes it at once.
  void SayGoodbye();

 private:
  IoResult Outcome(int returned, size_t bytes);

  ssl_st* const session_;  // null: out of memory; everything fails
  bool established_ = false;
};

}  // namespace vivace::server
