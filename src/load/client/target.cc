#include "load/client/target.h"

#include <algorithm>

#include "base/limits.h"

namespace vivace::load {
namespace {

bool HasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

std::string_view WithoutSlashes(std::string_view url) {
  while (url.ends_with('/')) url.remove_suffix(1);
  return url;
}

// The host of "scheme://user@host:port/path"; an IPv6 one keeps its brackets.
std::string_view HostOf(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  url = url.substr(0, url.find_first_of("/?#"));
  const size_t user = url.rfind('@');
  if (user != std::string_view::npos) url.remove_prefix(user + 1);
  if (url.starts_with('[')) return url.substr(0, url.find(']') + 1);
  return url.substr(0, url.find(':'));
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

}  // namespace

Status CheckTarget(const Target& target) {
  const bool web =
      target.base_url.starts_with("http://") || target.base_url.starts_with("https://");
  if (!web || HasControl(target.base_url) || HostOf(target.base_url).empty()) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "base-url",
                "--base-url is '{}'; give the server's address, such as http://127.0.0.1:8000",
                target.base_url);
  }
  if (!target.endpoint.starts_with('/') || HasControl(target.endpoint)) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "endpoint",
                "--endpoint is '{}'; give a path, such as /v1/completions or /v1/chat/completions",
                target.endpoint);
  }
  if (!target.endpoint.ends_with("/completions")) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "endpoint",
                "--endpoint is '{}'; what can be measured is /v1/completions and "
                "/v1/chat/completions, under any prefix",
                target.endpoint);
  }
  if (HasControl(target.api_key)) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "api-key",
                "the API key has a line break or another control character");
  }
  if (target.headers.size() > limits::kMaxLoadHeaders) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", "header",
                "there are {} headers; at most {} are sent", target.headers.size(),
                limits::kMaxLoadHeaders);
  }
  for (const std::string& header : target.headers) {
    if (header.find(':') == std::string::npos || header.starts_with(':') || HasControl(header)) {
      return Fail(ErrorCode::kInvalidArgument, "bad_value", "header",
                  "--header is '{}'; give NAME=VALUE or 'NAME: VALUE'", header);
    }
  }
  return {};
}

std::string WithoutUserInfo(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == url.npos) return std::string(url);
  const size_t host = scheme + 3;
  const size_t at = url.substr(0, url.find_first_of("/?#", host)).rfind('@');
  if (at == url.npos || at < host) return std::string(url);
  return std::string(url.substr(0, host)) + std::string(url.substr(at + 1));
}

std::string UrlOf(const Target& target, std::string_view path) {
  std::string_view base = WithoutSlashes(target.base_url);
  if (base.ends_with("/v1")) base.remove_suffix(3);
  return std::string(WithoutSlashes(base)) + std::string(path);
}

void ApplyTarget(const Target& target, CURL* easy) {
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, static_cast<long>(target.connect_timeout_s));
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "vivace-bench/" VIVACE_VERSION);
  if (IsLoopback(HostOf(target.base_url))) curl_easy_setopt(easy, CURLOPT_PROXY, "");
  if (!target.unix_socket.empty()) {
    curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, target.unix_socket.c_str());
  }
  if (target.insecure) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
}

HeaderList HeadersOf(const Target& target) {
  curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
  list = curl_slist_append(list, "Expect:");  // no pause before a long body
  if (!target.api_key.empty()) {
    list = curl_slist_append(list, ("Authorization: Bearer " + target.api_key).c_str());
  }
  for (const std::string& header : target.headers) list = curl_slist_append(list, header.c_str());
  return HeaderList(list);
}

}  // namespace vivace::load
