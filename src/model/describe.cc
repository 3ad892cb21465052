#include "model/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstring>
#include <filesystem>

#include "base/units.h"
#include "formats/gguf.h"
#include "formats/gguf_parts.h"
#include "formats/hf_folder.h"
#include "formats/safetensors.h"
#include "formats/untrusted.h"
#include "model/loaded_model.h"

namespace vivace::model {
namespace {

using formats::GgufEntry;
using formats::GgufType;
using formats::Printable;
namespace json = boost::json;

constexpr size_t kMaxShownBytes = 160;
constexpr uint64_t kMaxShownItems = 6;

template <typename T>
std::string NumberText(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return fmt::format("{}", value);
}

// The text of one number or bool of a fixed-size type, and its size.
struct NumberType {
  std::string (*text)(const std::byte*);
  size_t bytes;
};

std::string BoolText(const std::byte* at) { return *at == std::byte{1} ? "true" : "false"; }

// In the order of GgufType; strings and arrays have no entry.
constexpr NumberType kNumberTypes[] = {
    {NumberText<uint8_t>, 1},
    {NumberText<int8_t>, 1},
    {NumberText<uint16_t>, 2},
    {NumberText<int16_t>, 2},
    {NumberText<uint32_t>, 4},
    {NumberText<int32_t>, 4},
    {NumberText<float>, 4},
    {BoolText, 1},
    {nullptr, 0},
    {nullptr, 0},
    {NumberText<uint64_t>, 8},
    {NumberText<int64_t>, 8},
    {NumberText<double>, 8},
};

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string ArrayText(const GgufEntry& entry) {
  std::string out = fmt::format("{} items: [", entry.count);
  uint64_t shown = 0;
  const auto add = [&](std::string_view item) {
    if (shown++ > 0) out += ", ";
    out += item;
  };
  if (entry.item_type == GgufType::kString) {
    const formats::GgufStrings strings(entry.count, entry.bytes);
    for (auto it = strings.begin(); it != strings.end() && shown < kMaxShownItems; ++it) {
      add(Printable(*it, 24));
    }
  } else {
    const NumberType& type = kNumberTypes[static_cast<size_t>(entry.item_type)];
    for (uint64_t i = 0; i < std::min(entry.count, kMaxShownItems); ++i) {
      add(type.text(entry.bytes.data() + i * type.bytes));
    }
  }
  return out + (entry.count > kMaxShownItems ? ", ...]" : "]");
}

MetadataFact Fact(const GgufEntry& entry) {
  MetadataFact fact;
  fact.key = Printable(entry.key);
  fact.type = Name(entry.type);
  if (entry.type == GgufType::kArray) {
    fact.type = fmt::format("array of {}", Name(entry.item_type));
    fact.value = ArrayText(entry);
  } else if (entry.type == GgufType::kString) {
    fact.value = Printable(AsText(entry.bytes), kMaxShownBytes);
    if (entry.bytes.size() > kMaxShownBytes) {
      fact.value += fmt::format(" ({} bytes)", entry.bytes.size());
    }
  } else {
    fact.value = kNumberTypes[static_cast<size_t>(entry.type)].text(entry.bytes.data());
  }
  return fact;
}

std::string_view RopeName(RopeScaling scaling) {
  constexpr std::string_view kNames[] = {"none", "linear", "dynamic", "llama3", "yarn", "longrope"};
  return kNames[static_cast<size_t>(scaling)];
}

// Widths of the first layer of each kind.
std::string FeedForwardText(const ModelSpec& spec) {
  std::string text;
  const auto dense = std::ranges::find_if(
      spec.layers, [](const LayerSpec& layer) { return layer.mlp.dense.present(); });
  if (dense != spec.layers.end()) text = fmt::format("{}", dense->mlp.dense.ffn);
  const auto experts = std::ranges::find_if(
      spec.layers, [](const LayerSpec& layer) { return layer.mlp.moe.has_value(); });
  if (experts == spec.layers.end()) return text;
  const MoeSpec& moe = *experts->mlp.moe;
  return fmt::format("{}{}{} of {} experts, {} each", text, text.empty() ? "" : "; ",
                     moe.router.top_k, moe.router.experts, moe.experts.front().ffn);
}

std::string_view KindName(kernels::RecurrentKind kind) {
  constexpr std::string_view kNames[] = {"short convolution", "Mamba-2", "gated delta rule"};
  return kNames[static_cast<size_t>(kind)];
}

// All recurrent layers of a model are of one kind and size; empty: it has none.
std::string RecurrentText(const ModelSpec& spec) {
  const auto is = [](const LayerSpec& layer) { return layer.recurrent.has_value(); };
  const auto first = std::ranges::find_if(spec.layers, is);
  if (first == spec.layers.end()) return "";
  const kernels::RecurrentGeometry& g = first->recurrent->geometry;
  const auto count = std::ranges::count_if(spec.layers, is);
  const auto bytes = static_cast<uint64_t>(count * g.state_floats()) * sizeof(float);
  return fmt::format("{} of the layers, {}, {} a sequence", count, KindName(g.kind),
                     FormatBytes(bytes));
}

std::vector<MetadataFact> Summarise(const ModelFile& model) {
  const ModelSpec& spec = model.spec();
  const AttentionSpec& attention = spec.first_attention();
  std::vector<MetadataFact> facts;
  const auto add = [&](std::string key, std::string value) {
    facts.push_back({std::move(key), "", std::move(value)});
  };
  add("architecture", spec.architecture);
  add("name", Printable(spec.name));
  add("layers", fmt::format("{}", spec.layers.size()));
  add("hidden", fmt::format("{}", spec.hidden));
  add("heads", fmt::format("{} query, {} key/value, {} wide", attention.heads, attention.kv_heads,
                           attention.head_dim));
  if (std::string text = RecurrentText(spec); !text.empty()) add("recurrent", std::move(text));
  add("ffn", FeedForwardText(spec));
  add("vocabulary", fmt::format("{}", spec.vocab));
  add("context", fmt::format("{}", spec.context));
  add("rope",
      fmt::format("theta {}, {} dims, scaling {}", attention.rope.theta, attention.rope.dims,
                  attention.rope.freq_divisors.empty() ? RopeName(attention.rope.scaling)
                                                       : "by rope_freqs"));
  add("embeddings", spec.tied_embeddings ? "tied" : "separate");
  for (const std::string& note : spec.notes) add("note", note);
  return facts;
}

void AddTensor(Description& d, TensorFact tensor, uint64_t elements) {
  d.tensor_bytes += tensor.bytes;
  d.parameters += elements;
  auto total = std::ranges::find(d.types, tensor.type, &TypeTotal::type);
  if (total == d.types.end()) {
    total = d.types.insert(total, {tensor.type, 0, 0, tensor.supported});
  }
  ++total->tensors;
  total->bytes += tensor.bytes;
  d.tensors.push_back(std::move(tensor));
}

void Conclude(Description& d, Result<ModelFile> model) {
  if (model) {
    d.summary = Summarise(*model);
  } else {
    d.problem = std::move(model.error());
  }
}

Result<Description> DescribeGguf(const std::string& path) {
  VIVACE_ASSIGN(std::vector<formats::GgufFile> parts, formats::OpenGgufParts(path));
  Description d;
  d.format = fmt::format("GGUF v{}", parts[0].version());
  if (parts.size() > 1) d.format += fmt::format(", {} parts", parts.size());
  for (const GgufEntry& entry : parts[0].entries()) d.metadata.push_back(Fact(entry));
  for (const formats::GgufFile& part : parts) {
    d.file_bytes += part.file_bytes();
    for (const formats::GgufTensor& tensor : part.tensors()) {
      const auto& type = *tensor.type;
      AddTensor(d,
                {Printable(tensor.name),
                 std::string(type.name),
                 {tensor.dims.rend() - tensor.rank, tensor.dims.rend()},
                 tensor.data.size(),
                 type.dtype.has_value()},
                tensor.data.size() / type.block_bytes * type.block_elems);
    }
  }
  Conclude(d, CheckModel(WeightFiles(std::move(parts))));
  return d;
}

void AddSafetensors(Description& d, const formats::SafetensorsFile& file) {
  d.file_bytes += file.file_bytes();
  for (const auto& [key, value] : file.metadata()) {
    d.metadata.push_back({Printable(key), "string", Printable(value, kMaxShownBytes)});
  }
  for (const auto& tensor : file.tensors()) {
    const auto& type = *tensor.type;
    AddTensor(d,
              {Printable(tensor.name), std::string(type.name), tensor.shape, tensor.data.size(),
               type.dtype.has_value()},
              tensor.data.size() * 8 / type.bits);
  }
}

std::string_view KindName(const json::value& value) {
  constexpr std::string_view kNames[] = {"null",  "bool",   "int",   "int",
                                         "float", "string", "array", "object"};
  return kNames[static_cast<size_t>(value.kind())];
}

Result<Description> DescribeFolder(const std::string& path) {
  VIVACE_ASSIGN(formats::HfFolder folder, formats::HfFolder::Open(path));
  Description d;
  d.format = folder.shards().size() == 1
                 ? "Hugging Face folder"
                 : fmt::format("Hugging Face folder, {} shards", folder.shards().size());
  for (const auto& [key, value] : folder.config()) {
    d.metadata.push_back({Printable(key), std::string(KindName(value)),
                          Printable(json::serialize(value), kMaxShownBytes)});
  }
  for (const formats::SafetensorsFile& shard : folder.shards()) AddSafetensors(d, shard);
  Conclude(d, CheckModel(WeightFiles(std::move(folder))));
  return d;
}

// Weights without a configuration beside them.
Result<Description> DescribeSafetensors(const std::string& path, Error problem) {
  VIVACE_ASSIGN(const auto file, formats::SafetensorsFile::Open(path));
  Description d;
  d.format = "safetensors";
  AddSafetensors(d, file);
  d.problem = std::move(problem);
  return d;
}

}  // namespace

Result<Description> Describe(const std::string& path) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  auto description =
      formats::HfFolder::Recognises(path) ? DescribeFolder(path) : DescribeGguf(path);
  if (!description && !is_folder && path.ends_with(".safetensors")) {
    description = DescribeSafetensors(path, std::move(description.error()));
  }
  if (!description) return description;
  description->path = Printable(path, 1024);
  std::ranges::sort(description->types, std::greater<>(), &TypeTotal::bytes);
  return description;
}

}  // namespace vivace::model
