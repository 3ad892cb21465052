#include "server/access/cors.h"

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <utility>

#include "base/limits.h"
#include "base/trim.h"
#include "server/http/error_body.h"
#include "server/http/policy.h"

namespace vivace::server {
namespace {

constexpr std::string_view kMethods = "GET, HEAD, POST, OPTIONS";
constexpr const char* kMaxAge = "600";  // seconds a browser may remember a preflight
// What scripts may read of an answer beyond the few that are always open.
constexpr const char* kExposed =
    "x-request-id, request-id, x-vivace-ignored, x-vivace-clamped, x-vivace-renamed, "
    "x-vivace-truncated-prompt-tokens, server-timing, retry-after, www-authenticate";

Status CheckEntries(const std::vector<std::string>& entries, const char* flag,
                    bool (*good)(std::string_view), const char* wanted) {
  if (entries.size() > limits::kMaxCorsEntries) {
    return Fail(ErrorCode::kInvalidArgument, "bad_value", flag, "--{} has more than {} entries",
                flag, limits::kMaxCorsEntries);
  }
  for (const std::string& entry : entries) {
    if (entry == "*") continue;
    if (entry.size() <= limits::kMaxCorsEntryBytes && good(entry)) continue;
    return Fail(ErrorCode::kInvalidArgument, "bad_value", flag, "--{} has '{}'; give {}, or *",
                flag, entry.substr(0, limits::kMaxCorsEntryBytes), wanted);
  }
  return {};
}

// scheme://host[:port] and no more; "null" stands for pages without an origin.
bool IsOrigin(std::string_view text) {
  if (text == "null") return true;
  const size_t scheme = text.find("://");
  if (scheme == 0 || scheme == std::string_view::npos || scheme + 3 == text.size()) return false;
  const std::string_view host = text.substr(scheme + 3);
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; }) &&
         host.find_first_of("/?#*,@") == std::string_view::npos;
}

bool IsName(std::string_view text) { return IsToken(text); }

bool TakeStar(std::vector<std::string>* entries) {
  const bool star = std::erase(*entries, "*") > 0;
  if (star) entries->clear();
  return star;
}

std::string Joined(const std::vector<std::string>& entries) {
  std::string text;
  for (const std::string& entry : entries) {
    if (!text.empty()) text += ", ";
    text += entry;
  }
  return text;
}

bool Has(const std::vector<std::string>& entries, std::string_view wanted) {
  return std::any_of(entries.begin(), entries.end(), [wanted](const std::string& entry) {
    return boost::algorithm::iequals(entry, wanted);
  });
}

}  // namespace

Result<Cors> Cors::Make(const CorsOptions& options) {
  VIVACE_RETURN_IF_ERROR(CheckEntries(options.origins, "allowed-origins", IsOrigin,
                                      "origins such as https://app.example:8443"));
  VIVACE_RETURN_IF_ERROR(
      CheckEntries(options.methods, "allowed-methods", IsName, "methods such as GET"));
  VIVACE_RETURN_IF_ERROR(CheckEntries(options.headers, "allowed-headers", IsName, "header names"));
  Cors cors;
  cors.options_ = options;
  cors.any_origin_ = TakeStar(&cors.options_.origins);
  cors.any_method_ = TakeStar(&cors.options_.methods) || options.methods.empty();
  cors.any_header_ = TakeStar(&cors.options_.headers) || options.headers.empty();
  return cors;
}

bool Cors::AllowsOrigin(std::string_view origin) const {
  return !origin.empty() && (any_origin_ || Has(options_.origins, origin));
}

bool Cors::AllowsMethod(std::string_view method) const {
  // Names of methods have case.
  return any_method_ || std::count(options_.methods.begin(), options_.methods.end(), method) > 0;
}

bool Cors::AllowsHeaders(std::string_view list) const {
  while (!any_header_ && !list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    const std::string_view name = Trimmed(list.substr(0, end));
    if (!name.empty() && !Has(options_.headers, name)) return false;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return true;
}

// A star says the same to everyone; with credentials, or a list, the answer depends on who asks,
// and caches must know.
Headers Cors::AnswerHeaders(std::string_view origin) const {
  if (!enabled()) return {};
  const bool star = any_origin_ && !options_.credentials;
  Headers headers;
  if (!star) headers.emplace_back("vary", "Origin");
  if (!AllowsOrigin(origin)) return headers;
  headers.emplace_back("access-control-allow-origin", star ? "*" : std::string(origin));
  if (options_.credentials) headers.emplace_back("access-control-allow-credentials", "true");
  headers.emplace_back("access-control-expose-headers", kExposed);
  return headers;
}

std::optional<HttpServer::Refusal> Cors::Preflight(const HttpRequest& request) const {
  const std::string_view method = request.header("access-control-request-method");
  if (!enabled() || request.method != "OPTIONS" || method.empty()) return std::nullopt;
  const std::string_view wanted = request.header("access-control-request-headers");
  HttpServer::Refusal answer;
  answer.headers = {
      {"vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}};
  if (!AllowsOrigin(request.header("origin")) || !AllowsMethod(method) || !AllowsHeaders(wanted)) {
    answer.status = 403;
    answer.headers.emplace_back("content-type", "application/json");
    answer.body = ErrorBody(403,
                            "this origin, method or header is not allowed here; see "
                            "--allowed-origins, --allowed-methods and --allowed-headers",
                            "cors_not_allowed");
    return answer;
  }
  answer.status = 204;
  for (auto& [name, value] : AnswerHeaders(request)) {
    if (name != "vary" && name != "access-control-expose-headers") {
      answer.headers.emplace_back(name, value);
    }
  }
  answer.headers.emplace_back("access-control-allow-methods",
                              any_method_ ? std::string(kMethods) : Joined(options_.methods));
  // With credentials a star would be taken as a name.
  const std::string allowed = any_header_ ? std::string(wanted) : Joined(options_.headers);
  if (!allowed.empty()) answer.headers.emplace_back("access-control-allow-headers", allowed);
  answer.headers.emplace_back("access-control-max-age", kMaxAge);
  return answer;
}

}  // namespace vivace::server
