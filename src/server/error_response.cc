#include "server/error_response.h"

#include "base/json_text.h"
#include "server/http/error_body.h"

namespace vivace::server {
namespace {

struct Mapping {
  int status;
  bool retry;     // a later try may succeed: Retry-After
  bool internal;  // the message is for our log only
};

// The one place where kinds of error meet HTTP.
Mapping MappingOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
      return {400, false, false};
    case ErrorCode::kNotFound:
      return {404, false, false};
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kUnavailable:
      return {503, true, false};
    case ErrorCode::kDeadlineExceeded:
      return {504, false, false};
    case ErrorCode::kInternal:
      return {500, false, false};
    case ErrorCode::kIo:
    case ErrorCode::kCorruptData:
      break;
  }
  return {500, false, true};
}

// Anthropic's words for a status.
std::string_view AnthropicType(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

std::string AnthropicBody(int status, std::string_view message) {
  std::string body = R"({"type":"error","error":{"type":)";
  AppendJsonString(body, AnthropicType(status));
  body += R"(,"message":)";
  AppendJsonString(body, message);
  return body += "}}";
}

}  // namespace

ErrorShape ShapeOfPath(std::string_view path) {
  constexpr std::string_view kMessagesPath = "/v1/messages";
  const bool under = path.starts_with(kMessagesPath) &&
                     (path.size() == kMessagesPath.size() || path[kMessagesPath.size()] == '/');
  return under ? ErrorShape::kAnthropic : ErrorShape::kOpenAi;
}

std::string EarlyErrorBody(std::string_view path, int status, std::string_view code,
                           std::string_view message) {
  if (ShapeOfPath(path) == ErrorShape::kAnthropic) return AnthropicBody(status, message);
  return ErrorBody(status, message, code);
}

int HttpStatus(ErrorCode code) { return MappingOf(code).status; }

std::string ErrorBody(int status, const Error& error, ErrorShape shape) {
  const bool internal = MappingOf(error.code).internal;
  const std::string_view message =
      internal ? "the server failed to answer this request" : std::string_view(error.message);
  if (shape == ErrorShape::kAnthropic) return AnthropicBody(status, message);
  if (internal) return ErrorBody(status, message, "internal_error");
  return ErrorBody(status, message, error.reason, error.field);
}

std::string ErrorBody(const Error& error, ErrorShape shape) {
  return ErrorBody(MappingOf(error.code).status, error, shape);
}

Headers ErrorHeaders(const Error& error, int retry_after_s) {
  Headers headers = {{"content-type", "application/json"}};
  if (MappingOf(error.code).retry) {
    headers.emplace_back("retry-after", std::to_string(retry_after_s));
  }
  return headers;
}

HttpServer::Refusal RefusalOf(int status, const Error& error, ErrorShape shape, int retry_after_s) {
  return {.status = status,
          .headers = ErrorHeaders(error, retry_after_s),
          .body = ErrorBody(status, error, shape),
          .ticket = nullptr};
}

void AddRequestId(std::string_view id, ErrorShape shape, Headers* headers) {
  if (id.empty()) return;
  headers->emplace_back("x-request-id", id);
  if (shape == ErrorShape::kAnthropic) headers->emplace_back("request-id", id);
}

void SendError(Exchange& exchange, const Error& error, ErrorShape shape, int retry_after_s,
               std::string_view request_id) {
  Headers headers = ErrorHeaders(error, retry_after_s);
  AddRequestId(request_id, shape, &headers);
  exchange.Send(HttpStatus(error.code), std::move(headers), ErrorBody(error, shape));
}

}  // namespace vivace::server
