#include "base/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace vivace {
namespace {

namespace fs = std::filesystem;

class OutputFile : public ::testing::Test {
 protected:
  OutputFile()
      : folder_(fs::temp_directory_path() / ("vivace_output_" + std::to_string(getpid()))) {
    fs::create_directory(folder_);
  }
  ~OutputFile() override { fs::remove_all(folder_); }

  std::string Path(const char* name) const { return (folder_ / name).string(); }
  std::string Read(const char* name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const fs::path folder_;
};

TEST_F(OutputFile, ReplacesTheWholeAndLeavesNothingElse) {
  ASSERT_TRUE(WriteOutput(Path("a"), "a long text"));
  ASSERT_TRUE(WriteOutput(Path("a"), "short"));
  EXPECT_EQ(Read("a"), "short");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(OutputFile, AFileThatIsReadKeepsItsText) {
  ASSERT_TRUE(WriteOutput(Path("a"), "before"));
  std::ifstream reader(Path("a"));
  ASSERT_TRUE(WriteOutput(Path("a"), "after"));
  std::string text;
  reader >> text;
  EXPECT_EQ(text, "before");
}

TEST_F(OutputFile, ALinkStaysOneAndAPipeIsWrittenTo) {
  ASSERT_TRUE(WriteOutput(Path("a"), "before"));
  fs::create_symlink("a", folder_ / "link");
  ASSERT_TRUE(WriteOutput(Path("link"), "after"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(Read("a"), "after");
  EXPECT_TRUE(WriteOutput("/dev/null", "text"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFile, TwoOutputsAreTwoFiles) {
  EXPECT_TRUE(CheckOutputPaths({Path("a"), "", Path("b"), ""}));
  EXPECT_TRUE(CheckOutputPaths({"/dev/null", "/dev/null"}));
  EXPECT_FALSE(CheckOutputPaths({Path("a"), "", Path("a")}));
  EXPECT_FALSE(CheckOutputPaths({Path("a"), (folder_ / "." / "a").string()}));
  ASSERT_TRUE(WriteOutput(Path("a"), "text"));
  fs::create_symlink("a", folder_ / "link");
  EXPECT_FALSE(CheckOutputPaths({Path("link"), Path("a")}));
  const auto no_folder = CheckOutputPaths({Path("a"), Path("none/b")});
  ASSERT_FALSE(no_folder);
  EXPECT_THAT(no_folder.error().message, ::testing::HasSubstr("there is no folder"));
}

TEST_F(OutputFile, SaysWhyItCannotBe) {
  for (const std::string& path : {Path("no/where"), folder_.string()}) {
    EXPECT_THAT(WriteOutput(path, "x").error().message, ::testing::HasSubstr("cannot be written"));
    EXPECT_FALSE(CheckOutputPath(path));
  }
}

}  // namespace
}  // namespace vivace
