#include "server/access/access_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace vivace::server {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

HttpRequest With(Headers headers) {
  HttpRequest request;
  request.headers = std::move(headers);
  return request;
}
HttpRequest Bearer(const std::string& key) { return With({{"authorization", "Bearer " + key}}); }

AccessControl Guarded(KeyOptions options) {
  AccessControl access(options.public_metrics);
  auto keys = LoadKeys(options);
  EXPECT_TRUE(keys) << keys.error().message;
  access.Use(*keys);
  return access;
}

int StatusOf(const AccessControl& access, AccessLevel level, const HttpRequest& request) {
  const auto refusal = access.Check(level, request);
  return refusal ? refusal->status : 200;
}

TEST(AccessControl, WithoutKeysEverythingIsOpen) {
  for (const AccessControl& access : {AccessControl(), Guarded({})}) {
    EXPECT_EQ(StatusOf(access, AccessLevel::kAdmin, With({})), 200);
    EXPECT_EQ(StatusOf(access, AccessLevel::kKey, Bearer("anything")), 200);
    EXPECT_TRUE(access.MaySee({}, 7));
  }
}

TEST(AccessControl, AKeyComesInTwoWays) {
  const AccessControl access = Guarded({.api_keys = {"sk-one", "sk-two"}});
  EXPECT_EQ(StatusOf(access, AccessLevel::kKey, Bearer("sk-two")), 200);
  EXPECT_EQ(StatusOf(access, AccessLevel::kKey, With({{"authorization", "bearer  sk-one"}})), 200);
  EXPECT_EQ(StatusOf(access, AccessLevel::kKey, With({{"x-api-key", "sk-one"}})), 200);
  // An SDK may send a stale one beside the right one.
  EXPECT_EQ(StatusOf(access, AccessLevel::kKey,
                     With({{"authorization", "Bearer none"}, {"x-api-key", "sk-one"}})),
            200);
  for (const HttpRequest& request :
       {With({}), With({{"authorization", "sk-one"}}), With({{"authorization", "Basic sk-one"}}),
        With({{"authorization", "Bearer"}}), With({{"authorization", "Bearer "}}), Bearer("sk-on"),
        Bearer("sk-one sk-two"), With({{"x-api-key", "Bearer sk-one"}})}) {
    EXPECT_EQ(StatusOf(access, AccessLevel::kKey, request), 401);
  }
}

TEST(AccessControl, LevelsSayWhatIsNeeded) {
  const AccessControl access = Guarded({.api_keys = {"user"}, .admin_keys = {"admin"}});
  struct Case {
    AccessLevel level;
    int none, user, admin;
  };
  for (const Case& c : {Case{AccessLevel::kOpen, 200, 200, 200},
                        {AccessLevel::kKey, 401, 200, 200},
                        {AccessLevel::kMetrics, 401, 200, 200},
                        {AccessLevel::kAdmin, 401, 403, 200}}) {
    EXPECT_EQ(StatusOf(access, c.level, With({})), c.none);
    EXPECT_EQ(StatusOf(access, c.level, Bearer("user")), c.user);
    EXPECT_EQ(StatusOf(access, c.level, Bearer("admin")), c.admin);
  }
}

TEST(AccessControl, AnAdminKeyAloneGuardsWhatIsTheAdministrators) {
  const AccessControl access = Guarded({.admin_keys = {"admin"}});
  EXPECT_EQ(StatusOf(access, AccessLevel::kKey, With({})), 200);
  EXPECT_EQ(StatusOf(access, AccessLevel::kAdmin, With({})), 401);
  EXPECT_EQ(StatusOf(access, AccessLevel::kAdmin, Bearer("admin")), 200);
}

TEST(AccessControl, AnApiKeyOpensAdminRoutesWhereThereIsNoAdminKey) {
  const AccessControl access = Guarded({.api_keys = {"user"}});
  EXPECT_EQ(StatusOf(access, AccessLevel::kAdmin, With({})), 401);
  EXPECT_EQ(StatusOf(access, AccessLevel::kAdmin, Bearer("user")), 200);
}

TEST(AccessControl, MetricsMayBePublic) {
  const AccessControl access = Guarded({.api_keys = {"user"}, .public_metrics = true});
  EXPECT_EQ(StatusOf(access, AccessLevel::kMetrics, With({})), 200);
  EXPECT_EQ(StatusOf(access, AccessLevel::kKey, With({})), 401);
}

TEST(AccessControl, ARefusalIsOpenAisAndSaysNoKey) {
  const AccessControl access = Guarded({.api_keys = {"sk-secret"}});
  const auto refusal = access.Check(AccessLevel::kKey, Bearer("sk-guess"));
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->headers, Contains(Pair("www-authenticate", "Bearer")));
  EXPECT_THAT(refusal->body, HasSubstr(R"("code":"invalid_api_key")"));
  EXPECT_THAT(refusal->body, Not(HasSubstr("sk-")));
  EXPECT_THAT(access.Check(AccessLevel::kKey, With({}))->body, HasSubstr("missing_api_key"));
}

TEST(AccessControl, CallersSeeTheirOwn) {
  const AccessControl access = Guarded({.api_keys = {"one", "two"}, .admin_keys = {"admin"}});
  const auto one = access.WhoIs(Bearer("one"));
  EXPECT_NE(one.id, 0u);
  EXPECT_TRUE(access.MaySee(one, one.id));
  EXPECT_FALSE(access.MaySee(access.WhoIs(Bearer("two")), one.id));
  EXPECT_FALSE(access.MaySee(access.WhoIs(With({})), 0));
  EXPECT_TRUE(access.MaySee(access.WhoIs(Bearer("admin")), one.id));
}

TEST(AccessControl, AFileWithoutKeysLetsNobodyIn) {
  const std::string file = ::testing::TempDir() + "access_control_test_keys";
  std::ofstream(file) << "# nobody yet\n";
  const AccessControl access = Guarded({.api_key_file = file});
  EXPECT_EQ(StatusOf(access, AccessLevel::kKey, With({})), 401);
  EXPECT_EQ(StatusOf(access, AccessLevel::kKey, Bearer("x")), 401);
  EXPECT_EQ(LoadKeys({.admin_key_file = file}).error().field, "admin-api-key-file");
  EXPECT_EQ(LoadKeys({.api_keys = {"a b"}}).error().reason, "bad_key");
}

}  // namespace
}  // namespace vivace::server
