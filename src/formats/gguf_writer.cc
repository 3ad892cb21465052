#include "formats/gguf_writer.h"

#include <algorithm>
#include <fstream>
#include <type_traits>

namespace vivace::formats {
namespace {

template <typename T>
void Put(std::string& out, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void PutString(std::string& out, std::string_view text) {
  Put<uint64_t>(out, text.size());
  out.append(text);
}

template <typename T>
std::string Scalar(GgufType type, T value) {
  std::string out;
  Put(out, type);
  Put(out, value);
  return out;
}

std::string ArrayHead(GgufType item, uint64_t count) {
  std::string out;
  Put(out, GgufType::kArray);
  Put(out, item);
  Put(out, count);
  return out;
}

template <typename T>
std::string Numbers(GgufType item, std::span<const T> values) {
  std::string out = ArrayHead(item, values.size());
  for (const T value : values) Put(out, value);
  return out;
}

void Pad(std::string& out, uint64_t alignment) {
  out.resize((out.size() + alignment - 1) / alignment * alignment, '\0');
}

}  // namespace

void GgufWriter::SetString(std::string_view key, std::string_view value) {
  std::string out;
  Put(out, GgufType::kString);
  PutString(out, value);
  Set(key, std::move(out));
}

void GgufWriter::SetU32(std::string_view key, uint32_t v) { Set(key, Scalar(GgufType::kU32, v)); }
void GgufWriter::SetU64(std::string_view key, uint64_t v) { Set(key, Scalar(GgufType::kU64, v)); }
void GgufWriter::SetFloat(std::string_view key, float v) { Set(key, Scalar(GgufType::kF32, v)); }
void GgufWriter::SetBool(std::string_view key, bool v) {
  Set(key, Scalar(GgufType::kBool, static_cast<uint8_t>(v)));
}

void GgufWriter::SetStrings(std::string_view key, std::span<const std::string> values) {
  std::string out = ArrayHead(GgufType::kString, values.size());
  for (const std::string& value : values) PutString(out, value);
  Set(key, std::move(out));
}

void GgufWriter::SetInts(std::string_view key, std::span<const int32_t> values) {
  Set(key, Numbers(GgufType::kI32, values));
}

void GgufWriter::SetFloats(std::string_view key, std::span<const float> values) {
  Set(key, Numbers(GgufType::kF32, values));
}

void GgufWriter::Set(std::string_view key, std::string value) {
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found != entries_.end()) {
    found->value = std::move(value);
  } else {
    entries_.push_back({std::string(key), std::move(value)});
  }
}

void GgufWriter::Remove(std::string_view key) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.key == key; });
}

bool GgufWriter::Has(std::string_view key) const {
  return std::ranges::find(entries_, key, &Entry::key) != entries_.end();
}

GgufWriter::Tensor* GgufWriter::FindTensor(std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &Tensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

void GgufWriter::RemoveTensor(std::string_view name) {
  std::erase_if(tensors, [&](const Tensor& tensor) { return tensor.name == name; });
}

std::vector<std::byte> GgufWriter::Build() const {
  constexpr uint64_t kDefaultAlignment = 32;
  std::vector<Entry> entries = entries_;
  if (alignment != kDefaultAlignment) {
    entries.push_back(
        {"general.alignment", Scalar(GgufType::kU32, static_cast<uint32_t>(alignment))});
  }
  std::string out = "GGUF";
  Put(out, version);
  Put<uint64_t>(out, tensors.size());
  Put<uint64_t>(out, entries.size());
  for (const Entry& entry : entries) {
    PutString(out, entry.key);
    out += entry.value;
  }
  std::string data;
  for (const Tensor& tensor : tensors) {
    Pad(data, alignment);
    PutString(out, tensor.name);
    Put(out, static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) Put(out, dim);
    Put(out, tensor.type_id);
    Put<uint64_t>(out, data.size());
    data.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  }
  Pad(out, alignment);
  out += data;
  const auto bytes = std::as_bytes(std::span(out));
  return {bytes.begin(), bytes.end()};
}

bool GgufWriter::WriteFile(const std::string& path) const {
  const std::vector<std::byte> bytes = Build();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return file.good();
}

}  // namespace vivace::formats
