#include "formats/safetensors.h"

#include <algorithm>

#include "base/limits.h"
#include "formats/byte_cursor.h"
#include "formats/safetensors_header.h"
#include "formats/untrusted.h"

namespace vivace::formats {
namespace {

// The types of the format's specification, 0.7. Sub-byte types pack without padding.
constexpr SafetensorsType kTypes[] = {
    {"F32", 32, DType::kF32},         {"BF16", 16, DType::kBF16},
    {"F16", 16, DType::kF16},         {"F64", 64, std::nullopt},
    {"I64", 64, std::nullopt},        {"U64", 64, std::nullopt},
    {"I32", 32, std::nullopt},        {"U32", 32, std::nullopt},
    {"I16", 16, std::nullopt},        {"U16", 16, std::nullopt},
    {"I8", 8, std::nullopt},          {"U8", 8, std::nullopt},
    {"BOOL", 8, std::nullopt},        {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt},     {"F8_E8M0", 8, std::nullopt},
    {"F8_E4M3FNUZ", 8, std::nullopt}, {"F8_E5M2FNUZ", 8, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},     {"F6_E3M2", 6, std::nullopt},
    {"F4", 4, std::nullopt},          {"C64", 64, std::nullopt},
};

const SafetensorsType* FindType(std::string_view name) {
  const auto* found = std::ranges::find(kTypes, name, &SafetensorsType::name);
  return found == std::end(kTypes) ? nullptr : found;
}

template <typename... Args>
tl::unexpected<Error> Corrupt(std::string slug, std::string_view field,
                              fmt::format_string<Args...> format, Args&&... args) {
  return Fail(ErrorCode::kCorruptData, std::move(slug), std::string(field), format,
              std::forward<Args>(args)...);
}

// The header's text and the data after it.
struct Parts {
  std::string_view header;
  std::span<const std::byte> data;
};

Result<Parts> Split(std::span<const std::byte> bytes) {
  ByteCursor cursor(bytes);
  const auto length = cursor.Read<uint64_t>();
  if (!length) {
    return Corrupt("truncated", "", "the file has {} bytes, not even a header length",
                   bytes.size());
  }
  if (*length > limits::kMaxSafetensorsHeaderBytes) {
    return Corrupt("header_limit", "", "a header of {} bytes, over the limit of {}", *length,
                   limits::kMaxSafetensorsHeaderBytes);
  }
  const auto header = cursor.Take(*length);
  if (!header) {
    return Corrupt("header_limit", "",
                   "a header of {} bytes, but the file has {}: it is cut or damaged", *length,
                   bytes.size());
  }
  return Parts{{reinterpret_cast<const char*>(header->data()), header->size()},
               bytes.subspan(cursor.position())};
}

// Bytes that `type` and `shape` ask for.
Result<uint64_t> SizeOf(const SafetensorsTensor& tensor) {
  // A zero makes the tensor empty, but the other sizes must still be sane.
  std::optional<uint64_t> bits = tensor.type->bits;
  bool empty = false;
  for (const uint64_t dim : tensor.shape) {
    empty |= dim == 0;
    if (bits && dim != 0) bits = CheckedMul(*bits, dim);
  }
  if (!bits) return Corrupt("size_overflow", tensor.name, "its shape is larger than any file");
  if (empty) return 0;
  if (*bits % 8 != 0) {
    return Corrupt("bad_shape", tensor.name, "{} {} values do not fill whole bytes",
                   *bits / tensor.type->bits, tensor.type->name);
  }
  return *bits / 8;
}

Result<SafetensorsTensor> MakeTensor(SafetensorsEntry& entry, std::span<const std::byte> data) {
  SafetensorsTensor tensor;
  tensor.name = std::move(entry.name);
  tensor.shape = std::move(entry.shape);
  tensor.type = FindType(entry.dtype);
  if (!tensor.type) {
    return Corrupt("bad_dtype", tensor.name, "unknown dtype {}", Printable(entry.dtype));
  }
  VIVACE_ASSIGN(const uint64_t bytes, SizeOf(tensor));
  if (entry.begin > entry.end) {
    return Corrupt("bad_offsets", tensor.name, "begins at {}, after its end at {}", entry.begin,
                   entry.end);
  }
  if (entry.end > data.size()) {
    return Corrupt("tensor_out_of_file", tensor.name,
                   "ends at {}, the file has {} bytes of tensor data: it is cut or damaged",
                   entry.end, data.size());
  }
  if (entry.end - entry.begin != bytes) {
    return Corrupt("bad_offsets", tensor.name, "spans {} bytes, its shape and dtype need {}",
                   entry.end - entry.begin, bytes);
  }
  tensor.data = data.subspan(entry.begin, bytes);
  return tensor;
}

// The tensors, in some order, cover the data exactly.
Status CheckCover(const std::vector<SafetensorsTensor>& tensors, std::span<const std::byte> data) {
  std::vector<const SafetensorsTensor*> order;
  order.reserve(tensors.size());
  for (const auto& tensor : tensors) order.push_back(&tensor);
  std::ranges::sort(order, {}, [](const SafetensorsTensor* t) {
    return std::pair(t->data.data(), t->data.size());
  });
  const std::byte* at = data.data();
  for (const SafetensorsTensor* tensor : order) {
    if (tensor->data.data() < at) {
      return Corrupt("tensor_overlap", tensor->name, "shares bytes with another tensor");
    }
    if (tensor->data.data() > at) {
      return Corrupt("bad_offsets", tensor->name, "leaves {} unused bytes before it",
                     tensor->data.data() - at);
    }
    at += tensor->data.size();
  }
  const auto unused = data.data() + data.size() - at;
  if (unused != 0) return Corrupt("bad_offsets", "", "{} bytes after the last tensor", unused);
  return {};
}

Status CheckMetadataKeys(const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::vector<std::string_view> keys;
  keys.reserve(metadata.size());
  for (const auto& [key, value] : metadata) keys.push_back(key);
  std::ranges::sort(keys);
  const auto twice = std::ranges::adjacent_find(keys);
  if (twice != keys.end()) return Corrupt("duplicate_key", *twice, "is in the metadata twice");
  return {};
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  VIVACE_ASSIGN(MappedFile mapping, MappedFile::Open(path));
  VIVACE_ASSIGN(SafetensorsFile file, Parse(mapping.bytes(), path));
  file.mapping_ = std::move(mapping);
  return file;
}

Result<SafetensorsFile> SafetensorsFile::Parse(std::span<const std::byte> bytes, std::string name) {
  SafetensorsFile file;
  file.bytes_ = bytes;
  file.path_ = std::move(name);
  if (auto status = file.Read(); !status) {
    Error& error = status.error();
    return FileFault(error.code, std::move(error.reason), file.path_, error.field, error.message);
  }
  return file;
}

Status SafetensorsFile::Read() {
  VIVACE_ASSIGN(const Parts parts, Split(bytes_));
  VIVACE_ASSIGN(SafetensorsHeader header, ParseSafetensorsHeader(parts.header));
  metadata_ = std::move(header.metadata);
  VIVACE_RETURN_IF_ERROR(CheckMetadataKeys(metadata_));
  tensors_.reserve(header.entries.size());
  for (auto& entry : header.entries) {
    VIVACE_ASSIGN(SafetensorsTensor tensor, MakeTensor(entry, parts.data));
    tensors_.push_back(std::move(tensor));
  }
  std::ranges::sort(tensors_, {}, &SafetensorsTensor::name);
  const auto twice = std::ranges::adjacent_find(tensors_, {}, &SafetensorsTensor::name);
  if (twice != tensors_.end()) {
    return Corrupt("duplicate_tensor", twice->name, "is in the header twice");
  }
  return CheckCover(tensors_, parts.data);
}

const SafetensorsTensor* SafetensorsFile::FindTensor(std::string_view name) const {
  const auto found = std::ranges::lower_bound(
      tensors_, name, {}, [](const SafetensorsTensor& t) -> std::string_view { return t.name; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

}  // namespace vivace::formats
