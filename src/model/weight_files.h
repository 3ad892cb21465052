// The tensors of an opened model, whatever its format, by the name its files give them. Owns the
// mappings; move-only, and moves leave every view valid. Const members from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"
#include "formats/hf_folder.h"
#include "tensor/dtype.h"

namespace vivace::model {

struct StoredTensor {
  std::string_view name;
  std::optional<DType> dtype;   // none: a type we cannot compute with
  std::vector<uint64_t> shape;  // slowest first
  std::span<const std::byte> data;
  uint64_t elements = 0;
  size_t part = 0;  // the file it lies in
};

// One of the model's files, and what stands in it before the first tensor.
struct FilePart {
  const MappedFile* mapping;
  size_t header_bytes;
};

class WeightFiles {
 public:
  explicit WeightFiles(std::vector<formats::GgufFile> parts);
  explicit WeightFiles(formats::HfFolder folder);

  const formats::GgufFile* gguf() const;    // the first part, which has the metadata; or null
  const formats::HfFolder* folder() const;  // or null
  const std::string& path() const;          // what a message calls the model
  std::span<const formats::GgufFile> gguf_parts() const;

  std::span<const StoredTensor> tensors() const { return tensors_; }  // sorted by name
  const StoredTensor* Find(std::string_view name) const;              // null: none
  std::vector<FilePart> parts() const;
  // Hints (base/mapped_file.h) about bytes of a part.
  void WillNeed(size_t part, std::span<const std::byte> range) const;
  void DontNeed(size_t part, std::span<const std::byte> range) const;
  Status CheckUnchanged() const;

 private:
  const MappedFile& Mapping(size_t part) const;
  size_t num_parts() const;
  void Sort();

  std::variant<std::vector<formats::GgufFile>, std::unique_ptr<formats::HfFolder>> files_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace vivace::model
