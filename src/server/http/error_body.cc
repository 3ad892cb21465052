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
                      std::string_view param, std::string_view type) {
  if (type.empty()) type = status < 500 ? "invalid_request_error" : "server_error";
  std::string body = R"({"error":{"message":)";
  AppendJsonString(body, message);
  body += R"(,"type":)";
  AppendJsonString(body, type);
  body += R"(,"param":)";
  AppendStringOrNull(body, param);
  body += R"(,"code":)";
  AppendStringOrNull(body, code);
  return body += "}}";
}

}  // namespace vivace::server
