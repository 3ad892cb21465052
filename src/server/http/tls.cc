#include "server/http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <utility>

#include "base/limits.h"
#include "base/log.h"

namespace vivace::server {
namespace {

constexpr unsigned char kAlpn[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
constexpr unsigned char kSessionContext[] = {'v', 'i', 'v', 'a', 'c', 'e'};

// The last thing OpenSSL said, without its file names and numbers.
std::string Reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* text = code != 0 ? ERR_reason_error_string(code) : nullptr;
  ERR_clear_error();
  return text != nullptr ? text : "unknown reason";
}

tl::unexpected<Error> BadFile(const char* flag, const std::string& path, std::string_view why) {
  return Fail(ErrorCode::kInvalidArgument, "bad_tls_file", flag,
              "--{} {} cannot be used ({}); give a readable PEM file", flag, path, why);
}

// Neither a device nor a pipe: reading it ends.
Status CheckFile(const char* flag, const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return BadFile(flag, path, "it is not there");
  if (!S_ISREG(info.st_mode)) return BadFile(flag, path, "it is no plain file");
  if (info.st_size > static_cast<off_t>(limits::kMaxTlsFileBytes)) {
    return BadFile(flag, path, fmt::format("it has more than {} bytes", limits::kMaxTlsFileBytes));
  }
  return {};
}

// An encrypted key must not make OpenSSL ask on the terminal.
int NoPassword(char*, int, int, void*) { return 0; }

int SelectAlpn(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
               unsigned int in_size, void*) {
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, out_size, kAlpn, sizeof kAlpn, in, in_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

Status UseCertificate(const TlsOptions& options, SSL_CTX* context) {
  const std::string& certificate = options.certificate_file;
  const std::string& key = options.key_file.empty() ? certificate : options.key_file;
  const char* key_flag = options.key_file.empty() ? "ssl-certfile" : "ssl-keyfile";
  VIVACE_RETURN_IF_ERROR(CheckFile("ssl-certfile", certificate));
  VIVACE_RETURN_IF_ERROR(CheckFile(key_flag, key));
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1) {
    return BadFile("ssl-certfile", certificate, Reason());
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return BadFile(key_flag, key, Reason());
  }
  const X509* own = SSL_CTX_get0_certificate(context);
  if (own != nullptr && X509_cmp_current_time(X509_get0_notAfter(own)) < 0) {
    log::Warn("the TLS certificate has expired; clients will refuse it", {{"file", certificate}});
  }
  return {};
}

Status UseClientAuthorities(const TlsOptions& options, SSL_CTX* context) {
  if (options.client_certificate == ClientCertificate::kIgnored) return {};
  const std::string& file = options.ca_file;
  if (file.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "flag_conflict", "ssl-cert-reqs",
                "--ssl-cert-reqs asks clients for certificates; say who may sign them with "
                "--ssl-ca-certs");
  }
  VIVACE_RETURN_IF_ERROR(CheckFile("ssl-ca-certs", file));
  STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(file.c_str());
  if (names == nullptr || SSL_CTX_load_verify_file(context, file.c_str()) != 1) {
    sk_X509_NAME_pop_free(names, X509_NAME_free);
    return BadFile("ssl-ca-certs", file, Reason());
  }
  SSL_CTX_set_client_CA_list(context, names);  // takes them
  const bool required = options.client_certificate == ClientCertificate::kRequired;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                     nullptr);
  return {};
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::Load(const TlsOptions& options) {
  if (options.certificate_file.empty()) {
    return Fail(ErrorCode::kInvalidArgument, "flag_conflict", "ssl-certfile",
                "--ssl-keyfile needs its certificate: give --ssl-certfile too");
  }
  ERR_clear_error();
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  if (context == nullptr) {
    return Fail(ErrorCode::kInternal, "tls_failed", "", "TLS cannot be set up: {}", Reason());
  }
  std::shared_ptr<const TlsContext> owner(new TlsContext(context));
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // An end of the connection without a goodbye is an end: HTTP's framing says what is complete.
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_id_context(context, kSessionContext, sizeof kSessionContext);
  SSL_CTX_set_default_passwd_cb(context, NoPassword);
  SSL_CTX_set_alpn_select_cb(context, SelectAlpn, nullptr);
  if (!options.ciphers.empty() && SSL_CTX_set_cipher_list(context, options.ciphers.c_str()) != 1) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "ssl-ciphers",
                "--ssl-ciphers '{}' names no cipher that OpenSSL has ({})", options.ciphers,
                Reason());
  }
  VIVACE_RETURN_IF_ERROR(UseCertificate(options, context));
  VIVACE_RETURN_IF_ERROR(UseClientAuthorities(options, context));
  return owner;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

TlsSession::TlsSession(const TlsContext& context, int fd) : session_(SSL_new(context.get())) {
  if (session_ == nullptr) return;
  SSL_set_accept_state(session_);
  SSL_set_fd(session_, fd);
}

TlsSession::~TlsSession() { SSL_free(session_); }

IoResult TlsSession::Handshake() {
  if (session_ == nullptr) return {};
  ERR_clear_error();
  const int returned = SSL_do_handshake(session_);
  if (returned == 1) established_ = true;
  if (returned != 1 && ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST) {
    return {IoState::kPlainHttp};
  }
  return Outcome(returned, 0);
}

IoResult TlsSession::Read(std::span<char> to) {
  if (session_ == nullptr) return {};
  ERR_clear_error();
  size_t bytes = 0;
  const int returned = SSL_read_ex(session_, to.data(), to.size(), &bytes);
  return Outcome(returned, bytes);
}

IoResult TlsSession::Write(std::string_view bytes) {
  if (session_ == nullptr) return {};
  ERR_clear_error();
  size_t written = 0;
  const int returned = SSL_write_ex(session_, bytes.data(), bytes.size(), &written);
  return Outcome(returned, written);
}

void TlsSession::SayGoodbye() {
  if (!established_) return;
  ERR_clear_error();
  SSL_shutdown(session_);
  ERR_clear_error();
}

IoResult TlsSession::Outcome(int returned, size_t bytes) {
  if (returned == 1) return {IoState::kDone, bytes};
  switch (SSL_get_error(session_, returned)) {
    case SSL_ERROR_WANT_READ:
      return {IoState::kWantRead};
    case SSL_ERROR_WANT_WRITE:
      return {IoState::kWantWrite};
    case SSL_ERROR_ZERO_RETURN:
      return {IoState::kEnd};
    default:
      established_ = false;  // no word can follow
      return {IoState::kFailed};
  }
}

}  // namespace vivace::server
