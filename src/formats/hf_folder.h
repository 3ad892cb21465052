// A model as Hugging Face stores it: a folder of config.json, generation_config.json and the
// weights, in one safetensors file or in shards with an index. Untrusted bytes in, checked views
// out: every shard is there and sound, every tensor is where the index says, none is there twice.
//
// What the configuration means is not known here (model/), nor are tokenizer files (text/). No
// tensor data is read. Cost: linear in the headers and the index. Immutable after Open; any thread;
// views live as long as the folder object (moves are fine).
#pragma once

#include <boost/json/object.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/safetensors.h"

namespace vivace::formats {

class HfFolder {
 public:
  // A folder, or a .safetensors or .safetensors.index.json file in one. Of a folder with both kinds
  // of weights the single file counts, as in transformers.
  static Result<HfFolder> Open(const std::string& path);
  // True if Open is what reads `path`: a folder, or a file of one of those names.
  static bool Recognises(const std::string& path);

  const std::string& folder() const { return folder_; }
  std::string PathOf(std::string_view file) const;  // of a file in it, there or not
  bool HasFile(std::string_view file) const;

  const boost::json::object& config() const { return config_; }
  const boost::json::object& generation_config() const { return generation_config_; }  // or empty
  std::string config_path() const { return PathOf("config.json"); }

  std::span<const SafetensorsFile> shards() const { return shards_; }
  struct Tensor {
    const SafetensorsTensor* tensor = nullptr;  // null: no such tensor
    size_t shard = 0;
  };
  Tensor FindTensor(std::string_view name) const;

 private:
  HfFolder() = default;
  Status OpenWeights(const std::string& file);
  Status OpenShards(const std::string& index_path);
  Status IndexTensors();

  std::string folder_;
  boost::json::object config_;
  boost::json::object generation_config_;
  std::vector<SafetensorsFile> shards_;
  struct Place {
    std::string_view name;  // in its shard's table
    uint32_t shard;
    uint32_t index;
  };
  std::vector<Place> places_;  // sorted by name
};

}  // namespace vivace::formats
