#include "server/router.h"

#include <optional>

#include "base/utf8.h"

namespace vivace::server {
namespace {

// The part of `path` that a pattern's star stands for, "" for an exact match; nullopt: no match.
std::optional<std::string_view> MatchPath(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with("/*")) {
    return pattern == path ? std::optional(std::string_view()) : std::nullopt;
  }
  pattern.remove_suffix(1);
  if (!path.starts_with(pattern) || path.size() == pattern.size()) return std::nullopt;
  return path.substr(pattern.size());
}

bool TakesMethod(const Route& route, std::string_view method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

}  // namespace

Router::Match Router::Find(std::string_view method, std::string_view path) const {
  Match match;
  for (const Route& route : routes_) {
    const auto tail = MatchPath(route.path, path);
    if (!tail) continue;
    if (TakesMethod(route, method)) {
      match.route = &route;
      match.tail = *tail;
      return match;
    }
    if (!match.allow.empty()) match.allow += ", ";
    match.allow += route.method;
    if (route.method == "GET") match.allow += ", HEAD";
  }
  match.status = match.allow.empty() ? 404 : 405;
  return match;
}

Error Router::ErrorOf(const Match& match, std::string_view method, std::string_view path) {
  constexpr size_t kMaxShownBytes = 128;
  const std::string shown = utf8::Repair(path.substr(0, kMaxShownBytes));
  if (match.status == 405) {
    return {ErrorCode::kInvalidArgument, "method_not_allowed",
            fmt::format("{} does not take {}; it takes {}", shown, method, match.allow), ""};
  }
  return {ErrorCode::kNotFound, "not_found", fmt::format("there is nothing at {}", shown), ""};
}

}  // namespace vivace::server
