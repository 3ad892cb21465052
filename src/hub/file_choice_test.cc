#include "hub/file_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vivace::hub {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

Result<Choice> Choose(const std::vector<std::string>& names, const std::string& file = "") {
  return ChooseFiles(names, {"o/n", file});
}

TEST(FileChoice, AFolderOfSafetensors) {
  const auto choice =
      Choose({".gitattributes", "README.md", "config.json", "generation_config.json",
              "model.safetensors", "tokenizer.json", "tokenizer_config.json", "merges.txt",
              "vocab.json", "chat_template.jinja", "onnx/model.onnx", "pytorch_model.bin",
              "original/model.safetensors", "consolidated.safetensors", "n-Q4_K_M.gguf"});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->model, "");
  EXPECT_THAT(choice->files,
              UnorderedElementsAre("config.json", "generation_config.json", "tokenizer.json",
                                   "tokenizer_config.json", "merges.txt", "vocab.json",
                                   "chat_template.jinja", "model.safetensors"));
  EXPECT_EQ(choice->files.back(), "model.safetensors");
}

TEST(FileChoice, Shards) {
  const std::vector<std::string> whole = {
      "model-00002-of-000003.safetensors", "config.json", "model-00001-of-000003.safetensors",
      "model.safetensors.index.json", "model-00003-of-000003.safetensors"};
  const auto choice = Choose(whole);
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_THAT(choice->files,
              ElementsAre("config.json", "model.safetensors.index.json",
                          "model-00001-of-000003.safetensors", "model-00002-of-000003.safetensors",
                          "model-00003-of-000003.safetensors"));
  for (const size_t gone : {size_t{0}, size_t{3}}) {
    std::vector<std::string> part = whole;
    part.erase(part.begin() + static_cast<ptrdiff_t>(gone));
    const auto refused = Choose(part);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason, "missing_parts");
  }
}

TEST(FileChoice, GgufByPreference) {
  const std::vector<std::string> names = {"README.md",     "config.json",   "m-Q8_0.gguf",
                                          "m-Q4_K_S.gguf", "m-Q4_K_M.gguf", "mmproj-m-Q4_K_M.gguf",
                                          "m-IQ4_NL.gguf"};
  EXPECT_EQ(Choose(names)->model, "m-Q4_K_M.gguf");
  EXPECT_EQ(Choose(names, "q8_0")->model, "m-Q8_0.gguf");
  EXPECT_EQ(Choose(names, "m-Q4_K_S.gguf")->model, "m-Q4_K_S.gguf");
  EXPECT_EQ(Choose(names, "IQ4_NL")->model, "m-IQ4_NL.gguf");
  EXPECT_EQ(Choose(names, "README.md")->model, "README.md");
  EXPECT_EQ(Choose({"m.gguf"})->model, "m.gguf");
  EXPECT_EQ(Choose({"mmproj-F16.gguf", "m-F16.gguf"})->model, "m-F16.gguf");
}

TEST(FileChoice, AsksWhereItCantTell) {
  const auto two = Choose({"a-Q4_K_M.gguf", "b-Q4_K_M.gguf"});
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().reason, "several_models");
  EXPECT_THAT(two.error().message, HasSubstr("o/n:a-Q4_K_M.gguf"));
  EXPECT_EQ(Choose({"a.gguf", "b.gguf"}).error().reason, "several_models");
  const auto none = Choose({"m-Q4_K_M.gguf"}, "Q4_K");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().reason, "no_such_file");
  EXPECT_THAT(none.error().message, HasSubstr("o/n:m-Q4_K_M.gguf"));
  EXPECT_EQ(Choose({"config.json"}, "x.gguf").error().reason, "no_such_file");
  EXPECT_EQ(Choose({"config.json", "pytorch_model.bin"}).error().reason, "no_model_files");
  EXPECT_EQ(Choose({}).error().reason, "no_model_files");
}

TEST(FileChoice, SplitGguf) {
  const std::vector<std::string> names = {"Q4_K_M/m-Q4_K_M-00002-of-00002.gguf",
                                          "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf",
                                          "Q8_0/m-Q8_0-00001-of-00003.gguf"};
  for (const char* file : {"", "Q4_K_M", "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf",
                           "Q4_K_M/m-Q4_K_M-00002-of-00002.gguf"}) {
    const auto choice = Choose(names, file);
    ASSERT_TRUE(choice) << choice.error().message;
    EXPECT_EQ(choice->model, "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf");
    EXPECT_EQ(choice->files.size(), 2u);
  }
  EXPECT_EQ(Choose(names, "Q8_0").error().reason, "missing_parts");
}

TEST(FileChoice, OddNamesAreNotThere) {
  EXPECT_EQ(Choose({"m\u00e4-Q4_K_M.gguf", "m-Q8_0.gguf"})->model, "m-Q8_0.gguf");
  EXPECT_EQ(Choose({"../m.gguf"}).error().reason, "no_model_files");
}

TEST(FileChoice, AllModels) {
  const std::vector<std::string> names = {"config.json", "model.safetensors", "a.gguf",
                                          "b-00001-of-00002.gguf"};
  const auto models = AllModels(names);
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].model, "");
  EXPECT_EQ(models[1].model, "a.gguf");
}

}  // namespace
}  // namespace vivace::hub
