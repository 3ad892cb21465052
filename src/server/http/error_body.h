// OpenAI's error shape, for every error this server answers.
#pragma once

#include <string>
#include <string_view>

namespace vivace::server {

// {"error":{"message":M,"type":T,"param":P,"code":C}}; an empty `param` or `code` becomes null. The
// type follows from the status: "invalid_request_error" below 500, "server_error" from there.
std::string ErrorBody(int status, std::string_view message, std::string_view code,
                      std::string_view param = {});

}  // namespace vivace::server
