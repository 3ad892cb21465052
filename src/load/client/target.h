// Where requests go and how: address, key, headers, TLS. Immutable during a run.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "load/client/curl_driver.h"

namespace vivace::load {

struct Target {
  std::string base_url = "http://127.0.0.1:8000";  // with or without /v1 at its end
  std::string endpoint = "/v1/completions";        // a path of it
  std::string api_key = {};                        // sent as a bearer token; empty: none
  std::vector<std::string> headers = {};           // "Name: value"
  std::string unix_socket = {};                    // path; empty: TCP
  bool insecure = false;                           // TLS certificates are not checked
  int connect_timeout_s = 30;

  // Chat's shape or that of completions; the last part of the path says.
  bool chat() const { return endpoint.ends_with("chat/completions"); }
};

// A URL of http or https, a path, headers with a colon and no control character, at most
// limits::kMaxLoadHeaders of them. The sentence names the flag.
Status CheckTarget(const Target& target);

// "http://host:8000" + "/v1/models", and never /v1 twice.
std::string UrlOf(const Target& target, std::string_view path);

// Without "user:secret@": what may be printed and saved.
std::string WithoutUserInfo(std::string_view url);

// What all requests have in common: address but URL, TLS, proxies (never for this machine itself).
void ApplyTarget(const Target& target, CURL* easy);
// Content type, key and the target's own headers.
HeaderList HeadersOf(const Target& target);

}  // namespace vivace::load
