// Writes GGUF files: the tests' way to make small models and to break them in one place.
// Holds everything in memory; not for large models. Single-threaded. Does no checks of its own: it
// must be able to write wrong files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"

namespace vivace::formats {

class GgufWriter {
 public:
  struct Tensor {
    std::string name;
    uint32_t type_id = 0;
    std::vector<uint64_t> dims;  // fastest first
    std::vector<std::byte> data;
  };

  uint32_t version = 3;
  uint64_t alignment = 32;  // written as general.alignment unless 32
  std::vector<Tensor> tensors;

  // Sets a key, in place if it is there already.
  void SetString(std::string_view key, std::string_view value);
  void SetU32(std::string_view key, uint32_t value);
  void SetU64(std::string_view key, uint64_t value);
  void SetFloat(std::string_view key, float value);
  void SetBool(std::string_view key, bool value);
  void SetStrings(std::string_view key, std::span<const std::string> values);
  void SetInts(std::string_view key, std::span<const int32_t> values);
  void SetFloats(std::string_view key, std::span<const float> values);
  void Remove(std::string_view key);
  bool Has(std::string_view key) const;

  Tensor* FindTensor(std::string_view name);  // nullptr: none
  void RemoveTensor(std::string_view name);

  std::vector<std::byte> Build() const;
  bool WriteFile(const std::string& path) const;

 private:
  struct Entry {
    std::string key;
    std::string value;  // type and value as they lie in the file
  };
  void Set(std::string_view key, std::string value);

  std::vector<Entry> entries_;
};

}  // namespace vivace::formats
