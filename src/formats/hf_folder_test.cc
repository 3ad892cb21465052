#include "formats/hf_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/limits.h"
#include "formats/safetensors_writer.h"

namespace vivace::formats {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

SafetensorsWriter::Tensor Tensor(std::string name) {
  return {std::move(name), "F32", {2}, std::vector<std::byte>(8, std::byte{1})};
}

// Two shards: a and b in the first, c in the second.
class HfFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Put("config.json", R"({"architectures": ["X"], "hidden_size": 2})");
    ASSERT_TRUE((SafetensorsWriter{{Tensor("a"), Tensor("b")}}.WriteFile(folder_ / "one.st")));
    ASSERT_TRUE(SafetensorsWriter{{Tensor("c")}}.WriteFile(folder_ / "two.st"));
    Index(R"("a": "one.st", "b": "one.st", "c": "two.st")");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  void Index(const std::string& map) {
    Put("model.safetensors.index.json", R"({"metadata": {}, "weight_map": {)" + map + "}}");
  }
  std::string Fault() {
    const auto folder = HfFolder::Open(folder_);
    if (folder) return "";
    EXPECT_EQ(folder.error().message.find('\n'), std::string::npos);
    EXPECT_THAT(folder.error().message, HasSubstr(folder_.string()));
    return folder.error().reason + " " + folder.error().field;
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "vivace_hf_folder_test";
};

TEST_F(HfFolderTest, OpensShards) {
  Put("generation_config.json", R"({"eos_token_id": [1, 2]})");
  for (const fs::path& path : {folder_, folder_ / "model.safetensors.index.json"}) {
    ASSERT_TRUE(HfFolder::Recognises(path));
    auto folder = HfFolder::Open(path);
    ASSERT_TRUE(folder) << folder.error().message;
    EXPECT_EQ(folder->shards().size(), 2u);
    EXPECT_EQ(folder->FindTensor("c").shard, 1u);
    EXPECT_EQ(folder->FindTensor("d").tensor, nullptr);
    EXPECT_EQ(folder->config().at("hidden_size").as_int64(), 2);
    EXPECT_TRUE(folder->generation_config().contains("eos_token_id"));
    const HfFolder moved = std::move(*folder);
    EXPECT_EQ(moved.FindTensor("b").tensor->name, "b");
  }
}

TEST_F(HfFolderTest, OneFileGoesFirst) {
  ASSERT_TRUE(SafetensorsWriter{{Tensor("z")}}.WriteFile(folder_ / "model.safetensors"));
  auto folder = HfFolder::Open(folder_);
  ASSERT_TRUE(folder);
  EXPECT_NE(folder->FindTensor("z").tensor, nullptr);
  EXPECT_EQ(folder->FindTensor("a").tensor, nullptr);
  EXPECT_TRUE(folder->generation_config().empty());
}

TEST_F(HfFolderTest, RefusesBrokenIndexes) {
  fs::remove(folder_ / "two.st");
  EXPECT_EQ(Fault(), "missing_shard weight_map");
  Index(R"("a": "one.st", "b": "one.st", "d": "one.st")");
  EXPECT_EQ(Fault(), "missing_tensor d");
  for (const std::string name : {"../one.st", "/one.st", "x/one.st", "..", ""}) {
    Index(R"("a": ")" + name + "\"");
    EXPECT_EQ(Fault(), "bad_shard_name a") << name;
  }
  Index(R"("a": 7)");
  EXPECT_EQ(Fault(), "bad_shard_name a");
  Index("");
  EXPECT_EQ(Fault(), "bad_index weight_map");
  ASSERT_TRUE(SafetensorsWriter{{Tensor("a")}}.WriteFile(folder_ / "two.st"));
  Index(R"("a": "one.st", "b": "two.st")");
  EXPECT_EQ(Fault(), "duplicate_tensor a");
}

TEST_F(HfFolderTest, RefusesBrokenConfigurations) {
  Put("config.json", "{");
  EXPECT_EQ(Fault(), "bad_json ");
  Put("config.json", "[]");
  EXPECT_EQ(Fault(), "bad_json ");
  Put("config.json", R"({"a": 1} 2)");
  EXPECT_EQ(Fault(), "bad_json ");
  std::string deep;
  for (int i = 0; i < limits::kJsonDepth; ++i) deep += R"({"a":)";
  Put("config.json", deep + "{" + std::string(limits::kJsonDepth + 1, '}'));
  EXPECT_EQ(Fault(), "nesting_limit ");
  Put("config.json", "{\"a\": \"" + std::string(limits::kMaxConfigBytes, 'x') + "\"}");
  EXPECT_EQ(Fault(), "file_limit ");
  fs::remove(folder_ / "config.json");
  EXPECT_EQ(Fault(), "not_found ");
}

TEST_F(HfFolderTest, RefusesFoldersWithoutWeights) {
  fs::remove(folder_ / "model.safetensors.index.json");
  EXPECT_EQ(Fault(), "not_found ");
}

}  // namespace
}  // namespace vivace::formats
