#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace vivace {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/mapped_file_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    ::unlink((directory_ + "/f").c_str());
    ::rmdir(directory_.c_str());
  }
  std::string Write(const std::string& text) {
    std::string path = directory_ + "/f";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string directory_;
};

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(MappedFileTest, ReadsBytesAndSurvivesMoves) {
  auto opened = MappedFile::Open(Write("hello"));
  ASSERT_TRUE(opened) << opened.error().message;
  const std::byte* data = opened->bytes().data();
  MappedFile moved = std::move(*opened);
  EXPECT_EQ(Text(moved.bytes()), "hello");
  EXPECT_EQ(moved.bytes().data(), data);
  MappedFile assigned;
  assigned = std::move(moved);
  EXPECT_EQ(Text(assigned.bytes()), "hello");
  EXPECT_TRUE(moved.bytes().empty());
}

TEST_F(MappedFileTest, NamesWhatIsWrong) {
  auto reason = [](const std::string& path) {
    auto file = MappedFile::Open(path);
    if (file) return std::string("opened");
    EXPECT_NE(file.error().message.find(path.c_str()), std::string::npos) << file.error().message;
    return file.error().reason;
  };
  EXPECT_EQ(reason(directory_ + "/none"), "not_found");
  EXPECT_EQ(reason(Write("x") + "/below"), "not_found");
  EXPECT_EQ(reason(directory_), "is_directory");
  ::unlink((directory_ + "/f").c_str());
  ASSERT_EQ(::mkfifo((directory_ + "/f").c_str(), 0600), 0);
  EXPECT_EQ(reason(directory_ + "/f"), "not_a_file");
  ::unlink((directory_ + "/f").c_str());
  if (::geteuid() != 0) {  // root may read everything
    std::string path = Write("secret");
    ASSERT_EQ(::chmod(path.c_str(), 0), 0);
    EXPECT_EQ(reason(path), "permission_denied");
  }
  EXPECT_FALSE(MappedFile::Open(std::string("a\0b", 3)));
}

TEST_F(MappedFileTest, EmptyFileHasNoBytes) {
  auto file = MappedFile::Open(Write(""));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->bytes().empty());
  file->WillNeed(file->bytes());
  EXPECT_TRUE(file->CheckUnchanged());
}

TEST_F(MappedFileTest, AdviceKeepsTheContents) {
  std::string text(3 * 65536 + 17, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  auto file = MappedFile::Open(Write(text));
  ASSERT_TRUE(file);
  const auto bytes = file->bytes();
  file->WillNeed(bytes);
  file->DontNeed(bytes.subspan(100, 100'000));
  file->DontNeed(bytes);
  EXPECT_EQ(Text(bytes), text);
  const std::byte elsewhere[8] = {};
  file->DontNeed(elsewhere);  // not ours: ignored
  EXPECT_EQ(elsewhere[0], std::byte{0});
}

TEST_F(MappedFileTest, NoticesAChange) {
  std::string path = Write("four");
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->CheckUnchanged());
  std::ofstream(path, std::ios::binary | std::ios::app) << "more";
  auto status = file->CheckUnchanged();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason, "file_changed");
}

}  // namespace
}  // namespace vivace
