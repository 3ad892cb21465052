#include "server/access/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/limits.h"

namespace vivace::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(KeySet, FindsWhatItHoldsAndNothingElse) {
  const std::vector<std::string> keys = {"sk-one", "sk-two", "sk-two"};
  const KeySet set(keys);
  EXPECT_TRUE(set.Find("sk-one"));
  EXPECT_TRUE(set.Find("sk-two"));
  EXPECT_NE(set.Find("sk-one"), set.Find("sk-two"));
  for (const char* other : {"", "sk-on", "sk-one ", "SK-ONE", "sk-three"}) {
    EXPECT_FALSE(set.Find(other)) << other;
  }
  EXPECT_FALSE(KeySet().Find(""));
}

TEST(ApiKeys, AKeyIsWhatAHeaderCarries) {
  EXPECT_TRUE(CheckKey("sk-~!", "api-key"));
  EXPECT_TRUE(CheckKey(std::string(limits::kMaxApiKeyBytes, 'k'), "api-key"));
  for (const std::string& bad :
       {std::string(), std::string(limits::kMaxApiKeyBytes + 1, 'k'), std::string("a b"),
        std::string("a\n"), std::string("caf\xC3\xA9")}) {
    const Status status = CheckKey(bad, "api-key");
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().field, "api-key");
    if (!bad.empty()) {
      EXPECT_THAT(status.error().message, Not(HasSubstr(bad)));
    }
  }
}

TEST(ApiKeys, AFileHasAKeyALine) {
  const auto keys = ParseKeyFile("# the team\nsk-one\n\n  sk-two\t\r\n#sk-three\nsk-four", "f");
  ASSERT_TRUE(keys);
  EXPECT_THAT(*keys, ElementsAre("sk-one", "sk-two", "sk-four"));
  EXPECT_THAT(*ParseKeyFile("", "f"), ElementsAre());
  const auto bad = ParseKeyFile("sk-one\nsecret two\n", "f");
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message, HasSubstr("line 2"));
  EXPECT_THAT(bad.error().message, Not(HasSubstr("secret")));
}

TEST(ApiKeys, AFileHasSoManyKeysAndNoMore) {
  std::string text;
  for (size_t i = 0; i < limits::kMaxApiKeys; ++i) text += "k\n";
  EXPECT_TRUE(ParseKeyFile(text, "f"));
  EXPECT_EQ(ParseKeyFile(text + "k\n", "f").error().reason, "too_many_keys");
}

TEST(ApiKeys, OnlyPlainFilesAreRead) {
  const std::string folder = ::testing::TempDir() + "api_keys_test";
  mkdir(folder.c_str(), 0700);
  std::ofstream(folder + "/keys") << "sk-one\n";
  EXPECT_THAT(*ReadKeyFile(folder + "/keys", "f"), ElementsAre("sk-one"));
  mkfifo((folder + "/pipe").c_str(), 0600);
  std::ofstream(folder + "/large") << std::string(limits::kMaxApiKeyFileBytes + 1, '#');
  for (const char* bad : {"", "/pipe", "/large", "/none"}) {
    EXPECT_EQ(ReadKeyFile(folder + bad, "f").error().reason, "bad_key_file") << bad;
  }
}

}  // namespace
}  // namespace vivace::server
