#include "server/error_response.h"

#include <gtest/gtest.h>

#include "server/testing/fake_http.h"

namespace vivace::server {
namespace {

TEST(ErrorResponse, HasOpenAisShape) {
  EXPECT_EQ(ErrorBody({ErrorCode::kInvalidArgument, "invalid_value", "`n` is \"bad\"", "n"}),
            R"({"error":{"message":"`n` is \"bad\"","type":"invalid_request_error","param":"n",)"
            R"("code":"invalid_value"}})");
  EXPECT_EQ(ErrorBody({ErrorCode::kUnavailable, "", "gone", ""}),
            R"({"error":{"message":"gone","type":"server_error","param":null,"code":null}})");
}

TEST(ErrorResponse, HasAnthropicsShapeWhereItIsAsked) {
  EXPECT_EQ(ErrorBody({ErrorCode::kInvalidArgument, "invalid_value", "`n` is \"bad\"", "n"},
                      ErrorShape::kAnthropic),
            R"({"type":"error","error":{"type":"invalid_request_error",)"
            R"("message":"`n` is \"bad\""}})");
  const std::pair<int, const char*> types[] = {{401, "authentication_error"},
                                               {403, "permission_error"},
                                               {404, "not_found_error"},
                                               {413, "request_too_large"},
                                               {415, "invalid_request_error"},
                                               {429, "rate_limit_error"},
                                               {500, "api_error"},
                                               {503, "overloaded_error"},
                                               {504, "timeout_error"}};
  for (const auto& [status, type] : types) {
    const std::string body =
        ErrorBody(status, {ErrorCode::kInternal, "", "x", ""}, ErrorShape::kAnthropic);
    EXPECT_NE(body.find(type), std::string::npos) << body;
  }
}

TEST(ErrorResponse, EveryCodeHasItsStatus) {
  EXPECT_EQ(HttpStatus(ErrorCode::kInvalidArgument), 400);
  EXPECT_EQ(HttpStatus(ErrorCode::kUnsupported), 400);
  EXPECT_EQ(HttpStatus(ErrorCode::kNotFound), 404);
  EXPECT_EQ(HttpStatus(ErrorCode::kResourceExhausted), 503);
  EXPECT_EQ(HttpStatus(ErrorCode::kUnavailable), 503);
  EXPECT_EQ(HttpStatus(ErrorCode::kDeadlineExceeded), 504);
  EXPECT_EQ(HttpStatus(ErrorCode::kInternal), 500);
}

TEST(ErrorResponse, InternalsStayInside) {
  for (const ErrorCode code : {ErrorCode::kIo, ErrorCode::kCorruptData}) {
    const std::string body = ErrorBody({code, "open_failed", "cannot open /srv/secret", "/srv"});
    EXPECT_EQ(body.find("srv"), std::string::npos) << body;
    EXPECT_EQ(body.find("open_failed"), std::string::npos) << body;
    EXPECT_EQ(HttpStatus(code), 500);
  }
}

TEST(ErrorResponse, RetryAfterWhereItHelps) {
  testing::FakeExchange busy("POST", "/", "");
  SendError(busy, {ErrorCode::kResourceExhausted, "server_is_overloaded", "full", ""},
            ErrorShape::kOpenAi, 7);
  EXPECT_EQ(busy.status(), 503);
  EXPECT_EQ(busy.header("retry-after"), "7");
  testing::FakeExchange wrong("POST", "/", "");
  SendError(wrong, {ErrorCode::kInvalidArgument, "x", "x", ""}, ErrorShape::kOpenAi, 7);
  EXPECT_EQ(wrong.header("retry-after"), "");
}

}  // namespace
}  // namespace vivace::server
