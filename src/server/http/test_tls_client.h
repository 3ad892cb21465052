// A blocking TLS client for tests, over any socket; every wait is bounded by the socket's timeouts.
#pragma once

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "server/http/test_certificate.h"

namespace vivace::server::testing {

class TlsClient {
 public:
  // Takes the descriptor. `own`: the certificate to show, if any.
  explicit TlsClient(int fd, const TestCertificate* own = nullptr, int max_version = 0)
      : fd_(fd), context_(SSL_CTX_new(TLS_client_method())) {
    const timeval patience = {5, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (own != nullptr) {
      SSL_CTX_use_certificate(context_, own->certificate());
      SSL_CTX_use_PrivateKey(context_, own->key());
    }
    if (max_version != 0) {
      SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
      SSL_CTX_set_max_proto_version(context_, max_version);
      SSL_CTX_set_cipher_list(context_, "ALL:@SECLEVEL=0");
    }
    session_ = SSL_new(context_);
    SSL_set_fd(session_, fd);
  }
  ~TlsClient() {
    SSL_free(session_);
    SSL_CTX_free(context_);
    close(fd_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool Connect() { return SSL_connect(session_) == 1; }
  bool Send(std::string_view bytes) {
    return SSL_write(session_, bytes.data(), static_cast<int>(bytes.size())) ==
           static_cast<int>(bytes.size());
  }
  // What comes until `text` shows up, or the end.
  std::string ReadUntil(std::string_view text) {
    std::string all;
    char bytes[16384];
    while (all.find(text) == std::string::npos) {
      const int n = SSL_read(session_, bytes, sizeof bytes);
      if (n <= 0) break;
      all.append(bytes, static_cast<size_t>(n));
    }
    return all;
  }
  // Whether the end was said, and not only the connection cut.
  bool EndsCleanly() {
    char bytes[16384];
    int n = 0;
    while ((n = SSL_read(session_, bytes, sizeof bytes)) > 0) {
    }
    return SSL_get_error(session_, n) == SSL_ERROR_ZERO_RETURN;
  }
  void SayGoodbye() { SSL_shutdown(session_); }
  std::string peer_name() const {
    char name[64] = "";
    X509* peer = SSL_get1_peer_certificate(session_);
    if (peer == nullptr) return name;
    X509_NAME_get_text_by_NID(X509_get_subject_name(peer), NID_commonName, name, sizeof name);
    X509_free(peer);
    return name;
  }
  SSL* session() { return session_; }
  int fd() const { return fd_; }

 private:
  const int fd_;
  SSL_CTX* const context_;
  SSL* session_ = nullptr;
};

}  // namespace vivace::server::testing
