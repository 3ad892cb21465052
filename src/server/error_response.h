// Errors as HTTP answers, in OpenAI's shape: {"error":{"message","type","param","code"}}.
// Errors of the machine (kIo, kCorruptData) do not tell the client what broke.
#pragma once

#include <string>

#include "base/result.h"
#include "server/http/http.h"

namespace vivace::server {

int HttpStatus(ErrorCode code);

// The JSON body, without a final newline.
std::string ErrorBody(const Error& error);
// Headers of an error answer: content type; Retry-After where trying again makes sense.
Headers ErrorHeaders(const Error& error, int retry_after_s);

void SendError(Exchange& exchange, const Error& error, int retry_after_s);

}  // namespace vivace::server
