#include "formats/gguf.h"

#include <algorithm>

#include "base/utf8.h"
#include "formats/gguf_parser.h"

namespace vivace::formats {
namespace {

template <typename T>
T Load(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// The integer an entry holds, if it is one and fits.
std::optional<int64_t> IntegerOf(const GgufEntry& entry) {
  switch (entry.type) {
    case GgufType::kU8:
      return Load<uint8_t>(entry.bytes);
    case GgufType::kI8:
      return Load<int8_t>(entry.bytes);
    case GgufType::kU16:
      return Load<uint16_t>(entry.bytes);
    case GgufType::kI16:
      return Load<int16_t>(entry.bytes);
    case GgufType::kU32:
      return Load<uint32_t>(entry.bytes);
    case GgufType::kI32:
      return Load<int32_t>(entry.bytes);
    case GgufType::kI64:
      return Load<int64_t>(entry.bytes);
    case GgufType::kU64: {
      const auto value = Load<uint64_t>(entry.bytes);
      // Larger than any range we accept; saturating lets the range check name the key.
      return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
    }
    default:
      return std::nullopt;
  }
}

template <typename Item>
const Item* FindByName(std::string_view Item::*name, const std::vector<Item>& items,
                       const std::vector<uint32_t>& order, std::string_view wanted) {
  const auto found =
      std::ranges::lower_bound(order, wanted, {}, [&](uint32_t i) { return items[i].*name; });
  return found != order.end() && items[*found].*name == wanted ? &items[*found] : nullptr;
}

}  // namespace

std::string_view Name(GgufType type) {
  constexpr std::string_view kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                         "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<uint32_t>(type)];
}

Result<GgufFile> GgufFile::Open(const std::string& path) {
  VIVACE_ASSIGN(MappedFile mapping, MappedFile::Open(path));
  VIVACE_ASSIGN(GgufFile file, Parse(mapping.bytes(), path));
  file.mapping_ = std::move(mapping);
  return file;
}

Result<GgufFile> GgufFile::Parse(std::span<const std::byte> bytes, std::string name) {
  GgufFile file;
  file.bytes_ = bytes;
  file.path_ = std::move(name);
  VIVACE_RETURN_IF_ERROR(GgufParser(file).Run());
  return file;
}

const GgufEntry* GgufFile::Find(std::string_view key) const {
  return FindByName(&GgufEntry::key, entries_, entries_by_key_, key);
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  return FindByName(&GgufTensor::name, tensors_, tensors_by_name_, name);
}

Result<std::string_view> GgufFile::GetString(std::string_view key) const {
  VIVACE_ASSIGN(const GgufEntry* entry, Need(key));
  if (entry->type != GgufType::kString) return WrongType(*entry, "a string");
  const std::string_view text(reinterpret_cast<const char*>(entry->bytes.data()),
                              entry->bytes.size());
  if (!utf8::IsValid(text))
    return Fault(ErrorCode::kCorruptData, "bad_utf8", key, "is not valid UTF-8");
  return text;
}

Result<int64_t> GgufFile::GetInt(std::string_view key) const {
  VIVACE_ASSIGN(const GgufEntry* entry, Need(key));
  const auto value = IntegerOf(*entry);
  if (!value) return WrongType(*entry, "an integer");
  return *value;
}

Result<double> GgufFile::GetFloat(std::string_view key) const {
  VIVACE_ASSIGN(const GgufEntry* entry, Need(key));
  if (entry->type == GgufType::kF32) return double{Load<float>(entry->bytes)};
  if (entry->type == GgufType::kF64) return Load<double>(entry->bytes);
  return WrongType(*entry, "a float");
}

Result<bool> GgufFile::GetBool(std::string_view key) const {
  VIVACE_ASSIGN(const GgufEntry* entry, Need(key));
  if (entry->type != GgufType::kBool) return WrongType(*entry, "a bool");
  return entry->bytes[0] == std::byte{1};
}

Result<GgufStrings> GgufFile::GetStrings(std::string_view key) const {
  VIVACE_ASSIGN(const GgufEntry* entry, NeedArray(key, GgufType::kString));
  const GgufStrings strings(entry->count, entry->bytes);
  if (!std::all_of(strings.begin(), strings.end(), utf8::IsValid)) {
    return Fault(ErrorCode::kCorruptData, "bad_utf8", key, "has an item that is not valid UTF-8");
  }
  return strings;
}

Result<GgufNumbers<int32_t>> GgufFile::GetInts(std::string_view key) const {
  VIVACE_ASSIGN(const GgufEntry* entry, Need(key));
  const bool is_unsigned = entry->item_type == GgufType::kU32;
  if (entry->type != GgufType::kArray || (!is_unsigned && entry->item_type != GgufType::kI32)) {
    return WrongType(*entry, "an array of i32");
  }
  const GgufNumbers<int32_t> numbers(entry->bytes);
  for (size_t i = 0; is_unsigned && i < numbers.size(); ++i) {
    if (numbers[i] < 0) return WrongType(*entry, "an array of i32");
  }
  return numbers;
}

Result<GgufNumbers<float>> GgufFile::GetFloats(std::string_view key) const {
  VIVACE_ASSIGN(const GgufEntry* entry, NeedArray(key, GgufType::kF32));
  return GgufNumbers<float>(entry->bytes);
}

Result<std::string_view> GgufFile::GetStringOr(std::string_view key,
                                               std::string_view fallback) const {
  return Has(key) ? GetString(key) : Result<std::string_view>(fallback);
}

Result<int64_t> GgufFile::GetIntOr(std::string_view key, int64_t fallback) const {
  return Has(key) ? GetInt(key) : Result<int64_t>(fallback);
}

Result<bool> GgufFile::GetBoolOr(std::string_view key, bool fallback) const {
  return Has(key) ? GetBool(key) : Result<bool>(fallback);
}

Result<const GgufEntry*> GgufFile::Need(std::string_view key) const {
  const GgufEntry* entry = Find(key);
  if (!entry) return Fault(ErrorCode::kCorruptData, "missing_key", key, "the file lacks this key");
  return entry;
}

Result<const GgufEntry*> GgufFile::NeedArray(std::string_view key, GgufType item) const {
  VIVACE_ASSIGN(const GgufEntry* entry, Need(key));
  if (entry->type != GgufType::kArray || entry->item_type != item) {
    return WrongType(*entry, fmt::format("an array of {}", Name(item)));
  }
  return entry;
}

tl::unexpected<Error> GgufFile::WrongType(const GgufEntry& entry, std::string_view wanted) const {
  if (entry.type == GgufType::kArray) {
    return Fault(ErrorCode::kCorruptData, "wrong_type", entry.key, "is an array of {}, not {}",
                 Name(entry.item_type), wanted);
  }
  return Fault(ErrorCode::kCorruptData, "wrong_type", entry.key, "is of type {}, not {}",
               Name(entry.type), wanted);
}

}  // namespace vivace::formats
