#include "cli/access_flags.h"

#include <utility>

#include "base/limits.h"
#include "base/units.h"
#include "cli/environment.h"
#include "server/json/strict_json.h"

namespace vivace::cli {
namespace {

constexpr const char* kListHelp = "; a JSON list, or the flag several times";

// vLLM's form, '["a", "b"]', or one entry.
Status AppendList(const char* flag, const std::string& text, std::vector<std::string>* to) {
  if (!text.starts_with('[')) {
    if (text.empty()) return BadValue(flag, text, "a value, or *");
    to->push_back(text);
    return {};
  }
  const auto list = server::ParseStrictJson(text);
  if (!list || list->as_array().empty()) {
    return BadValue(flag, text, R"(a JSON list such as ["a", "b"])");
  }
  for (const auto& entry : list->as_array()) {
    if (!entry.is_string()) return BadValue(flag, text, R"(a JSON list such as ["a", "b"])");
    to->emplace_back(entry.as_string());
  }
  return {};
}

Flag List(const char* flag, std::string default_text, std::string help,
          std::vector<std::string>* to) {
  return {flag, "LIST", std::move(default_text), help + kListHelp,
          [flag, to](const std::string& text) { return AppendList(flag, text, to); }};
}

Flag NonEmptyText(const char* flag, std::string value, std::string default_text, std::string help,
                  std::string* to) {
  return {flag, std::move(value), std::move(default_text), std::move(help),
          [flag, to](const std::string& text) -> Status {
            if (text.empty()) return BadValue(flag, text, "a value, or leave the flag out");
            *to = text;
            return {};
          }};
}

// The message must not show the key.
Flag Key(const char* flag, std::string help, std::vector<std::string>* to) {
  return {flag, "KEY", "", std::move(help), [flag, to](const std::string& text) -> Status {
            VIVACE_RETURN_IF_ERROR(server::CheckKey(text, flag));
            to->push_back(text);
            return {};
          }};
}

Status StoreCertReqs(const std::string& text, server::TlsOptions* tls) {
  using server::ClientCertificate;
  if (text == "0") {
    tls->client_certificate = ClientCertificate::kIgnored;
  } else if (text == "1") {
    tls->client_certificate = ClientCertificate::kOptional;
  } else if (text == "2") {
    tls->client_certificate = ClientCertificate::kRequired;
  } else {
    return BadValue("ssl-cert-reqs", text, "0 (none), 1 (optional) or 2 (required)");
  }
  return {};
}

Status StoreBodyBytes(const std::string& text, server::HttpOptions* http) {
  VIVACE_ASSIGN(const int64_t bytes, ParseBytes(text, "max-body-bytes"));
  if (bytes < 1 || bytes > static_cast<int64_t>(limits::kMaxReadingBytes)) {
    return BadValue("max-body-bytes", text, "1 to 64MiB");
  }
  http->max_body_bytes = static_cast<size_t>(bytes);
  return {};
}

std::vector<Flag> KeyFlags(server::KeyOptions* keys) {
  return {
      Key("api-key", "key that requests must bring; may be given several times", &keys->api_keys),
      NonEmptyText("api-key-file", "FILE", "", "file with a key a line, read again when it changes",
                   &keys->api_key_file),
      Key("admin-api-key", "key for what is the administrator's", &keys->admin_keys),
      NonEmptyText("admin-api-key-file", "FILE", "", "the same, from a file",
                   &keys->admin_key_file),
      {"metrics-public", "", "off", "/metrics needs no key", StoreSwitch(&keys->public_metrics)},
  };
}

std::vector<Flag> CorsFlags(server::CorsOptions* cors) {
  return {
      List("allowed-origins", "none", "origins whose pages may call", &cors->origins),
      List("allowed-methods", "*", "methods they may use", &cors->methods),
      List("allowed-headers", "*", "headers they may send", &cors->headers),
      {"allow-credentials", "", "off", "they may send cookies and certificates",
       StoreSwitch(&cors->credentials)},
  };
}

std::vector<Flag> TlsFlags(server::ServerConfig* config) {
  server::TlsOptions* tls = &config->tls;
  return {
      NonEmptyText("ssl-certfile", "FILE", "", "PEM certificate with its chain: serve TLS",
                   &tls->certificate_file),
      NonEmptyText("ssl-keyfile", "FILE", "in ssl-certfile", "its PEM key", &tls->key_file),
      NonEmptyText("ssl-ca-certs", "FILE", "", "PEM certificates that may sign clients' ones",
                   &tls->ca_file),
      {"ssl-cert-reqs", "N", "0", "clients' certificates: 0 none, 1 optional, 2 required",
       [tls](const std::string& text) { return StoreCertReqs(text, tls); }},
      NonEmptyText("ssl-ciphers", "LIST", "OpenSSL's", "ciphers of TLS 1.2", &tls->ciphers),
      {"enable-ssl-refresh", "", "off", "read certificate and key again when they change",
       StoreSwitch(&config->refresh_tls)},
  };
}

}  // namespace

std::vector<Flag> AccessFlags(server::ServerConfig* config) {
  std::vector<Flag> flags = {
      NonEmptyText("uds", "PATH", "", "Unix socket to listen on instead of host and port",
                   &config->http.uds),
      {"max-body-bytes", "BYTES", "16MiB", "largest body of a request",
       [config](const std::string& text) { return StoreBodyBytes(text, &config->http); }},
  };
  for (auto part : {KeyFlags(&config->keys), CorsFlags(&config->cors), TlsFlags(config)}) {
    for (Flag& flag : part) flags.push_back(std::move(flag));
  }
  return flags;
}

void AddKeysOfEnvironment(server::KeyOptions* keys) {
  if (keys->api_keys.empty() && keys->api_key_file.empty()) {
    if (std::string key = ApiKeyOfEnvironment(); !key.empty()) {
      keys->api_keys.push_back(std::move(key));
    }
  }
  if (keys->admin_keys.empty() && keys->admin_key_file.empty()) {
    if (std::string key = AdminKeyOfEnvironment(); !key.empty()) {
      keys->admin_keys.push_back(std::move(key));
    }
  }
}

}  // namespace vivace::cli
