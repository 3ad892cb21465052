#include "server/error_response.h"

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

}  // namespace

int HttpStatus(ErrorCode code) { return MappingOf(code).status; }

std::string ErrorBody(const Error& error) {
  const Mapping mapping = MappingOf(error.code);
  if (mapping.internal) {
    return ErrorBody(mapping.status, "the server failed to answer this request", "internal_error");
  }
  return ErrorBody(mapping.status, error.message, error.reason, error.field);
}

Headers ErrorHeaders(const Error& error, int retry_after_s) {
  Headers headers = {{"content-type", "application/json"}};
  if (MappingOf(error.code).retry) {
    headers.emplace_back("retry-after", std::to_string(retry_after_s));
  }
  return headers;
}

void SendError(Exchange& exchange, const Error& error, int retry_after_s) {
  exchange.Send(HttpStatus(error.code), ErrorHeaders(error, retry_after_s), ErrorBody(error));
}

}  // namespace vivace::server
