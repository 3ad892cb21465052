#include "formats/gguf_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "formats/tiny_llama.h"

namespace vivace::formats {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A model in three parts, as llama-gguf-split makes them: metadata in the first.
class GgufParts : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    GgufWriter whole = MakeTinyLlama();
    tensors_ = whole.tensors.size();
    parts_.assign(3, GgufWriter{});
    parts_[0] = whole;
    parts_[0].tensors.clear();
    for (size_t i = 0; i < tensors_; ++i) {
      parts_[1 + i % 2].tensors.push_back(std::move(whole.tensors[i]));
    }
    for (uint32_t i = 0; i < 3; ++i) {
      parts_[i].SetU32("split.no", i);
      parts_[i].SetU32("split.count", 3);
      parts_[i].SetU32("split.tensors.count", static_cast<uint32_t>(tensors_));
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Name(int i) const {
    return (folder_ / fmt::format("m-{:05}-of-00003.gguf", i + 1)).string();
  }
  std::string Fault() {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(parts_[static_cast<size_t>(i)].WriteFile(Name(i)));
    const auto parts = OpenGgufParts(Name(0));
    return parts ? "" : parts.error().reason + " " + parts.error().field;
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "vivace_gguf_parts_test";
  std::vector<GgufWriter> parts_;
  size_t tensors_ = 0;
};

TEST_F(GgufParts, OpenTogether) {
  ASSERT_EQ(Fault(), "");
  const auto parts = OpenGgufParts(Name(0));
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->size(), 3u);
  EXPECT_EQ((*parts)[1].tensors().size() + (*parts)[2].tensors().size(), tensors_);
}

TEST_F(GgufParts, NotTheFirst) {
  ASSERT_EQ(Fault(), "");
  const auto parts = OpenGgufParts(Name(1));
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().reason, "bad_split");
  EXPECT_THAT(parts.error().message, HasSubstr("part 2 of 3"));
}

TEST_F(GgufParts, DisagreeingParts) {
  parts_[1].SetU32("split.no", 2);
  EXPECT_EQ(Fault(), "bad_split split.no");
  parts_[1].SetU32("split.no", 1);
  parts_[2].SetU32("split.count", 4);
  EXPECT_EQ(Fault(), "bad_split split.count");
  parts_[2].SetU32("split.count", 3);
  parts_[0].SetU32("split.tensors.count", 5);
  EXPECT_EQ(Fault(), "bad_split split.tensors.count");
  parts_[0].SetU32("split.tensors.count", static_cast<uint32_t>(tensors_));
  parts_[0].SetU32("split.count", 1'000'000);
  EXPECT_EQ(Fault(), "bad_split split.count");
}

TEST_F(GgufParts, OfAnotherArchitecture) {
  parts_[2].SetString("general.architecture", "llama");
  EXPECT_EQ(Fault(), "");
  parts_[2].SetString("general.architecture", "qwen2");
  EXPECT_EQ(Fault(), "bad_split general.architecture");
  parts_[2].SetU32("general.architecture", 1);
  EXPECT_EQ(Fault(), "wrong_type general.architecture");
}

TEST_F(GgufParts, ATensorInTwo) {
  parts_[1].tensors[0] = parts_[2].tensors[0];
  EXPECT_EQ(Fault(), "duplicate_tensor " + parts_[2].tensors[0].name);
}

TEST_F(GgufParts, MissingOrMisnamed) {
  ASSERT_EQ(Fault(), "");
  fs::remove(Name(2));
  auto parts = OpenGgufParts(Name(0));
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().reason, "missing_part");
  EXPECT_THAT(parts.error().message, HasSubstr("m-00003-of-00003.gguf"));
  const std::string other = (folder_ / "other.gguf").string();
  ASSERT_TRUE(parts_[0].WriteFile(other));
  parts = OpenGgufParts(other);
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().reason, "bad_split");
}

TEST_F(GgufParts, OneFileIsOnePart) {
  const std::string path = (folder_ / "one.gguf").string();
  ASSERT_TRUE(MakeTinyLlama().WriteFile(path));
  const auto parts = OpenGgufParts(path);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->size(), 1u);
}

}  // namespace
}  // namespace vivace::formats
