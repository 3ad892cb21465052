#include "server/http/response_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "server/http/error_body.h"

namespace vivace::server {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kTime = 784'111'777;  // RFC 9110's own example

TEST(ResponseHead, HasStatusDateAndLength) {
  EXPECT_EQ(ResponseHead({.status = 200, .length = 12}, {{"Content-Type", "text/plain"}}, kTime),
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 12\r\n"
            "Content-Type: text/plain\r\n\r\n");
}

TEST(ResponseHead, SaysHowTheBodyEnds) {
  EXPECT_THAT(ResponseHead({.framing = AnswerFraming::kChunked}, {}, kTime),
              HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
  EXPECT_THAT(ResponseHead({.framing = AnswerFraming::kUntilClose, .keep_alive = false}, {}, kTime),
              HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(ResponseHead({.http_1_0 = true}, {}, kTime),
              HasSubstr("\r\nConnection: keep-alive\r\n"));
  EXPECT_THAT(ResponseHead({.status = 204, .framing = AnswerFraming::kNoBody}, {}, kTime),
              Not(HasSubstr("Content-Length")));
}

TEST(ResponseHead, CannotBeSplitOrReframed) {
  const std::string head = ResponseHead({},
                                        {{"X-A", "b\r\nSet-Cookie: c=d"},
                                         {"X-B", "b\nX-Evil: 1"},
                                         {"X-C\r\nX-Evil", "1"},
                                         {"X D", "1"},
                                         {"", "1"},
                                         {"Content-Length", "999"},
                                         {"TRANSFER-ENCODING", "chunked"},
                                         {"Connection", "upgrade"},
                                         {"X-Fine", "yes"}},
                                        kTime);
  EXPECT_EQ(head,
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n"
            "X-Fine: yes\r\n\r\n");
}

TEST(ResponseHead, ChunkIsHexSizeAndBytes) {
  std::string out;
  AppendChunk(out, std::string(26, 'z'));
  EXPECT_EQ(out, "1a\r\n" + std::string(26, 'z') + "\r\n");
}

TEST(ErrorBody, IsOpenAiShaped) {
  const auto error = boost::json::parse(ErrorBody(400, "no \"such\"\n", "bad", "n")).at("error");
  EXPECT_EQ(error.at("message"), "no \"such\"\n");
  EXPECT_EQ(error.at("type"), "invalid_request_error");
  EXPECT_EQ(error.at("param"), "n");
  EXPECT_EQ(error.at("code"), "bad");
  const auto failure = boost::json::parse(ErrorBody(503, "full", {})).at("error");
  EXPECT_EQ(failure.at("type"), "server_error");
  EXPECT_TRUE(failure.at("param").is_null());
  EXPECT_TRUE(failure.at("code").is_null());
}

}  // namespace
}  // namespace vivace::server
