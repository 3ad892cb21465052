#include "server/http/chunked.h"

#include <gtest/gtest.h>

#include <random>

#include "base/limits.h"

namespace vivace::server {
namespace {

struct Outcome {
  int status = 0;  // 0: done, -1: more wanted
  std::string body;
  std::string rest;
};

Outcome Decode(const std::string& bytes, size_t piece = SIZE_MAX, size_t max_body = 1'000) {
  ChunkDecoder decoder(max_body);
  Outcome out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = std::min(piece, bytes.size() - at);
    std::string_view input = std::string_view(bytes).substr(at, size);
    const ChunkDecoder::State state = decoder.Feed(input, out.body);
    at += size - input.size();
    if (state == ChunkDecoder::State::kRejected) {
      out.status = decoder.rejection().status;
      return out;
    }
    if (state == ChunkDecoder::State::kDone) {
      out.rest = bytes.substr(at);
      return out;
    }
  }
  out.status = -1;
  return out;
}

TEST(Chunked, DecodesWholeAndByteByByte) {
  const std::string bytes =
      "5\r\nhello\r\n1;a=b;c=\"d e\"\r\n \r\n00a\r\n0123456789\r\n0\r\n\r\nGET";
  for (size_t piece : {SIZE_MAX, size_t{1}, size_t{3}, size_t{7}}) {
    const Outcome out = Decode(bytes, piece);
    EXPECT_EQ(out.status, 0);
    EXPECT_EQ(out.body, "hello 0123456789");
    EXPECT_EQ(out.rest, "GET");
  }
}

TEST(Chunked, DropsTrailersButNotThoseThatFrame) {
  EXPECT_EQ(Decode("0\r\nX-Sum: 1\r\nY: 2\r\n\r\n").status, 0);
  for (const char* trailer : {"Content-Length: 5", "transfer-encoding: chunked", "Host: b",
                              "Authorization: x", "no colon", " folded: x", "a : b", ": x"}) {
    EXPECT_EQ(Decode(std::string("0\r\n") + trailer + "\r\n\r\n").status, 400) << trailer;
  }
}

TEST(Chunked, RefusesWhatPeersReadDifferently) {
  for (const std::string bytes : {"-5\r\nhello\r\n",
                                  "+5\r\nhello\r\n",
                                  "0x5\r\nhello\r\n",
                                  "5 \r\nhello\r\n",
                                  " 5\r\nhello\r\n",
                                  "5\t;a\r\nhello\r\n",
                                  "\r\nhello",
                                  ";a\r\n",
                                  "g\r\n",
                                  "5\nhello\r\n",
                                  "5\r\nhello\n0\r\n\r\n",
                                  "5\r\nhelloX\r\n",
                                  "5\r\nhello\r\r\n",
                                  "5\rhello",
                                  "5;a=\"\nx\"\r\nhello\r\n",
                                  "5;a=\x01\r\nhello\r\n",
                                  "0\r\n\n",
                                  "0\r\nA: b\n\r\n",
                                  "00000000000000005\r\nhello\r\n",
                                  "5\xa0\r\nhello\r\n"}) {
    EXPECT_EQ(Decode(bytes).status, 400) << testing::PrintToString(bytes);
    EXPECT_EQ(Decode(bytes, 1).status, 400) << testing::PrintToString(bytes);
  }
}

TEST(Chunked, LimitsHoldAtTheLimitAndOnePast) {
  const auto chunk = [](size_t n) {
    char size[20];
    snprintf(size, sizeof size, "%zx\r\n", n);
    return size + std::string(n, 'x') + "\r\n";
  };
  EXPECT_EQ(Decode(chunk(600) + chunk(400) + "0\r\n\r\n").status, 0);
  EXPECT_EQ(Decode(chunk(600) + chunk(401)).status, 413);
  EXPECT_EQ(Decode("ffffffffffffffff\r\n").status, 413) << "from the size alone";

  const auto extension = [](size_t line) { return "1;" + std::string(line - 2, 'e') + "\r\n"; };
  EXPECT_EQ(Decode(extension(limits::kMaxChunkLineBytes)).status, -1);
  EXPECT_EQ(Decode(extension(limits::kMaxChunkLineBytes + 1)).status, 400);

  std::string many;
  const size_t per_line = limits::kMaxChunkLineBytes;
  for (size_t i = 0; i < limits::kMaxChunkExtensionBytes / (per_line - 1); ++i) {
    many += extension(per_line) + "x\r\n";
  }
  EXPECT_EQ(Decode(many).status, -1);
  EXPECT_EQ(Decode(many + extension(per_line)).status, 400);

  EXPECT_EQ(Decode("0\r\nA:" + std::string(limits::kMaxHeaderBytes - 2, 'x')).status, -1);
  EXPECT_EQ(Decode("0\r\nA:" + std::string(limits::kMaxHeaderBytes - 1, 'x')).status, 431);
}

TEST(Chunked, AnySplitGivesTheSame) {
  std::mt19937 random(3);
  const std::string alphabet = "0159af;\r\n\r\n: xT";
  for (int round = 0; round < 50'000; ++round) {
    std::string bytes = round % 3 ? "3\r\nabc\r\n" : "";
    for (size_t i = random() % 24; i > 0; --i) bytes += alphabet[random() % alphabet.size()];
    const Outcome whole = Decode(bytes);
    const Outcome split = Decode(bytes, 1 + random() % 3);
    ASSERT_EQ(whole.status, split.status) << testing::PrintToString(bytes);
    if (whole.status == 0) {
      ASSERT_EQ(whole.body, split.body);
      ASSERT_EQ(whole.rest, split.rest);
    }
  }
}

}  // namespace
}  // namespace vivace::server
