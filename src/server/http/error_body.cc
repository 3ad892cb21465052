#include "server/http/error_body.h"

#include "base/json_text.h"

namespace vivace::server {
namespace {

void AppendStringOrNull(std::string& out, std::string_view text) {
  if (text.empty()) {
    out += "null";
  } else {
    AppendJsonString(out, text);
  }
}

}  // namespace

std::string ErrorBody(int status, std::string_view message, std::string_view code,
                      std::string_view param) {
  std::string body = R"({"error":{"message":)";
  AppendJsonString(body, message);
  body += R"(,"type":)";
  AppendJsonString(body, status < 500 ? "invalid_request_error" : "server_error");
  body += R"(,"param":)";
  AppendStringOrNull(body, param);
  body += R"(,"code":)";
  AppendStringOrNull(body, code);
  return body += "}}";
}

}  // namespace vivace::server
