#include "hub/model_name.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace vivace::hub {
namespace {

TEST(ModelName, TakesWhatAHubHas) {
  const auto plain = ParseModelName("Qwen/Qwen3-0.6B");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->repo, "Qwen/Qwen3-0.6B");
  EXPECT_TRUE(plain->file.empty());
  const auto file = ParseModelName("org/name_1.0:Q4/model-00001-of-00002.gguf");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->repo, "org/name_1.0");
  EXPECT_EQ(file->file, "Q4/model-00001-of-00002.gguf");
  EXPECT_EQ(file->text(), "org/name_1.0:Q4/model-00001-of-00002.gguf");
}

TEST(ModelName, LeavesPathsAlone) {
  for (const char* text : {"",
                           "model",
                           "model.gguf",
                           "./org/name",
                           "/org/name",
                           "../org",
                           "org/../name",
                           "a/b/c",
                           "models/x.gguf",
                           "models/config.json",
                           "org/",
                           "/name",
                           "org/name:",
                           "org/name:/etc/passwd",
                           "org/name:../x",
                           "http://host/x",
                           "-org/name",
                           "org/.name",
                           "org/na--me",
                           "org/na me",
                           "org/n\u00e4me",
                           "~/name",
                           "org/name:a//b",
                           "org/name:."}) {
    EXPECT_FALSE(ParseModelName(text)) << text;
  }
}

TEST(ModelName, PartsAreBounded) {
  const std::string longest(limits::kHubRepoPartBytes, 'a');
  EXPECT_TRUE(ParseModelName("o/" + longest));
  EXPECT_FALSE(ParseModelName("o/" + longest + "a"));
  std::string name(250, 'a');
  while (name.size() + 1 + 250 <= limits::kHubFileNameBytes) name += "/" + std::string(250, 'a');
  name += "/" + std::string(limits::kHubFileNameBytes - name.size() - 1, 'a');
  EXPECT_TRUE(IsFileName(name));
  EXPECT_FALSE(IsFileName(name + "a"));
}

TEST(FileName, HostileAndMerelyOdd) {
  for (const char* name : {"/etc/passwd", "../x", "a/../b", "a/..", "a\\b", "a\nb", "", "a\x7f"}) {
    EXPECT_TRUE(IsHostileFileName(name)) << name;
    EXPECT_FALSE(IsFileName(name)) << name;
  }
  for (const char* name : {"pictur\u00e9.png", "what?.txt", "a:b", "a%2e", "..."}) {
    EXPECT_FALSE(IsHostileFileName(name)) << name;
    EXPECT_FALSE(IsFileName(name)) << name;
  }
  for (const char* name : {"a", ".gitattributes", "a b (1).txt", "x/y/z.gguf", "a..b"}) {
    EXPECT_FALSE(IsHostileFileName(name)) << name;
    EXPECT_TRUE(IsFileName(name)) << name;
  }
}

TEST(Revision, Names) {
  for (const char* name : {"main", "v1.0", "refs/pr/1", "0123456789012345678901234567890123456789"})
    EXPECT_TRUE(CheckRevision(name)) << name;
  for (const char* name : {"", "..", "a/../b", "/main", "a b", "a?b", "a/"})
    EXPECT_FALSE(CheckRevision(name)) << name;
}

TEST(BlobName, IsTheETagWithoutItsDress) {
  EXPECT_EQ(BlobName("\"0123abcd\"").value(), "0123abcd");
  EXPECT_EQ(BlobName("W/\"0123abcd\"").value(), "0123abcd");
  EXPECT_EQ(BlobName("0123abcd").value(), "0123abcd");
  for (const char* etag : {"", "\"\"", "\"../../x\"", "\"a/b/c/d/e\"", "\"01.23abcd\"", "short"})
    EXPECT_FALSE(BlobName(etag)) << etag;
  EXPECT_TRUE(BlobName(std::string(128, 'a')));
  EXPECT_FALSE(BlobName(std::string(129, 'a')));
}

}  // namespace
}  // namespace vivace::hub
