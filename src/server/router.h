// The routes as data: path, methods, who answers. Answers 404 and 405 (with Allow) by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/access/access_control.h"
#include "server/error_response.h"
#include "server/http/http.h"
#include "server/params/request_params.h"

namespace vivace::server {

struct Route {
  std::string_view method;  // "GET" also takes HEAD
  std::string_view path;    // ends in "/*": one more, non-empty part; its text is `tail` below
  bool generates;           // work for the engine: refused when full or draining
  std::function<void(ExchangePtr exchange, std::string_view tail)> handle;
  ErrorShape errors = ErrorShape::kOpenAi;
  // For /openapi.json: what it is for, and whose rows of the parameter table its body has (0:
  // none).
  std::string_view summary = "";
  EndpointSet parameters = 0;
  AccessLevel access = AccessLevel::kKey;
};

class Router {
 public:
  explicit Router(std::vector<Route> routes) : routes_(std::move(routes)) {}

  struct Match {
    const Route* route = nullptr;  // null: `error` and perhaps `allow` say why not
    std::string_view tail;         // into the request's path
    int status = 0;
    std::string allow;
  };
  std::span<const Route> routes() const { return routes_; }
  Match Find(std::string_view method, std::string_view path) const;

  // What a match asks of the caller; where there is nothing, a key before that is said.
  static AccessLevel AccessOf(const Match& match) {
    return match.route != nullptr ? match.route->access : AccessLevel::kKey;
  }
  // The error of a failed match.
  static Error ErrorOf(const Match& match, std::string_view method, std::string_view path);

 private:
  std::vector<Route> routes_;
};

}  // namespace vivace::server
