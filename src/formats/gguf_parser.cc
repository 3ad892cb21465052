#include "formats/gguf_parser.h"

#include <algorithm>
#include <numeric>

#include "base/limits.h"
#include "base/utf8.h"
#include "formats/untrusted.h"

namespace vivace::formats {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMinAlignment = 8;  // the specification asks for a multiple of 8
// No tensor or sum of them can be larger; keeps every later size in int64_t.
constexpr uint64_t kMaxBytes = INT64_MAX;

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Every byte of a bool or an array of them must be 0 or 1.
bool AreBools(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b <= std::byte{1}; });
}

// Indices of `items` sorted by a name member.
template <typename Item>
std::vector<uint32_t> SortedBy(std::string_view Item::*name, const std::vector<Item>& items) {
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](uint32_t i) { return items[i].*name; });
  return order;
}

// A name that two of the sorted items share, or nothing.
template <typename Item>
const Item* FindDuplicate(std::string_view Item::*name, const std::vector<Item>& items,
                          const std::vector<uint32_t>& order) {
  const auto same = std::ranges::adjacent_find(
      order, [&](uint32_t a, uint32_t b) { return items[a].*name == items[b].*name; });
  return same == order.end() ? nullptr : &items[*same];
}

}  // namespace

uint64_t FixedSize(GgufType type) {
  // In the order of GgufType.
  constexpr uint8_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kSizes[static_cast<uint32_t>(type)];
}

Status GgufParser::Run() {
  VIVACE_RETURN_IF_ERROR(ReadHead());
  for (uint64_t i = 0; i < num_entries_; ++i) VIVACE_RETURN_IF_ERROR(ReadEntry(i));
  VIVACE_RETURN_IF_ERROR(IndexEntries());
  VIVACE_RETURN_IF_ERROR(ReadAlignment());
  for (uint64_t i = 0; i < num_tensors_; ++i) VIVACE_RETURN_IF_ERROR(ReadTensor(i));
  VIVACE_RETURN_IF_ERROR(IndexTensors());
  VIVACE_RETURN_IF_ERROR(PlaceTensors());
  return CheckOverlap();
}

// ---- head ---------------------------------------------------------------------------------------

Status GgufParser::ReadHead() {
  const auto magic = cursor_.Read<uint32_t>();
  if (!magic) return Truncated("");
  if (*magic != kMagic) {
    return Corrupt("bad_magic", "", "not a GGUF file: starts with 0x{:08x}, not \"GGUF\"", *magic);
  }
  const auto version = cursor_.Read<uint32_t>();
  if (!version) return Truncated("version");
  if (*version != 2 && *version != 3) {
    const uint32_t swapped = __builtin_bswap32(*version);
    if (swapped == 2 || swapped == 3) {
      return Corrupt("bad_version", "version", "a big-endian file; only little-endian is read");
    }
    return Corrupt("bad_version", "version", "is {}; versions 2 and 3 are read", *version);
  }
  file_.version_ = *version;
  VIVACE_RETURN_IF_ERROR(ReadCount("number of tensors", limits::kMaxTensors, num_tensors_));
  return ReadCount("number of metadata entries", limits::kMaxMetadataEntries, num_entries_);
}

Status GgufParser::ReadCount(std::string_view what, uint64_t limit, uint64_t& count) {
  const auto read = cursor_.Read<uint64_t>();
  if (!read) return Truncated(what);
  if (*read > limit)
    return Corrupt("count_limit", what, "is {}, over the limit of {}", *read, limit);
  count = *read;
  return {};
}

// ---- metadata -----------------------------------------------------------------------------------

Status GgufParser::ReadEntry(uint64_t index) {
  const std::string field = fmt::format("metadata entry {}", index);
  GgufEntry entry{};
  VIVACE_ASSIGN(entry.key, ReadString(field, limits::kMaxNameBytes));
  if (entry.key.empty()) return Corrupt("bad_key", field, "has an empty key");
  if (!utf8::IsValid(entry.key)) return Corrupt("bad_key", field, "has a key that is not UTF-8");
  VIVACE_ASSIGN(entry.type, ReadType(entry.key));
  entry.item_type = entry.type;
  VIVACE_RETURN_IF_ERROR(ReadValue(entry));
  file_.entries_.push_back(entry);
  return {};
}

Status GgufParser::ReadValue(GgufEntry& entry) {
  if (entry.type == GgufType::kArray) return ReadArray(entry);
  if (entry.type == GgufType::kString) {
    VIVACE_ASSIGN(const auto text, ReadString(entry.key, limits::kMaxMetadataStringBytes));
    entry.bytes = std::as_bytes(std::span(text));
    return {};
  }
  const auto bytes = cursor_.Take(FixedSize(entry.type));
  if (!bytes) return Truncated(entry.key);
  entry.bytes = *bytes;
  if (entry.type == GgufType::kBool && !AreBools(entry.bytes)) {
    return Corrupt("bad_bool", entry.key, "a bool must be 0 or 1, this is {}",
                   static_cast<int>(entry.bytes[0]));
  }
  return {};
}

Status GgufParser::ReadArray(GgufEntry& entry) {
  VIVACE_ASSIGN(entry.item_type, ReadType(entry.key));
  const auto count = cursor_.Read<uint64_t>();
  if (!count) return Truncated(entry.key);
  if (entry.item_type == GgufType::kArray) {
    return Corrupt("nesting_limit", entry.key, "an array of arrays, which no model uses");
  }
  if (*count > limits::kMaxMetadataArrayItems) {
    return Corrupt("array_limit", entry.key, "an array of {} items, over the limit of {}", *count,
                   limits::kMaxMetadataArrayItems);
  }
  entry.count = *count;
  if (entry.item_type == GgufType::kString) return ReadStringItems(entry);
  // Cannot wrap: both factors passed their limits.
  const auto bytes = cursor_.Take(*count * FixedSize(entry.item_type));
  if (!bytes) return Truncated(entry.key);
  entry.bytes = *bytes;
  if (entry.item_type == GgufType::kBool && !AreBools(entry.bytes)) {
    return Corrupt("bad_bool", entry.key, "a bool in the array is neither 0 nor 1");
  }
  return {};
}

Status GgufParser::ReadStringItems(GgufEntry& entry) {
  const uint64_t start = cursor_.position();
  for (uint64_t i = 0; i < entry.count; ++i) {
    VIVACE_RETURN_IF_ERROR(ReadString(entry.key, limits::kMaxMetadataStringBytes));
  }
  entry.bytes = file_.bytes_.subspan(start, cursor_.position() - start);
  return {};
}

Status GgufParser::IndexEntries() {
  file_.entries_by_key_ = SortedBy(&GgufEntry::key, file_.entries_);
  const auto* twice = FindDuplicate(&GgufEntry::key, file_.entries_, file_.entries_by_key_);
  if (twice) return Corrupt("duplicate_key", twice->key, "is in the file twice");
  return {};
}

Status GgufParser::ReadAlignment() {
  file_.alignment_ = kDefaultAlignment;
  const GgufEntry* entry = file_.Find(kAlignmentKey);
  if (!entry) return {};
  VIVACE_ASSIGN(const int64_t value, file_.GetInt(kAlignmentKey));
  const auto alignment = static_cast<uint64_t>(value);
  if (value < 0 || alignment < kMinAlignment || alignment > limits::kMaxGgufAlignment ||
      (alignment & (alignment - 1)) != 0) {
    return Corrupt("bad_alignment", kAlignmentKey, "is {}; a power of two from {} to {} is needed",
                   value, kMinAlignment, limits::kMaxGgufAlignment);
  }
  file_.alignment_ = alignment;
  return {};
}

// ---- tensors ------------------------------------------------------------------------------------

Status GgufParser::ReadTensor(uint64_t index) {
  const std::string field = fmt::format("tensor {}", index);
  GgufTensor tensor;
  VIVACE_ASSIGN(tensor.name, ReadString(field, limits::kMaxTensorNameBytes));
  if (tensor.name.empty() || !utf8::IsValid(tensor.name)) {
    return Corrupt("bad_tensor_name", field, "its name is empty or not UTF-8");
  }
  VIVACE_RETURN_IF_ERROR(ReadDims(tensor));
  const auto type = cursor_.Read<uint32_t>();
  if (!type) return Truncated(tensor.name);
  tensor.type = FindGgmlType(*type);
  if (!tensor.type) return Corrupt("bad_tensor_type", tensor.name, "unknown tensor type {}", *type);
  const auto offset = cursor_.Read<uint64_t>();
  if (!offset) return Truncated(tensor.name);
  file_.tensors_.push_back(tensor);
  offsets_.push_back(*offset);
  return {};
}

Status GgufParser::ReadDims(GgufTensor& tensor) {
  const auto rank = cursor_.Read<uint32_t>();
  if (!rank) return Truncated(tensor.name);
  if (*rank < 1 || *rank > limits::kMaxTensorRank) {
    return Corrupt("dims_limit", tensor.name, "has {} dimensions; 1 to {} are allowed", *rank,
                   limits::kMaxTensorRank);
  }
  tensor.rank = *rank;
  tensor.dims.fill(1);
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    const auto dim = cursor_.Read<uint64_t>();
    if (!dim) return Truncated(tensor.name);
    if (*dim == 0) return Corrupt("zero_dim", tensor.name, "dimension {} is 0", d);
    tensor.dims[d] = *dim;
  }
  return {};
}

Status GgufParser::IndexTensors() {
  file_.tensors_by_name_ = SortedBy(&GgufTensor::name, file_.tensors_);
  const auto* twice = FindDuplicate(&GgufTensor::name, file_.tensors_, file_.tensors_by_name_);
  if (twice) return Corrupt("duplicate_tensor", twice->name, "is in the file twice");
  return {};
}

// Bytes on disk, such that they can still be padded to the alignment without wrapping.
Result<uint64_t> GgufParser::TensorBytes(const GgufTensor& tensor) {
  const auto& type = *tensor.type;
  if (tensor.dims[0] % type.block_elems != 0) {
    return Corrupt("row_not_blocks", tensor.name, "rows of {} values are not whole {} blocks of {}",
                   tensor.dims[0], type.name, type.block_elems);
  }
  std::optional<uint64_t> elements = 1;
  for (const uint64_t dim : tensor.dims) {
    if (elements) elements = CheckedMul(*elements, dim);
  }
  auto bytes = elements ? CheckedMul(*elements / type.block_elems, type.block_bytes) : elements;
  const auto padded = bytes ? CheckedAlignUp(*bytes, file_.alignment_) : bytes;
  if (!padded || *elements > kMaxBytes || *padded > kMaxBytes) {
    return Corrupt("size_overflow", tensor.name,
                   "{} x {} x {} x {} {} values are more than any file", tensor.dims[0],
                   tensor.dims[1], tensor.dims[2], tensor.dims[3], type.name);
  }
  return *bytes;
}

Status GgufParser::PlaceTensors() {
  const auto aligned = CheckedAlignUp(cursor_.position(), file_.alignment_);
  const uint64_t file_size = file_.bytes_.size();
  const uint64_t data_start = aligned ? std::min(*aligned, file_size) : file_size;
  const auto data = file_.bytes_.subspan(data_start);
  for (size_t i = 0; i < offsets_.size(); ++i) {
    GgufTensor& tensor = file_.tensors_[i];
    const uint64_t offset = offsets_[i];
    VIVACE_ASSIGN(const uint64_t bytes, TensorBytes(tensor));
    if (offset % file_.alignment_ != 0) {
      return Corrupt("offset_misaligned", tensor.name, "offset {} is not a multiple of {}", offset,
                     file_.alignment_);
    }
    if (offset > data.size() || bytes > data.size() - offset) {
      return Corrupt("tensor_out_of_file", tensor.name,
                     "needs {} bytes at offset {}, the file has {} bytes of tensor data: it is cut "
                     "or damaged",
                     bytes, offset, data.size());
    }
    tensor.data = data.subspan(offset, bytes);
  }
  return {};
}

Status GgufParser::CheckOverlap() {
  std::vector<uint32_t> order(offsets_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](uint32_t i) { return offsets_[i]; });
  for (size_t k = 1; k < order.size(); ++k) {
    const GgufTensor& before = file_.tensors_[order[k - 1]];
    const GgufTensor& tensor = file_.tensors_[order[k]];
    // No tensor is empty, so a shared start is an overlap too.
    if (before.data.data() + before.data.size() > tensor.data.data()) {
      return Corrupt("tensor_overlap", tensor.name, "shares bytes with {}", Printable(before.name));
    }
  }
  return {};
}

// ---- primitives ---------------------------------------------------------------------------------

Result<std::string_view> GgufParser::ReadString(std::string_view field, uint64_t limit) {
  const auto length = cursor_.Read<uint64_t>();
  if (!length) return Truncated(field);
  if (*length > limit) {
    return Corrupt("string_limit", field, "a string of {} bytes, over the limit of {}", *length,
                   limit);
  }
  const auto bytes = cursor_.Take(*length);
  if (!bytes) return Truncated(field);
  return AsText(*bytes);
}

Result<GgufType> GgufParser::ReadType(std::string_view field) {
  const auto type = cursor_.Read<uint32_t>();
  if (!type) return Truncated(field);
  if (*type > static_cast<uint32_t>(GgufType::kF64)) {
    return Corrupt("bad_value_type", field, "unknown value type {}", *type);
  }
  return static_cast<GgufType>(*type);
}

tl::unexpected<Error> GgufParser::Truncated(std::string_view field) {
  if (file_.bytes_.empty()) return Corrupt("truncated", field, "the file is empty");
  return Corrupt("truncated", field,
                 "the file ends inside its header, at byte {}: it is cut or damaged",
                 file_.bytes_.size());
}

}  // namespace vivace::formats
