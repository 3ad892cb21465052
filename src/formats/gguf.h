// GGUF model files, versions 2 and 3, little-endian: untrusted bytes in, checked views out.
//
// GgufFile::Open maps the file and checks all of its header before it returns: every count, length,
// type, alignment, offset, overlap, duplicate and UTF-8 key. No tensor data is read. After that a
// view can only be of the wrong type or missing, which the typed getters report.
// Cost: linear in the header plus one sort of names (a 49k-token vocabulary: a few ms); string
// arrays are not copied. Views point into the mapping and live as long as the GgufFile (moves are
// fine). Immutable: const members may be called from any thread.
// Every error message is one line: the file, the field, the reason.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "formats/ggml_types.h"
#include "formats/untrusted.h"

namespace vivace::formats {

// Types of metadata values, numbered as in the file.
enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};
std::string_view Name(GgufType type);  // "u8", "string", "array"

// An array of strings inside the file, walked in order: `for (std::string_view s : strings)`.
// Lengths were checked by GgufFile, so walking cannot leave the file. Not random access.
class GgufStrings {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;

    Iterator() = default;
    explicit Iterator(const std::byte* at) : at_(at) {}
    std::string_view operator*() const {
      return {reinterpret_cast<const char*>(at_) + sizeof(uint64_t), Length()};
    }
    Iterator& operator++() {
      at_ += sizeof(uint64_t) + Length();
      return *this;
    }
    Iterator operator++(int) {
      Iterator old = *this;
      ++*this;
      return old;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    size_t Length() const {
      uint64_t length;
      std::memcpy(&length, at_, sizeof length);
      return static_cast<size_t>(length);
    }
    const std::byte* at_ = nullptr;
  };

  GgufStrings() = default;
  GgufStrings(uint64_t count, std::span<const std::byte> bytes) : count_(count), bytes_(bytes) {}
  size_t size() const { return static_cast<size_t>(count_); }
  bool empty() const { return count_ == 0; }
  Iterator begin() const { return Iterator(bytes_.data()); }
  Iterator end() const { return Iterator(bytes_.data() + bytes_.size()); }

 private:
  uint64_t count_ = 0;
  std::span<const std::byte> bytes_;
};

// An array of numbers inside the file, unaligned there; element i is loaded on access.
template <typename T>
class GgufNumbers {
 public:
  GgufNumbers() = default;
  explicit GgufNumbers(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t size() const { return bytes_.size() / sizeof(T); }
  bool empty() const { return bytes_.empty(); }
  T operator[](size_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + i * sizeof(T), sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
};

// One metadata entry. `bytes` is the value as it lies in the file, without its length or count.
struct GgufEntry {
  std::string_view key;
  GgufType type;
  GgufType item_type;  // of an array's items; `type` itself otherwise
  uint64_t count = 1;  // items of an array
  std::span<const std::byte> bytes;
};

struct GgufTensor {
  std::string_view name;
  const GgmlType* type = nullptr;  // never null; type->dtype is empty if we cannot compute with it
  uint32_t rank = 0;               // 1..4
  std::array<uint64_t, 4> dims = {};  // fastest first, none zero; beyond the rank: 1
  std::span<const std::byte> data;    // exactly the tensor's bytes
};

class GgufFile {
 public:
  static Result<GgufFile> Open(const std::string& path);
  // The same over bytes the caller keeps alive; `name` stands for the file in messages.
  static Result<GgufFile> Parse(std::span<const std::byte> bytes, std::string name);

  const std::string& path() const { return path_; }
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  uint64_t file_bytes() const { return bytes_.size(); }
  std::span<const GgufEntry> entries() const { return entries_; }   // in file order
  std::span<const GgufTensor> tensors() const { return tensors_; }  // in file order
  const MappedFile& mapping() const { return mapping_; }            // empty after Parse

  // nullptr: no such key, no such tensor.
  const GgufEntry* Find(std::string_view key) const;
  const GgufTensor* FindTensor(std::string_view name) const;
  bool Has(std::string_view key) const { return Find(key) != nullptr; }

  // Typed getters. Missing: missing_key. Another type: wrong_type. Integers of any width and sign
  // are taken when the value fits; bool is not an integer, an integer is not a float.
  Result<std::string_view> GetString(std::string_view key) const;  // valid UTF-8, else bad_utf8
  Result<int64_t> GetInt(std::string_view key) const;
  Result<double> GetFloat(std::string_view key) const;
  Result<bool> GetBool(std::string_view key) const;
  Result<GgufStrings> GetStrings(std::string_view key) const;        // items are valid UTF-8
  Result<GgufNumbers<int32_t>> GetInts(std::string_view key) const;  // i32, or u32 below 2^31
  Result<GgufNumbers<float>> GetFloats(std::string_view key) const;  // f32

  // As above, but `fallback` if the key is missing.
  Result<std::string_view> GetStringOr(std::string_view key, std::string_view fallback) const;
  Result<int64_t> GetIntOr(std::string_view key, int64_t fallback) const;
  Result<bool> GetBoolOr(std::string_view key, bool fallback) const;

  // An error about this file in the one-line shape all of them have: "<file>: <field>: <reason>".
  // Readers of the file's meaning (recipes, tokenizers) make theirs with this too.
  template <typename... Args>
  [[nodiscard]] tl::unexpected<Error> Fault(ErrorCode code, std::string slug,
                                            std::string_view field,
                                            fmt::format_string<Args...> format,
                                            Args&&... args) const {
    return FileFault(code, std::move(slug), path_, field,
                     fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  friend class GgufParser;
  GgufFile() = default;

  tl::unexpected<Error> WrongType(const GgufEntry& entry, std::string_view wanted) const;
  Result<const GgufEntry*> Need(std::string_view key) const;
  Result<const GgufEntry*> NeedArray(std::string_view key, GgufType item) const;

  MappedFile mapping_;
  std::string path_;
  std::span<const std::byte> bytes_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 0;
  std::vector<GgufEntry> entries_;
  std::vector<GgufTensor> tensors_;
  std::vector<uint32_t> entries_by_key_;  // sorted indices: no hash a file could attack
  std::vector<uint32_t> tensors_by_name_;
};

}  // namespace vivace::formats
