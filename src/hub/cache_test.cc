#include "hub/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/limits.h"
#include "hub/content_hash.h"
#include "hub/file_lock.h"
#include "hub/http.h"
#include "hub/pull.h"

namespace vivace::hub {
namespace {

namespace fs = std::filesystem;

const std::string kCommit(40, 'a');
const std::string kOther(40, 'b');

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "vivace_hub_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    cache_ = name;
  }
  void TearDown() override { fs::remove_all(cache_); }

  void Put(const std::string& repo_name, const std::string& commit, const std::string& file,
           const std::string& text, const std::string& blob) {
    const RepoCache repo(cache_, repo_name);
    ASSERT_TRUE(repo.MakeFolders());
    std::ofstream(repo.BlobPath(blob)) << text;
    ASSERT_TRUE(repo.Link(commit, file, blob));
  }

  std::string cache_;
};

TEST_F(CacheTest, LinksAreRelativeAndReplaced) {
  Put("o/n", kCommit, "sub/x.gguf", "abc", "blob-one");
  const RepoCache repo(cache_, "o/n");
  const fs::path link = fs::path(cache_) / "models--o--n/snapshots" / kCommit / "sub/x.gguf";
  EXPECT_EQ(fs::read_symlink(link), "../../../blobs/blob-one");
  EXPECT_EQ(fs::file_size(link), 3u);
  Put("o/n", kCommit, "sub/x.gguf", "abcd", "blob-two");
  EXPECT_EQ(fs::file_size(link), 4u);
  EXPECT_THAT(repo.Files(kCommit), testing::ElementsAre("sub/x.gguf"));
  fs::remove(repo.BlobPath("blob-two"));
  EXPECT_TRUE(repo.Files(kCommit).empty()) << "a link to nothing is no file";
}

TEST_F(CacheTest, Refs) {
  const RepoCache repo(cache_, "o/n");
  EXPECT_FALSE(repo.Commit("main"));
  EXPECT_EQ(repo.Commit(kCommit), kCommit);
  ASSERT_TRUE(repo.WriteRef("main", kCommit));
  ASSERT_TRUE(repo.WriteRef("refs/pr/1", kOther));
  EXPECT_EQ(repo.Commit("main"), kCommit);
  EXPECT_EQ(repo.Commit("refs/pr/1"), kOther);
  std::ofstream(repo.folder() + "/refs/main") << "../../evil";
  EXPECT_FALSE(repo.Commit("main"));
}

TEST_F(CacheTest, ListsWhatIsComplete) {
  Put("o/n", kCommit, "config.json", "{}", "blob-conf");
  Put("o/n", kCommit, "model.safetensors", "weights", "blob-weig");
  Put("o/g", kCommit, "g-Q8_0.gguf", "gguf", "blob-gguf");
  Put("o/p", kCommit, "p-00001-of-00002.gguf", "part", "blob-part");
  ASSERT_TRUE(RepoCache(cache_, "o/n").WriteRef("main", kCommit));
  fs::create_directories(fs::path(cache_) / "models--evil");
  fs::create_directories(fs::path(cache_) / "models--..--..");
  const auto models = ListModels(cache_);
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].name, "o/g:g-Q8_0.gguf");
  EXPECT_EQ(models[1].name, "o/n");
  EXPECT_EQ(models[1].revision, "main");
  EXPECT_EQ(models[1].bytes, 9u);
  EXPECT_TRUE(ListModels(cache_ + "/absent").empty());
}

TEST_F(CacheTest, RemovesAFileAndKeepsWhatOthersShare) {
  Put("o/g", kCommit, "g-Q8_0.gguf", "12345678", "blob-eight");
  Put("o/g", kCommit, "g-Q4_0.gguf", "1234", "blob-four");
  Put("o/g", kOther, "g-Q8_0.gguf", "12345678", "blob-eight");
  Put("o/g", kOther, "renamed.gguf", "1234", "blob-four");
  EXPECT_EQ(RemoveModel(cache_, {"o/g", "Q8_0"}).value(), 8u);
  EXPECT_FALSE(fs::exists(RepoCache(cache_, "o/g").BlobPath("blob-eight")));
  EXPECT_EQ(RemoveModel(cache_, {"o/g", "g-Q4_0.gguf"}).value(), 0u);
  EXPECT_TRUE(fs::exists(RepoCache(cache_, "o/g").BlobPath("blob-four")));
  EXPECT_EQ(RemoveModel(cache_, {"o/g", "absent.gguf"}).error().reason, "not_found");
}

TEST_F(CacheTest, RemovesARepositoryUnlessItIsInUse) {
  Put("o/n", kCommit, "config.json", "{}", "blob-conf");
  const RepoCache repo(cache_, "o/n");
  {
    const auto lock = FileLock::Take(repo.LockPath("blob-conf"), [] { return false; });
    ASSERT_TRUE(lock);
    EXPECT_EQ(RemoveModel(cache_, {"o/n", ""}).error().reason, "in_use");
    const auto second = FileLock::Take(repo.LockPath("blob-conf"), [] { return true; });
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().reason, "interrupted");
  }
  EXPECT_EQ(RemoveModel(cache_, {"o/n", ""}).value(), 2u);
  EXPECT_FALSE(fs::exists(repo.folder()));
  EXPECT_EQ(RemoveModel(cache_, {"o/n", ""}).error().reason, "not_found");
}

TEST_F(CacheTest, FindsAModelWithoutTheNetwork) {
  HubConfig config;
  config.endpoint = "http://127.0.0.1:1";
  config.cache = cache_;
  config.offline = true;
  PullRequest request;
  request.name.repo = "o/n";
  EXPECT_EQ(Pull(config, request, {}).error().reason, "not_cached");
  Put("o/n", kCommit, "config.json", "{}", "blob-conf");
  ASSERT_TRUE(RepoCache(cache_, "o/n").WriteRef("main", kCommit));
  EXPECT_EQ(Pull(config, request, {}).error().reason, "no_model_files");
  Put("o/n", kCommit, "model.safetensors", "weights", "blob-weig");
  const auto found = Pull(config, request, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, RepoCache(cache_, "o/n").SnapshotPath(kCommit));
  EXPECT_EQ(found->bytes, 9u);
}

// As `git hash-object` and `sha256sum` say.
TEST(ContentHash, KnownValues) {
  ContentHash git(HashKind::kGitBlob, 6);
  git.Feed("hel");
  git.Feed("lo\n");
  EXPECT_EQ(git.Hex(), "ce013625030ba8dba906f756967f9e9ca394464a");
  ContentHash sha(HashKind::kSha256, 0);
  sha.Feed("hello\n");
  EXPECT_EQ(sha.Hex(), "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
  EXPECT_EQ(KindOf(std::string(64, 'a')), HashKind::kSha256);
  EXPECT_EQ(KindOf(std::string(40, 'a')), HashKind::kGitBlob);
  EXPECT_EQ(KindOf(std::string(40, 'g')), HashKind::kNone);
}

TEST(Origin, IsSchemeHostAndPort) {
  EXPECT_EQ(Origin("HTTPS://Hub.Example/x?y"), "https://hub.example:443");
  EXPECT_EQ(Origin("https://hub.example:443/"), Origin("https://hub.example"));
  EXPECT_NE(Origin("https://hub.example"), Origin("http://hub.example:443"));
  EXPECT_NE(Origin("https://hub.example"), Origin("https://hub.example.evil"));
  EXPECT_EQ(Origin("https://user@hub.example/"), "https://hub.example:443");
  EXPECT_EQ(Origin("ftp://hub.example"), "");
  EXPECT_EQ(Origin("file:///etc/passwd"), "");
  EXPECT_EQ(Origin(""), "");
}

}  // namespace
}  // namespace vivace::hub
