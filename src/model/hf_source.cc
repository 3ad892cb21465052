#include "model/hf_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <filesystem>
#include <limits>

#include "base/json_members.h"
#include "base/limits.h"
#include "formats/untrusted.h"

namespace vivace::model {
namespace {

namespace json = boost::json;
using formats::Printable;

// Null stands for absent everywhere in these files.
const json::value* Member(const json::object* object, std::string_view name) {
  return object == nullptr ? nullptr : FindPresent(*object, name);
}

const json::object* ObjectMember(const json::object* object, std::string_view name) {
  const json::value* value = Member(object, name);
  return value == nullptr ? nullptr : value->if_object();
}

// Some files write whole numbers as 32000.0.
std::optional<int64_t> AsInt(const json::value& value) {
  if (const int64_t* number = value.if_int64()) return *number;
  const double* number = value.if_double();
  if (number == nullptr || !(*number >= -0x1p53 && *number <= 0x1p53)) return std::nullopt;
  const auto whole = static_cast<int64_t>(*number);
  if (static_cast<double>(whole) != *number) return std::nullopt;
  return whole;
}

// transformers writes what JSON has no number for as {"__float__": "Infinity"}.
std::optional<double> AsNonFinite(const json::value& value) {
  const json::value* name = Member(value.if_object(), "__float__");
  if (name == nullptr || !name->is_string()) return std::nullopt;
  const json::string& text = name->get_string();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::optional<double> AsFloat(const json::value& value) {
  if (const double* number = value.if_double()) return *number;
  if (const int64_t* number = value.if_int64()) return static_cast<double>(*number);
  if (const uint64_t* number = value.if_uint64()) return static_cast<double>(*number);
  return AsNonFinite(value);
}

// The list whose items are names; those of all other lists of flags are flags.
constexpr std::string_view kNamedLayers = "layer_types";

// What a name in a list of layer types says to a key of flags.
struct LayerType {
  std::string_view key;
  std::string_view name;
  bool flag;
};
constexpr LayerType kLayerTypes[] = {
    {kWindowLayers, "sliding_attention", true}, {kWindowLayers, "full_attention", false},
    {kRecurrentLayers, "conv", true},           {kRecurrentLayers, "linear_attention", true},
    {kRecurrentLayers, "mamba", true},          {kRecurrentLayers, "full_attention", false},
    {kRecurrentLayers, "attention", false},
};

// One item of an array of flags.
std::optional<bool> AsFlag(std::string_view key, const json::value& value) {
  if (const bool* flag = value.if_bool()) return *flag;
  if (const json::string* name = value.if_string()) {
    const auto* type = std::ranges::find_if(kLayerTypes, [&](const LayerType& row) {
      return row.key == key && row.name == std::string_view(*name);
    });
    return type == std::end(kLayerTypes) ? std::nullopt : std::optional(type->flag);
  }
  const std::optional<int64_t> number = AsInt(value);
  if (!number || *number < 0 || *number > 1) return std::nullopt;
  return *number == 1;
}

// Members that are objects, those inside of another one with its name.
struct ObjectName {
  std::string_view in;
  std::string_view name;
};
constexpr ObjectName kObjects[] = {
    {"", "quantization_config"},
    {"", "rope_scaling"},
    {"", "rope_parameters"},
    {"rope_parameters", "full_attention"},
    {"rope_parameters", "sliding_attention"},
};

// ObjectMember finds nothing in what is no object: it would pass for absent.
Status CheckObjects(const formats::HfFolder& folder) {
  for (const ObjectName& row : kObjects) {
    const json::object* outer =
        row.in.empty() ? &folder.config() : ObjectMember(&folder.config(), row.in);
    const json::value* value = Member(outer, row.name);
    if (value == nullptr || value->is_object()) continue;
    return formats::FileFault(ErrorCode::kCorruptData, "wrong_type", folder.config_path(),
                              fmt::format("{}{}{}", row.in, row.in.empty() ? "" : ".", row.name),
                              "is not an object");
  }
  return {};
}

}  // namespace

Result<std::string_view> HfArchitecture(const formats::HfFolder& folder) {
  VIVACE_RETURN_IF_ERROR(CheckObjects(folder));
  const json::object& config = folder.config();
  if (const json::object* scheme = ObjectMember(&config, "quantization_config")) {
    const json::value* method = Member(scheme, "quant_method");
    const bool named = method != nullptr && method->is_string();
    // Its experts are a pair of tensors each, which is a weight type of ours.
    if (!named || method->get_string() != "mxfp4") {
      return formats::FileFault(
          ErrorCode::kUnsupported, "unsupported_quantization", folder.config_path(),
          "quantization_config.quant_method",
          fmt::format("checkpoints quantised by {} are not supported; use the original weights, "
                      "or a GGUF file",
                      named ? Printable(method->get_string()) : "an unnamed method"));
    }
  }
  const json::value* names = Member(&config, "architectures");
  const json::array* list = names == nullptr ? nullptr : names->if_array();
  if (list == nullptr || list->empty() || !list->front().is_string()) {
    return formats::FileFault(ErrorCode::kCorruptData, "missing_key", folder.config_path(),
                              "architectures", "does not name the model's architecture");
  }
  return std::string_view(list->front().get_string());
}

HfSource::HfSource(const formats::HfFolder& folder, std::string_view architecture,
                   const HfNames& names)
    : folder_(&folder), architecture_(architecture), names_(&names) {
  // The folder's own name: config.json has none that is always there.
  std::error_code ignored;
  model_name_ = std::filesystem::weakly_canonical(folder.folder(), ignored).filename().string();
  for (const HfDefault& row : names.defaults) defaults_.emplace_back(row.value);
}

Result<int64_t> HfSource::VocabularySize() const {
  VIVACE_ASSIGN(const int64_t size, GetInt("vocab_size"));
  if (size >= 1 && size <= limits::kMaxVocab) return size;
  return KeyFault(ErrorCode::kCorruptData, "vocab_limit", "vocab_size",
                  fmt::format("is {}; 1 to {} is allowed", size, limits::kMaxVocab));
}

HfSource::Found HfSource::Look(const HfKey& row) const {
  const json::object& config = folder_->config();
  const json::object* parameters = ObjectMember(&config, "rope_parameters");
  struct Place {
    std::string_view prefix;
    const json::object* object;
  };
  const Place full = {"rope_parameters.full_attention.",
                      ObjectMember(parameters, "full_attention")};
  const Place local = {"rope_parameters.sliding_attention.",
                       ObjectMember(parameters, "sliding_attention")};
  const Place flat = {"rope_parameters.", parameters};
  const Place scaling = {"rope_scaling.", ObjectMember(&config, "rope_scaling")};
  const Place top = {"", &config};
  const auto look = [&](std::initializer_list<Place> places) -> Found {
    Found absent;  // named as the innermost object would have it
    for (const Place& place : places) {
      if (place.object == nullptr) continue;
      std::string name = fmt::format("{}{}", place.prefix, row.name);
      if (const json::value* value = Member(place.object, row.name)) return {name, value};
      absent.is_null |= place.object->contains(row.name);
      if (absent.name.empty()) absent.name = std::move(name);
    }
    if (absent.name.empty()) absent.name = row.name;
    return absent;
  };
  if (row.place == KeyPlace::kTop) return look({top});
  if (row.place == KeyPlace::kLocalRope) return look({local});
  return look({full, flat, scaling, top});
}

HfSource::Found HfSource::Find(std::string_view key) const {
  Found found = FindInFile(key);
  if (found.value != nullptr) return found;
  for (size_t i = 0; i < defaults_.size(); ++i) {
    const HfDefault& row = names_->defaults[i];
    if (row.key == key && !(found.is_null && row.null_is_none)) found.value = &defaults_[i];
  }
  return found;
}

HfSource::Found HfSource::FindInFile(std::string_view key) const {
  Found absent;
  for (const std::span<const HfKey> table : {names_->keys, StandardKeys()}) {
    for (const HfKey& row : table) {
      if (row.key != key) continue;
      if (row.name.empty()) return {std::string(key), nullptr};
      Found found = Look(row);
      if (found.value != nullptr) return found;
      const bool is_null = absent.is_null || found.is_null;
      if (absent.name.empty()) absent = std::move(found);
      absent.is_null = is_null;
    }
  }
  if (absent.name.empty()) absent.name = key;
  return absent;
}

Result<const json::value*> HfSource::Need(std::string_view key) const {
  const Found found = Find(key);
  if (found.value != nullptr) return found.value;
  return KeyFault(ErrorCode::kCorruptData, "missing_key", key, "the file has no such key");
}

tl::unexpected<Error> HfSource::WrongType(std::string_view key, std::string_view wanted) const {
  return KeyFault(ErrorCode::kCorruptData, "wrong_type", key, fmt::format("is not {}", wanted));
}

Result<int64_t> HfSource::GetInt(std::string_view key) const {
  VIVACE_ASSIGN(const json::value* value, Need(key));
  if (const auto number = AsInt(*value)) return *number;
  return WrongType(key, "a whole number");
}

Result<double> HfSource::GetFloat(std::string_view key) const {
  VIVACE_ASSIGN(const json::value* value, Need(key));
  if (const auto number = AsFloat(*value)) return *number;
  return WrongType(key, "a number");
}

Result<std::string_view> HfSource::GetString(std::string_view key) const {
  VIVACE_ASSIGN(const json::value* value, Need(key));
  if (const json::string* text = value->if_string()) return std::string_view(*text);
  return WrongType(key, "a string");
}

Result<bool> HfSource::GetBool(std::string_view key) const {
  VIVACE_ASSIGN(const json::value* value, Need(key));
  if (const bool* flag = value->if_bool()) return *flag;
  return WrongType(key, "true or false");
}

Result<std::vector<bool>> HfSource::GetFlags(std::string_view key) const {
  VIVACE_ASSIGN(const json::value* value, Need(key));
  const json::array* list = value->if_array();
  if (list == nullptr || list->size() > limits::kMaxLayers) {
    return WrongType(key, fmt::format("a list of up to {} items", limits::kMaxLayers));
  }
  const bool names = Find(key).name == kNamedLayers;
  const std::string_view wanted = names ? "a list of names of layer types" : "a list of flags";
  std::vector<bool> flags;
  for (const json::value& item : *list) {
    if (item.is_string() != names) return WrongType(key, wanted);
    const std::optional<bool> flag = AsFlag(key, item);
    if (!flag && !names) return WrongType(key, wanted);
    if (!flag) {
      return KeyFault(ErrorCode::kUnsupported, "unsupported", key,
                      fmt::format("has a layer of kind {}, which is not supported",
                                  Printable(json::serialize(item))));
    }
    flags.push_back(*flag);
  }
  return flags;
}

Result<std::vector<double>> HfSource::GetFloats(std::string_view key) const {
  VIVACE_ASSIGN(const json::value* value, Need(key));
  const json::array* list = value->if_array();
  if (list == nullptr) return WrongType(key, "a list of numbers");
  std::vector<double> numbers;
  for (const json::value& item : *list) {
    const std::optional<double> number = AsFloat(item);
    if (!number) return WrongType(key, "a list of numbers");
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<SourceTensor> HfSource::Tensor(std::string_view name) const {
  const formats::SafetensorsTensor* tensor = folder_->FindTensor(HfTensor(*names_, name)).tensor;
  if (tensor == nullptr) return std::nullopt;
  return SourceTensor{tensor->name, tensor->type->name, tensor->type->dtype, tensor->shape,
                      tensor->data};
}

std::vector<std::string_view> HfSource::TensorNames() const {
  std::vector<std::string_view> names;
  for (const formats::SafetensorsFile& shard : folder_->shards()) {
    for (const formats::SafetensorsTensor& tensor : shard.tensors()) {
      // Old checkpoints hold frequencies that follow from the configuration.
      if (!tensor.name.ends_with(".rotary_emb.inv_freq")) names.push_back(tensor.name);
    }
  }
  return names;
}

tl::unexpected<Error> HfSource::KeyFault(ErrorCode code, std::string slug, std::string_view key,
                                         std::string text) const {
  return formats::FileFault(code, std::move(slug), folder_->config_path(), Find(key).name, text);
}

tl::unexpected<Error> HfSource::TensorFault(ErrorCode code, std::string slug, std::string_view name,
                                            std::string text) const {
  const std::string file_name = HfTensor(*names_, name);
  const formats::HfFolder::Tensor found = folder_->FindTensor(file_name);
  const std::string& file =
      found.tensor != nullptr ? folder_->shards()[found.shard].path() : folder_->folder();
  return formats::FileFault(code, std::move(slug), file, file_name, text);
}

}  // namespace vivace::model
