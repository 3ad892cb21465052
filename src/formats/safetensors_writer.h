// Writes safetensors files: the tests' way to make small models, whole ones and broken ones. Holds
// everything in memory and does no checks. Single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vivace::formats {

struct SafetensorsWriter {
  struct Tensor {
    std::string name;
    std::string dtype;            // "F32"
    std::vector<uint64_t> shape;  // slowest first
    std::vector<std::byte> data;
  };
  std::vector<Tensor> tensors;

  std::vector<std::byte> Build() const;
  bool WriteFile(const std::string& path) const;
};

}  // namespace vivace::formats
