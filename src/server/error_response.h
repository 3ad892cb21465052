// Errors as HTTP answers, in OpenAI's shape, {"error":{"message","type","param","code"}}, or in
// that of Anthropic's endpoints, {"type":"error","error":{"type","message"}}. Errors of the machine
// (kIo, kCorruptData) do not tell the client what broke.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "server/http/http.h"

namespace vivace::server {

enum class ErrorShape : uint8_t { kOpenAi, kAnthropic };

// The shape of whatever lives, or does not, at a path.
ErrorShape ShapeOfPath(std::string_view path);
// The body of an error that the HTTP layer finds: HttpOptions::error_body.
std::string EarlyErrorBody(std::string_view path, int status, std::string_view code,
                           std::string_view message);

int HttpStatus(ErrorCode code);

// The JSON body, without a final newline.
std::string ErrorBody(const Error& error, ErrorShape shape = ErrorShape::kOpenAi);
// The same where the HTTP status is not that of the error's kind.
std::string ErrorBody(int status, const Error& error, ErrorShape shape);
// Headers of an error answer: content type; Retry-After where trying again makes sense.
Headers ErrorHeaders(const Error& error, int retry_after_s = 1);

// The same of a request whose body is not read.
HttpServer::Refusal RefusalOf(int status, const Error& error,
                              ErrorShape shape = ErrorShape::kOpenAi, int retry_after_s = 1);

// The request's id under the names that the shape's clients know. Empty: nothing.
void AddRequestId(std::string_view id, ErrorShape shape, Headers* headers);

void SendError(Exchange& exchange, const Error& error, ErrorShape shape = ErrorShape::kOpenAi,
               int retry_after_s = 1, std::string_view request_id = {});

}  // namespace vivace::server
