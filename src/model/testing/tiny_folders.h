// The small models beside the sources, for tests that open them with a changed configuration.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "model/loaded_model.h"
#include "support/paths.h"

namespace vivace::model {

namespace fs = std::filesystem;
namespace json = boost::json;

inline const fs::path kTiny = fs::path(vivace::testing::SourceDir()) / "../shared/models/tiny";

inline std::string ReadAll(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A copy of a model's folder (its weights linked) with a configuration of our own.
class Copy {
 public:
  Copy(const std::string& name, const json::object& config)
      : path_(fs::path(::testing::TempDir()) / ("vivace_recipes_" + name)) {
    fs::remove_all(path_);
    fs::create_directories(path_);
    fs::create_symlink(fs::canonical(kTiny / name / "model.safetensors"),
                       path_ / "model.safetensors");
    std::ofstream(path_ / "config.json") << json::serialize(config);
  }
  ~Copy() { fs::remove_all(path_); }
  Result<ModelFile> Open() const { return OpenModel(path_.string()); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline json::object Config(const std::string& name, const char* file = "config.json") {
  return json::parse(ReadAll(kTiny / name / file)).as_object();
}

// The model with a changed configuration: what is wrong with it, or "".
inline std::string FaultAfter(const std::string& name,
                              const std::function<void(json::object&)>& change) {
  json::object config = Config(name);
  change(config);
  const auto model = Copy(name, config).Open();
  return model ? "" : model.error().reason + " " + model.error().field;
}

inline ModelSpec SpecAfter(const std::string& name,
                           const std::function<void(json::object&)>& change) {
  json::object config = Config(name);
  change(config);
  auto model = Copy(name, config).Open();
  EXPECT_TRUE(model) << model.error().message;
  return model ? model->spec() : ModelSpec{};
}

class TinyFolders : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kTiny)) GTEST_SKIP() << "the models are not on this machine: " << kTiny;
  }
};

}  // namespace vivace::model
