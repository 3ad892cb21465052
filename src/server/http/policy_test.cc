#include "server/http/policy.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/limits.h"

namespace vivace::server {
namespace {

constexpr size_t kMaxBody = 1'000;

TEST(HttpPolicy, EscapesAreDecoded) {
  EXPECT_EQ(DecodedPath("org%2Fa%20model%C3%a9"), "org/a modelé");
  EXPECT_EQ(DecodedPath("/plain"), "/plain");
  EXPECT_EQ(DecodedPath(""), "");
  EXPECT_EQ(DecodedPath("cut%2"), "cut%2");
}

// Status of a whole head; 0 if accepted, -1 if it is not finished.
int Judge(const std::string& bytes, ParsedHead* out = nullptr) {
  HeadScanner scanner;
  switch (scanner.Scan(bytes)) {
    case HeadScanner::State::kMore:
      return -1;
    case HeadScanner::State::kRejected:
      return scanner.rejection().status;
    case HeadScanner::State::kDone:
      break;
  }
  auto head = ParseHead(scanner.head(bytes), kMaxBody);
  if (!head) return head.error().status;
  if (out != nullptr) *out = *head;
  return 0;
}

std::string Post(const std::string& fields) {
  return "POST /v1/completions HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

struct Case {
  const char* name;
  std::string head;
  int status;
};

class Heads : public testing::TestWithParam<Case> {};

TEST_P(Heads, GetTheirVerdictWholeAndByteByByte) {
  const Case& c = GetParam();
  EXPECT_EQ(Judge(c.head), c.status);
  HeadScanner scanner;
  HeadScanner::State state = HeadScanner::State::kMore;
  size_t size = 0;
  while (size < c.head.size() && state == HeadScanner::State::kMore) {
    state = scanner.Scan(std::string_view(c.head).substr(0, ++size));
  }
  if (state == HeadScanner::State::kRejected) {
    EXPECT_EQ(scanner.rejection().status, c.status);
  } else {
    ASSERT_EQ(state, HeadScanner::State::kDone);
    EXPECT_EQ(Judge(c.head.substr(0, size)), c.status);
  }
}

INSTANTIATE_TEST_SUITE_P(
    RequestLine, Heads,
    testing::Values(Case{"plain", "GET /health HTTP/1.1\r\nHost: a\r\n\r\n", 0},
                    Case{"after_empty_line", "\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n", 0},
                    Case{"after_two_empty_lines", "\r\n\r\nGET /health HTTP/1.1\r\nHost: a\r\n\r\n",
                         400},
                    Case{"http_1_0", "GET / HTTP/1.0\r\n\r\n", 0},
                    Case{"http_0_9", "GET /\r\n\r\n", 400},
                    Case{"http_2", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
                    Case{"http_2_preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
                    Case{"http_1_2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
                    Case{"http_1_10", "GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400},
                    Case{"http_lower", "GET / http/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"two_spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"space_at_end", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
                    Case{"tab", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"no_method", " / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"method_lower", "get / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
                    Case{"method_bad", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"method_unknown_passes", "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
                    Case{"method_32", std::string(32, 'A') + " / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
                    Case{"method_33", std::string(33, 'A') + " / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
                    Case{"tls", std::string("\x16\x03\x01\x00\xa5\x01", 6), 400},
                    Case{"nul", std::string("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", 29), 400},
                    Case{"bare_lf", "GET / HTTP/1.1\nHost: a\n\n", 400},
                    Case{"bare_cr", "GET / HTTP/1.1\rHost: a\r\n\r\n", 400}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Target, Heads,
    testing::Values(Case{"query", "GET /a?b=c&d=%20[x]|{} HTTP/1.1\r\nHost: a\r\n\r\n", 0},
                    Case{"escaped_slash", "GET /v1/models/a%2Fb HTTP/1.1\r\nHost: a\r\n\r\n", 0},
                    Case{"trailing_slash", "GET /v1/ HTTP/1.1\r\nHost: a\r\n\r\n", 0},
                    Case{"three_dots", "GET /.../x HTTP/1.1\r\nHost: a\r\n\r\n", 0},
                    Case{"double_slash", "GET //v1 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"inner_double_slash", "GET /v1//models HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"dot", "GET /./v1 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"dot_dot_at_end", "GET /v1/.. HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"escaped_dots", "GET /%2e%2E/x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"mixed_dots", "GET /.%2e/x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"bad_escape", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"cut_escape", "GET /a%2 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"escaped_nul", "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"backslash", "GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"non_ascii", "GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"absolute_form", "GET http://a/b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"asterisk", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
                    Case{"authority", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Fields, Heads,
    testing::Values(
        Case{"no_host", "GET / HTTP/1.1\r\n\r\n", 400},
        Case{"host_twice", Post("Host: a\r\n"), 400},
        Case{"host_bad", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
        Case{"host_slash", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
        Case{"host_ipv6", "GET / HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n", 0},
        Case{"host_twice_1_0", "GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n", 400},
        Case{"no_colon", Post("X-A\r\n"), 400}, Case{"empty_name", Post(": b\r\n"), 400},
        Case{"space_before_colon", Post("X-A : b\r\n"), 400},
        Case{"tab_before_colon", Post("X-A\t: b\r\n"), 400},
        Case{"name_not_token", Post("X(A: b\r\n"), 400},
        Case{"obs_fold", Post("X-A: b\r\n c\r\n"), 400},
        Case{"obs_fold_tab", Post("X-A: b\r\n\tc\r\n"), 400},
        Case{"fold_first", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
        Case{"empty_value", Post("X-A:\r\n"), 0}, Case{"obs_text", Post("X-A: \xe9\r\n"), 0},
        Case{"delete_in_value", Post("X-A: \x7f\r\n"), 400},
        Case{"authorization_twice", Post("Authorization: a\r\nauthorization: b\r\n"), 400},
        Case{"content_type_twice", Post("Content-Type: a\r\nContent-Type: a\r\n"), 400},
        Case{"others_may_repeat", Post("X-A: a\r\nX-A: b\r\n"), 0},
        Case{"gzip", Post("Content-Encoding: gzip\r\n"), 415},
        Case{"identity", Post("Content-Encoding: Identity\r\n"), 0},
        Case{"expect", Post("Expect: 100-Continue\r\nContent-Length: 1\r\n"), 0},
        Case{"expect_other", Post("Expect: 200-ok\r\n"), 417},
        Case{"expect_empty", Post("Expect:\r\n"), 417}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Framing, Heads,
    testing::Values(
        Case{"length", Post("Content-Length: 80\r\n"), 0},
        Case{"length_spaces", Post("Content-Length:   80  \r\n"), 0},
        Case{"length_zero", Post("Content-Length: 0\r\n"), 0},
        Case{"length_at_limit", Post("Content-Length: 1000\r\n"), 0},
        Case{"length_past_limit", Post("Content-Length: 1001\r\n"), 413},
        Case{"length_1tb", Post("Content-Length: 1099511627776\r\n"), 413},
        Case{"length_15_digits", Post("Content-Length: 999999999999999\r\n"), 413},
        Case{"length_16_digits", Post("Content-Length: 1000000000000000\r\n"), 400},
        Case{"length_2e64", Post("Content-Length: 18446744073709551616\r\n"), 400},
        Case{"length_empty", Post("Content-Length:\r\n"), 400},
        Case{"length_empty_then_real", Post("Content-Length:\r\nContent-Length: 8\r\n"), 400},
        Case{"length_plus", Post("Content-Length: +80\r\n"), 400},
        Case{"length_minus", Post("Content-Length: -1\r\n"), 400},
        Case{"length_hex", Post("Content-Length: 0x50\r\n"), 400},
        Case{"length_leading_zero", Post("Content-Length: 080\r\n"), 400},
        Case{"length_tab", Post("Content-Length:\t80\r\n"), 400},
        Case{"length_inner_space", Post("Content-Length: 8 0\r\n"), 400},
        Case{"length_fraction", Post("Content-Length: 80.0\r\n"), 400},
        Case{"length_list", Post("Content-Length: 80, 80\r\n"), 400},
        Case{"length_twice_same", Post("Content-Length: 80\r\nContent-Length: 80\r\n"), 400},
        Case{"length_then_coding", Post("Content-Length: 8\r\nTransfer-Encoding: chunked\r\n"),
             400},
        Case{"coding_then_length", Post("Transfer-Encoding: chunked\r\nContent-Length: 8\r\n"),
             400},
        Case{"unknown_coding_and_length", Post("Transfer-Encoding: x\r\nContent-Length: 8\r\n"),
             400},
        Case{"coding", Post("Transfer-Encoding: chunked\r\n"), 0},
        Case{"coding_1_0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

// Every spelling of a transfer coding but one is refused, so none can hide a second request.
TEST(Policy, NoOtherSpellingOfChunkedPasses) {
  const std::vector<std::string> codings = {"Chunked",
                                            "CHUNKED",
                                            "xchunked",
                                            "chunked,",
                                            ",chunked",
                                            "chunked, chunked",
                                            "gzip, chunked",
                                            "chunked, gzip",
                                            "identity",
                                            "identity, chunked",
                                            "\"chunked\"",
                                            "chunked;q=1",
                                            "chunked x",
                                            "\tchunked",
                                            "chunked\t",
                                            "chunk",
                                            "chunkedd",
                                            "",
                                            "\xc2\xa0"
                                            "chunked",
                                            "chunked\xa0",
                                            "cow",
                                            "chunked\x0b"};
  const std::vector<std::string> names = {"Transfer-Encoding", "transfer-encoding",
                                          "TRANSFER-ENCODING"};
  for (const std::string& name : names) {
    ParsedHead head;
    EXPECT_EQ(Judge(Post(name + ": chunked\r\n"), &head), 0);
    EXPECT_EQ(head.framing, BodyFraming::kChunked);
    for (const std::string& coding : codings) {
      const int status = Judge(Post(name + ": " + coding + "\r\n"));
      EXPECT_TRUE(status == 501 || status == 400) << name << ": " << coding << " -> " << status;
      EXPECT_NE(Judge(Post(name + ": chunked\r\n" + name + ": " + coding + "\r\n")), 0) << coding;
      EXPECT_NE(Judge(Post(name + ": " + coding + "\r\nContent-Length: 5\r\n")), 0) << coding;
    }
  }
  for (const char* name :
       {"Transfer-Encoding ", "Transfer-Encoding\t", " Transfer-Encoding", "Transfer-Encoding\x0b",
        "Transfer-Encoding\xa0", "Content-Length ", "Transfer\r-Encoding"}) {
    EXPECT_EQ(Judge(Post(std::string(name) + ": chunked\r\n")), 400) << name;
  }
}

TEST(Policy, ParsesWhatHandlersNeed) {
  ParsedHead head;
  ASSERT_EQ(Judge("POST /v1/x?a=b HTTP/1.1\r\nHOST: h:1\r\nX-Key:  v w \r\nContent-Length: 7\r\n"
                  "Expect: 100-continue\r\n\r\n",
                  &head),
            0);
  EXPECT_EQ(head.request.method, "POST");
  EXPECT_EQ(head.request.path, "/v1/x");
  EXPECT_EQ(head.request.query, "a=b");
  EXPECT_EQ(head.request.header("host"), "h:1");
  EXPECT_EQ(head.request.header("x-key"), "v w");
  EXPECT_EQ(head.request.header("x-none"), "");
  EXPECT_EQ(head.framing, BodyFraming::kLength);
  EXPECT_EQ(head.content_length, 7u);
  EXPECT_TRUE(head.expect_continue);
  EXPECT_TRUE(head.request.keep_alive);
}

TEST(Policy, KeepAliveFollowsVersionAndConnection) {
  const auto keeps = [](const std::string& version, const std::string& connection) {
    ParsedHead head;
    EXPECT_EQ(Judge("GET / " + version + "\r\nHost: a\r\n" + connection + "\r\n", &head), 0);
    return head.request.keep_alive;
  };
  EXPECT_TRUE(keeps("HTTP/1.1", ""));
  EXPECT_FALSE(keeps("HTTP/1.1", "Connection: foo, Close\r\n"));
  EXPECT_TRUE(keeps("HTTP/1.1", "Connection: closed\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.0", ""));
  EXPECT_TRUE(keeps("HTTP/1.0", "Connection: Keep-Alive\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.0", "Connection: keep-alive\r\nConnection: close\r\n"));
}

TEST(Policy, LimitsHoldAtTheLimitAndOnePast) {
  const auto target = [](size_t bytes) {
    return "GET /" + std::string(bytes - 1, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n";
  };
  EXPECT_EQ(Judge(target(limits::kMaxTargetBytes)), 0);
  EXPECT_EQ(Judge(target(limits::kMaxTargetBytes + 1)), 414);
  EXPECT_EQ(Judge("GET /" + std::string(64 << 10, 'a')), 414) << "before its end is seen";

  const auto fields = [](size_t count) {
    std::string head = "GET / HTTP/1.1\r\nHost: a\r\n";
    for (size_t i = 1; i < count; ++i) head += "a:\r\n";
    return head + "\r\n";
  };
  EXPECT_EQ(Judge(fields(limits::kMaxHeaderFields)), 0);
  EXPECT_EQ(Judge(fields(limits::kMaxHeaderFields + 1)), 431);

  const auto total = [](size_t bytes) {
    const std::string start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    return start + std::string(bytes - start.size() - 4, 'x') + "\r\n\r\n";
  };
  EXPECT_EQ(Judge(total(limits::kMaxHeaderBytes)), 0);
  EXPECT_EQ(Judge(total(limits::kMaxHeaderBytes + 1)), 431);
}

TEST(Policy, ScannerStopsAtTheHeadsEnd) {
  const std::string first = "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
  HeadScanner scanner;
  ASSERT_EQ(scanner.Scan(first + "GET /next"), HeadScanner::State::kDone);
  EXPECT_EQ(scanner.consumed(), first.size());
  EXPECT_EQ(scanner.head(first), first.substr(2));
}

// Whatever is accepted holds none of what the policy promises to keep out.
TEST(Policy, RandomHeadsKeepThePromise) {
  const std::vector<std::string> pieces = {"GET ",
                                           "POST ",
                                           "/",
                                           "a",
                                           "..",
                                           "%2e",
                                           " HTTP/1.1",
                                           " HTTP/1.0",
                                           "\r\n",
                                           "\r\n",
                                           "\r",
                                           "\n",
                                           "Host: a",
                                           "Host: b",
                                           "Content-Length: 5",
                                           "Content-Length: 05",
                                           "Transfer-Encoding: chunked",
                                           "Transfer-Encoding: x",
                                           " ",
                                           "\t",
                                           ":",
                                           "X: y",
                                           "\r\n\r\n",
                                           std::string(1, '\0')};
  std::mt19937 random(7);
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string bytes = round % 2 ? "GET /a HTTP/1.1\r\nHost: a\r\n" : "";
    const size_t count = 1 + random() % 8;
    for (size_t i = 0; i < count; ++i) bytes += pieces[random() % pieces.size()];
    bytes += "\r\n\r\n";
    ParsedHead head;
    if (Judge(bytes, &head) != 0) continue;
    ++accepted;
    int hosts = 0, lengths = 0, codings = 0;
    for (const auto& [name, value] : head.request.headers) {
      hosts += name == "host";
      lengths += name == "content-length";
      codings += name == "transfer-encoding";
    }
    ASSERT_LE(hosts, 1);
    ASSERT_TRUE(hosts == 1 || head.http_1_0);
    ASSERT_LE(lengths + codings, 1);
    ASSERT_EQ(head.framing == BodyFraming::kChunked, codings == 1);
    ASSERT_EQ(head.request.path.find(".."), std::string::npos);
    ASSERT_EQ(head.request.path.find("//"), std::string::npos);
  }
  EXPECT_GT(accepted, 1'000);
}

}  // namespace
}  // namespace vivace::server
