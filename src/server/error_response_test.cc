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
  SendError(busy, {ErrorCode::kResourceExhausted, "server_is_overloaded", "full", ""}, 7);
  EXPECT_EQ(busy.status(), 503);
  EXPECT_EQ(busy.header("retry-after"), "7");
  testing::FakeExchange wrong("POST", "/", "");
  SendError(wrong, {ErrorCode::kInvalidArgument, "x", "x", ""}, 7);
  EXPECT_EQ(wrong.header("retry-after"), "");
}

}  // namespace
}  // namespace vivace::server
