#include "server/error_response.h"

#include "server/json/json_writer.h"

namespace vivace::server {
namespace {

struct Mapping {
  ErrorCode code;
  int status;
  const char* type;
  bool retry;     // a later try may succeed: Retry-After
  bool internal;  // the message is for our log only
};

// The one place where kinds of error meet HTTP.
constexpr Mapping kMappings[] = {
    {ErrorCode::kInvalidArgument, 400, "invalid_request_error", false, false},
    {ErrorCode::kUnsupported, 400, "invalid_request_error", false, false},
    {ErrorCode::kNotFound, 404, "invalid_request_error", false, false},
    {ErrorCode::kResourceExhausted, 503, "server_error", true, false},
    {ErrorCode::kUnavailable, 503, "server_error", true, false},
    {ErrorCode::kDeadlineExceeded, 504, "server_error", false, false},
    {ErrorCode::kInternal, 500, "server_error", false, false},
    {ErrorCode::kIo, 500, "server_error", false, true},
    {ErrorCode::kCorruptData, 500, "server_error", false, true},
};

// Seconds; a full queue of short answers moves within a few.
constexpr const char* kRetryAfter = "2";

const Mapping& MappingOf(ErrorCode code) {
  for (const Mapping& mapping : kMappings) {
    if (mapping.code == code) return mapping;
  }
  return kMappings[6];
}

}  // namespace

int HttpStatus(ErrorCode code) { return MappingOf(code).status; }

std::string ErrorBody(const Error& error) {
  const Mapping& mapping = MappingOf(error.code);
  std::string body;
  JsonWriter w(&body);
  w.BeginObject();
  w.Key("error");
  w.BeginObject();
  w.KeyString("message", mapping.internal ? "the server failed to answer this request"
                                          : std::string_view(error.message));
  w.KeyString("type", mapping.type);
  w.Key("param");
  error.field.empty() || mapping.internal ? w.Null() : w.String(error.field);
  w.Key("code");
  error.reason.empty()
      ? w.Null()
      : w.String(mapping.internal ? "internal_error" : std::string_view(error.reason));
  w.EndObject();
  w.EndObject();
  return body;
}

Headers ErrorHeaders(const Error& error) {
  Headers headers = {{"content-type", "application/json"}};
  if (MappingOf(error.code).retry) headers.emplace_back("retry-after", kRetryAfter);
  return headers;
}

void SendError(Exchange& exchange, const Error& error) {
  exchange.Send(HttpStatus(error.code), ErrorHeaders(error), ErrorBody(error));
}

}  // namespace vivace::server
