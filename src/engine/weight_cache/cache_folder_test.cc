#include "engine/weight_cache/cache_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "engine/testing/temp_folder.h"
#include "engine/weight_cache/entry_file.h"

namespace vivace::weight_cache {
namespace {

namespace fs = std::filesystem;

class CacheFolderTest : public ::testing::Test {
 protected:
  std::string At(const std::string& name) const { return folder_.path() + "/" + name; }
  static std::string EntryName(const std::string& model) {
    return model + "-0123456789abcdef-x86.weights";
  }
  // A file of `bytes`, last used `age` hours ago.
  std::string Make(const std::string& name, size_t bytes, int age) const {
    std::ofstream(At(name)) << std::string(bytes, 'x');
    fs::last_write_time(At(name), fs::file_time_type::clock::now() - std::chrono::hours(age));
    return At(name);
  }

  const testing::TempFolder folder_;
};

TEST_F(CacheFolderTest, AModelFileAndLayoutNameAnEntry) {
  const std::string model = Make("My model!.gguf", 1, 0);
  const std::string path = EntryPath("/c", model, Layout::kX86);
  EXPECT_TRUE(path.starts_with("/c/My_model_-")) << path;
  EXPECT_TRUE(path.ends_with("-x86.weights")) << path;
  EXPECT_NE(EntryPath("/c", model, Layout::kReference), path);
  EXPECT_NE(EntryPath("/c", Make("other.gguf", 1, 0), Layout::kX86), path);
  // The same file under another name of it.
  fs::create_symlink(model, At("link.gguf"));
  EXPECT_EQ(EntryPath("/c", At("link.gguf"), Layout::kX86), path);
  EXPECT_EQ(EntryPath("/c", At("./My model!.gguf"), Layout::kX86), path);
  // Long names stay within what a file system takes.
  EXPECT_LT(
      fs::path(EntryPath("/c", At(std::string(250, 'a')), Layout::kX86)).filename().native().size(),
      200u);
}

TEST_F(CacheFolderTest, MakesTheFolderForThisUserOnly) {
  const std::string folder = At("a/b/vivace");
  ASSERT_TRUE(MakeRoom(folder, folder + "/m.weights", 10, 100));
  struct stat info;
  ASSERT_EQ(::stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  ASSERT_TRUE(MakeRoom(folder, folder + "/m.weights", 10, 100));
  ASSERT_EQ(::stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0755u) << "what the user made stays as it is";
}

TEST_F(CacheFolderTest, TheLeastRecentlyUsedGoFirst) {
  const std::string old = Make(EntryName("old"), 40, 3);
  const std::string older = Make("older-0123456789abcdef-reference.weights", 40, 9);
  const std::string newer = Make(EntryName("new"), 40, 1);
  const std::string entry = Make(EntryName("m"), 90, 20);  // to be replaced: does not count
  ASSERT_TRUE(MakeRoom(folder_.path(), entry, 80, 200));
  EXPECT_TRUE(fs::exists(older)) << "200 is the limit itself";
  ASSERT_TRUE(MakeRoom(folder_.path(), entry, 81, 200));
  EXPECT_FALSE(fs::exists(older));
  EXPECT_TRUE(fs::exists(old));
  ASSERT_TRUE(MakeRoom(folder_.path(), entry, 200, 200));
  EXPECT_FALSE(fs::exists(old) || fs::exists(newer));
  EXPECT_TRUE(fs::exists(entry));
}

// The folder may be any of the user's, and others name their files so as well.
TEST_F(CacheFolderTest, WhatIsNotOursStays) {
  const char* const names[] = {"notes.txt",
                               "yolov3.weights",
                               "yolov3.weights.tmp",
                               "net-x86.weights",
                               "-x86.weights",
                               "0123456789abcdef-x86.weights",
                               "net-0123456789ABCDEF-x86.weights",
                               "net_0123456789abcdef-x86.weights",
                               "net-0123456789abcdef-arm.weights",
                               "net-0123456789abcdef-x86.weights.bak"};
  for (const char* name : names) Make(name, 1000, 50);
  fs::create_directory(At(EntryName("folder")));
  ASSERT_TRUE(MakeRoom(folder_.path(), At(EntryName("m")), 10, 10));
  for (const char* name : names) EXPECT_TRUE(fs::exists(At(name))) << name;
  EXPECT_TRUE(fs::exists(At(EntryName("folder"))));
}

// What EntryPath makes is known again as an entry.
TEST_F(CacheFolderTest, EveryEntryMayBeRemoved) {
  for (const Layout layout : {Layout::kReference, Layout::kX86}) {
    const std::string entry = EntryPath(folder_.path(), At("a model.gguf"), layout);
    for (const std::string& path : {entry, entry + std::string(kTempSuffix)}) {
      Make(fs::path(path).filename().string(), 10, 1);
      ASSERT_TRUE(MakeRoom(folder_.path(), At(EntryName("m")), 10, 10));
      EXPECT_FALSE(fs::exists(path)) << path;
    }
  }
}

TEST_F(CacheFolderTest, WhatCannotFitChangesNothing) {
  const std::string old = Make(EntryName("old"), 40, 3);
  EXPECT_EQ(MakeRoom(folder_.path(), At("m.weights"), 201, 200).error().reason, "too_large");
  EXPECT_TRUE(fs::exists(old));
  EXPECT_EQ(MakeRoom(folder_.path(), At("m.weights"), uint64_t{1} << 60, UINT64_MAX).error().reason,
            "disk_full");
}

TEST_F(CacheFolderTest, AFolderThatCannotBeMadeIsAnError) {
  Make("file", 1, 0);
  for (const std::string& folder : {At("file"), At("file/below")}) {
    const Status room = MakeRoom(folder, folder + "/m.weights", 1, 100);
    ASSERT_FALSE(room);
    EXPECT_EQ(room.error().reason, "io_error");
    EXPECT_NE(room.error().message.find("file"), std::string::npos);
  }
}

TEST_F(CacheFolderTest, ALivingWritersFileStays) {
  const std::string dead = Make(EntryName("dead") + ".tmp", 10, 0);
  const std::string path = At(EntryName("living") + ".tmp");
  const int living = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(living, LOCK_EX), 0);
  ASSERT_TRUE(MakeRoom(folder_.path(), At("m.weights"), 1, 100));
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(path));
  ::close(living);
}

}  // namespace
}  // namespace vivace::weight_cache
