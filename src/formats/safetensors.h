// One safetensors file: untrusted bytes in, checked views out.
//
// Open maps the file and enforces the whole specification: header size, JSON (depth-limited,
// duplicates refused), dtypes, shapes, and that the tensors cover the data exactly, in some order,
// with no hole or overlap. No tensor data is read. Cost: linear in the header plus two sorts.
// Tensor data lives in the mapping as long as the file object. Immutable after Open; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace vivace::formats {

// An element type of the specification, by name and width.
struct SafetensorsType {
  std::string_view name;  // "BF16"
  uint32_t bits;
  std::optional<DType> dtype;  // none: known by name and size only
};

struct SafetensorsTensor {
  std::string name;
  const SafetensorsType* type = nullptr;  // never null
  std::vector<uint64_t> shape;            // slowest first; empty: a scalar
  std::span<const std::byte> data;
};

class SafetensorsFile {
 public:
  static Result<SafetensorsFile> Open(const std::string& path);
  // The same over bytes the caller keeps alive; `name` stands for the file in messages.
  static Result<SafetensorsFile> Parse(std::span<const std::byte> bytes, std::string name);

  const std::string& path() const { return path_; }
  uint64_t file_bytes() const { return bytes_.size(); }
  std::span<const SafetensorsTensor> tensors() const { return tensors_; }  // sorted by name
  std::span<const std::pair<std::string, std::string>> metadata() const { return metadata_; }
  const SafetensorsTensor* FindTensor(std::string_view name) const;  // nullptr: none
  const MappedFile& mapping() const { return mapping_; }             // empty after Parse

 private:
  SafetensorsFile() = default;
  Status Read();

  MappedFile mapping_;
  std::string path_;
  std::span<const std::byte> bytes_;
  std::vector<SafetensorsTensor> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace vivace::formats
