// The corpus of bad and good files handed to the project: each gets the verdict and the reason its
// manifest gives. Files that only a model or tokenizer loader refuses must pass here.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "formats/file_kind.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "support/paths.h"

namespace vivace::formats {
namespace {

namespace fs = std::filesystem;

std::optional<boost::json::array> Cases(const fs::path& corpus) {
  std::ifstream file(corpus / "manifest.json");
  if (!file) return std::nullopt;
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return boost::json::parse(text).at("cases").as_array();
}

std::string Verdict(const std::string& path, bool gguf) {
  if (gguf) {
    auto file = GgufFile::Open(path);
    return file ? "" : file.error().reason;
  }
  auto file = SafetensorsFile::Open(path);
  return file ? "" : file.error().reason;
}

TEST(BadFiles, GetTheManifestsVerdict) {
  const fs::path corpus = fs::path(vivace::testing::SourceDir()) / "../shared/cases/bad";
  const auto cases = Cases(corpus);
  if (!cases) GTEST_SKIP() << "the corpus is not on this machine: " << corpus;
  int checked = 0;
  for (const auto& c : *cases) {
    const std::string name(c.at("name").as_string());
    const bool gguf = name.ends_with(".gguf");
    if (!gguf && !name.ends_with(".safetensors")) continue;
    const std::string path = (corpus / name).string();
    const bool rejects = c.at("expect").as_string() == "reject";
    const std::string wanted = rejects ? std::string(c.at("reason").as_string()) : "";
    EXPECT_EQ(Verdict(path, gguf), wanted) << name;
    ++checked;
  }
  EXPECT_GE(checked, 50);
}

TEST(BadFiles, KindsAreTold) {
  const fs::path corpus = fs::path(vivace::testing::SourceDir()) / "../shared/cases/bad";
  if (!fs::exists(corpus)) GTEST_SKIP() << "the corpus is not on this machine: " << corpus;
  const auto kind = [&](const char* name) { return *DetectFileKind((corpus / name).string()); };
  EXPECT_EQ(kind("gguf/control_mini.gguf"), FileKind::kGguf);
  EXPECT_EQ(kind("gguf/bad_magic.gguf"), FileKind::kGguf);  // by its name
  EXPECT_EQ(kind("safetensors/control.safetensors"), FileKind::kSafetensors);
  EXPECT_EQ(kind("manifest.json"), FileKind::kTokenizerJson);
}

}  // namespace
}  // namespace vivace::formats
