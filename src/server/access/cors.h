// Cross-origin requests of browsers (the Fetch standard's CORS protocol): which pages may read our
// answers. By default none; the page at / is of our own origin and needs nothing of this.
//
// Pure; immutable after Make.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http/http.h"

namespace vivace::server {

struct CorsOptions {
  std::vector<std::string> origins = {};  // "https://a.example", or "*"; empty: no CORS at all
  std::vector<std::string> methods = {};  // empty: all
  std::vector<std::string> headers = {};  // empty: all
  bool credentials = false;
};

class Cors {
 public:
  Cors() = default;
  // Refuses what is no origin, method or header name, with the flag's name.
  static Result<Cors> Make(const CorsOptions& options);

  bool enabled() const { return any_origin_ || !options_.origins.empty(); }

  // Headers for whatever answers `request`; empty where CORS is off.
  Headers AnswerHeaders(const HttpRequest& request) const {
    return AnswerHeaders(request.header("origin"));
  }
  Headers AnswerHeaders(std::string_view origin) const;

  // The answer to a preflight (OPTIONS with Access-Control-Request-Method); nullopt: it is none, or
  // CORS is off. One that asks for too much gets 403 and no permission.
  std::optional<HttpServer::Refusal> Preflight(const HttpRequest& request) const;

 private:
  bool AllowsOrigin(std::string_view origin) const;
  bool AllowsMethod(std::string_view method) const;
  bool AllowsHeaders(std::string_view list) const;

  CorsOptions options_;
  bool any_origin_ = false;
  bool any_method_ = false;
  bool any_header_ = false;
};

}  // namespace vivace::server
