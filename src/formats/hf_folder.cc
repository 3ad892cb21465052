#include "formats/hf_folder.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <map>

#include "base/limits.h"
#include "formats/json_file.h"
#include "formats/untrusted.h"

namespace vivace::formats {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::string_view kWeights = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

bool IsDirectory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// Names in an index are of files beside it: a path could leave the folder.
bool IsPlainName(std::string_view name) {
  return !name.empty() && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos &&
         name != "." && name != "..";
}

tl::unexpected<Error> Corrupt(std::string slug, std::string_view file, std::string_view field,
                              std::string_view text) {
  return FileFault(ErrorCode::kCorruptData, std::move(slug), file, field, text);
}

}  // namespace

bool HfFolder::Recognises(const std::string& path) {
  return IsDirectory(path) || path.ends_with(".safetensors") || path.ends_with(kIndexSuffix);
}

std::string HfFolder::PathOf(std::string_view file) const {
  return (fs::path(folder_) / file).string();
}

bool HfFolder::HasFile(std::string_view file) const {
  std::error_code ignored;
  return fs::exists(PathOf(file), ignored);
}

Result<HfFolder> HfFolder::Open(const std::string& path) {
  HfFolder model;
  std::string weights;
  if (IsDirectory(path)) {
    model.folder_ = path;
    weights = std::string(model.HasFile(kWeights) ? kWeights : kIndex);
    if (!model.HasFile(weights)) {
      return FileFault(
          ErrorCode::kNotFound, "not_found", path, "",
          fmt::format("the folder has neither {} nor {}", std::string(kWeights), kIndex));
    }
  } else {
    const fs::path file(path);
    model.folder_ = file.has_parent_path() ? file.parent_path().string() : ".";
    weights = file.filename().string();
  }
  VIVACE_ASSIGN(model.config_, ReadJsonObject(model.config_path(), limits::kMaxConfigBytes));
  if (model.HasFile("generation_config.json")) {
    VIVACE_ASSIGN(model.generation_config_,
                  ReadJsonObject(model.PathOf("generation_config.json"), limits::kMaxConfigBytes));
  }
  VIVACE_RETURN_IF_ERROR(model.OpenWeights(weights));
  return model;
}

Status HfFolder::OpenWeights(const std::string& file) {
  if (file.ends_with(kIndexSuffix)) return OpenShards(PathOf(file));
  VIVACE_ASSIGN(SafetensorsFile only, SafetensorsFile::Open(PathOf(file)));
  shards_.push_back(std::move(only));
  return IndexTensors();
}

Status HfFolder::OpenShards(const std::string& index_path) {
  VIVACE_ASSIGN(const json::object index, ReadJsonObject(index_path, limits::kMaxShardIndexBytes));
  const json::value* map = index.if_contains("weight_map");
  if (map == nullptr || !map->is_object() || map->get_object().empty()) {
    return Corrupt("bad_index", index_path, "weight_map", "is not an object of tensor names");
  }
  std::map<std::string, size_t, std::less<>> numbers;  // of shards, by name
  for (const auto& [tensor, shard] : map->get_object()) {
    if (!shard.is_string() || !IsPlainName(shard.get_string())) {
      return Corrupt("bad_shard_name", index_path, tensor,
                     fmt::format("is in shard {}, which is no name of a file beside the index",
                                 Printable(json::serialize(shard))));
    }
    numbers.emplace(shard.get_string(), 0);
  }
  if (numbers.size() > limits::kMaxModelParts) {
    return Corrupt("shard_limit", index_path, "weight_map",
                   fmt::format("names {} shards, over the limit of {}", numbers.size(),
                               limits::kMaxModelParts));
  }
  for (auto& [name, number] : numbers) {
    if (!HasFile(name)) {
      return FileFault(ErrorCode::kNotFound, "missing_shard", index_path, "weight_map",
                       fmt::format("the shard {} is not there", Printable(name)));
    }
    number = shards_.size();
    VIVACE_ASSIGN(SafetensorsFile shard, SafetensorsFile::Open(PathOf(name)));
    shards_.push_back(std::move(shard));
  }
  VIVACE_RETURN_IF_ERROR(IndexTensors());
  for (const auto& [tensor, shard] : map->get_object()) {
    const SafetensorsFile& file = shards_[numbers.find(shard.get_string())->second];
    if (file.FindTensor(tensor) == nullptr) {
      return Corrupt("missing_tensor", file.path(), tensor,
                     "the index says that this shard has the tensor; it has not");
    }
  }
  return {};
}

Status HfFolder::IndexTensors() {
  size_t count = 0;
  for (const SafetensorsFile& shard : shards_) count += shard.tensors().size();
  if (count > limits::kMaxTensors) {
    return Corrupt("tensor_limit", folder_, "",
                   fmt::format("has {} tensors, over the limit of {}", count, limits::kMaxTensors));
  }
  places_.reserve(count);
  for (uint32_t s = 0; s < shards_.size(); ++s) {
    const auto tensors = shards_[s].tensors();
    for (uint32_t i = 0; i < tensors.size(); ++i) places_.push_back({tensors[i].name, s, i});
  }
  std::ranges::sort(places_, {}, &Place::name);
  const auto twice = std::ranges::adjacent_find(places_, {}, &Place::name);
  if (twice != places_.end()) {
    return Corrupt("duplicate_tensor", shards_[(twice + 1)->shard].path(), twice->name,
                   fmt::format("is in {} as well", Printable(shards_[twice->shard].path(), 1024)));
  }
  return {};
}

HfFolder::Tensor HfFolder::FindTensor(std::string_view name) const {
  const auto at = std::ranges::lower_bound(places_, name, {}, &Place::name);
  if (at == places_.end() || at->name != name) return {};
  return {&shards_[at->shard].tensors()[at->index], at->shard};
}

}  // namespace vivace::formats
