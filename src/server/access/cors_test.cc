#include "server/access/cors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"

namespace vivace::server {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Cors MakeCors(const CorsOptions& options) {
  auto cors = Cors::Make(options);
  EXPECT_TRUE(cors) << cors.error().message;
  return *cors;
}

HttpRequest From(std::string origin, std::string method = "POST", Headers more = {}) {
  HttpRequest request;
  request.method = std::move(method);
  request.headers = std::move(more);
  request.headers.emplace_back("origin", std::move(origin));
  return request;
}
HttpRequest Preflight(std::string origin, std::string method, std::string headers = "") {
  return From(std::move(origin), "OPTIONS",
              {{"access-control-request-method", std::move(method)},
               {"access-control-request-headers", std::move(headers)}});
}

TEST(Cors, IsOffByDefault) {
  const Cors cors = MakeCors({});
  EXPECT_FALSE(cors.enabled());
  EXPECT_THAT(cors.AnswerHeaders(From("https://a.example")), IsEmpty());
  EXPECT_FALSE(cors.Preflight(Preflight("https://a.example", "POST")));
}

TEST(Cors, AListedOriginIsEchoed) {
  const Cors cors = MakeCors({.origins = {"https://a.example", "http://b.example:81"}});
  const Headers yes = cors.AnswerHeaders(From("http://b.example:81"));
  EXPECT_THAT(yes, Contains(Pair("access-control-allow-origin", "http://b.example:81")));
  EXPECT_THAT(yes, Contains(Pair("vary", "Origin")));
  EXPECT_THAT(yes, Not(Contains(Key("access-control-allow-credentials"))));
  for (const char* other :
       {"https://b.example:81", "http://b.example", "https://a.example.evil", "null", ""}) {
    EXPECT_THAT(cors.AnswerHeaders(From(other)), UnorderedElementsAre(Pair("vary", "Origin")))
        << other;
  }
}

TEST(Cors, AStarIsAStarUnlessCredentialsAreAllowed) {
  const Headers star = MakeCors({.origins = {"*"}}).AnswerHeaders(From("https://a.example"));
  EXPECT_THAT(star, Contains(Pair("access-control-allow-origin", "*")));
  EXPECT_THAT(star, Not(Contains(Key("vary"))));
  const Headers echo =
      MakeCors({.origins = {"*"}, .credentials = true}).AnswerHeaders(From("https://a.example"));
  EXPECT_THAT(echo, Contains(Pair("access-control-allow-origin", "https://a.example")));
  EXPECT_THAT(echo, Contains(Pair("access-control-allow-credentials", "true")));
  EXPECT_THAT(echo, Contains(Pair("vary", "Origin")));
}

TEST(Cors, APreflightIsAnsweredWhole) {
  const Cors cors = MakeCors({.origins = {"https://a.example"}});
  const auto answer = cors.Preflight(Preflight("https://a.example", "POST", "authorization, x-b"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 204);
  EXPECT_THAT(answer->headers, Contains(Pair("access-control-allow-origin", "https://a.example")));
  EXPECT_THAT(answer->headers,
              Contains(Pair("access-control-allow-methods", "GET, HEAD, POST, OPTIONS")));
  EXPECT_THAT(answer->headers,
              Contains(Pair("access-control-allow-headers", "authorization, x-b")));
  EXPECT_THAT(answer->headers, Contains(Key("access-control-max-age")));
  EXPECT_THAT(answer->headers, Contains(Key("vary")));
}

TEST(Cors, APreflightThatAsksForTooMuchGetsNothing) {
  const Cors cors = MakeCors({.origins = {"https://a.example"},
                              .methods = {"GET", "POST"},
                              .headers = {"Authorization", "X-B"}});
  EXPECT_EQ(cors.Preflight(Preflight("https://a.example", "POST", "x-b,authorization"))->status,
            204);
  for (const HttpRequest& request :
       {Preflight("https://evil.example", "POST"), Preflight("https://a.example", "DELETE"),
        Preflight("https://a.example", "post"), Preflight("https://a.example", "POST", "x-b, x-c"),
        Preflight("", "POST")}) {
    const auto answer = cors.Preflight(request);
    EXPECT_EQ(answer->status, 403);
    EXPECT_THAT(answer->headers, Not(Contains(Key("access-control-allow-origin"))));
  }
  // Not preflights: OPTIONS of another kind, and other methods.
  EXPECT_FALSE(cors.Preflight(From("https://a.example", "OPTIONS")));
  EXPECT_FALSE(cors.Preflight(From("https://a.example", "POST")));
}

TEST(Cors, WhatIsNoOriginIsRefused) {
  for (const char* bad :
       {"a.example", "https://", "://a", "https://a.example/", "https://*.example",
        "https://a.example,https://b.example", "https://a b"}) {
    EXPECT_EQ(Cors::Make({.origins = {bad}}).error().field, "allowed-origins") << bad;
  }
  EXPECT_EQ(Cors::Make({.methods = {"GET POST"}}).error().field, "allowed-methods");
  EXPECT_EQ(Cors::Make({.headers = {"a:b"}}).error().field, "allowed-headers");
  const std::string longest = "http://" + std::string(limits::kMaxCorsEntryBytes - 7, 'a');
  EXPECT_TRUE(Cors::Make({.origins = {longest}}));
  EXPECT_FALSE(Cors::Make({.origins = {longest + "a"}}));
  EXPECT_TRUE(Cors::Make({.headers = std::vector<std::string>(limits::kMaxCorsEntries, "a")}));
  EXPECT_FALSE(Cors::Make({.headers = std::vector<std::string>(limits::kMaxCorsEntries + 1, "a")}));
}

}  // namespace
}  // namespace vivace::server
