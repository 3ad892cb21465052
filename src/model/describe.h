// What `vivace inspect` shows of a model file, as data; cli prints it.
// Works on any file whose container is sound: a model we cannot serve is described too, with the
// error loading it would give. All strings are printable (escaped, cut) copies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace vivace::model {

struct MetadataFact {
  std::string key;
  std::string type;   // "u32", "array of string"
  std::string value;  // long ones are cut and say how long they are
};

struct TensorFact {
  std::string name;
  std::string type;             // "Q4_1"
  std::vector<uint64_t> shape;  // slowest first: [rows, cols]
  uint64_t bytes = 0;
  bool supported = false;  // its type is one we compute with
};

struct TypeTotal {
  std::string type;
  uint64_t tensors = 0;
  uint64_t bytes = 0;
  bool supported = false;
};

struct Description {
  std::string path;
  std::string format;  // "GGUF v3", "safetensors"
  uint64_t file_bytes = 0;
  uint64_t tensor_bytes = 0;
  uint64_t parameters = 0;            // elements of all tensors
  std::vector<MetadataFact> summary;  // architecture, layers, heads, context ...; empty if unusable
  std::vector<MetadataFact> metadata;  // in file order
  std::vector<TensorFact> tensors;     // in file order
  std::vector<TypeTotal> types;        // most bytes first
  std::optional<Error> problem;        // why loading would fail; none: it would load
};

// Fails only if the file cannot be read as a container at all.
Result<Description> Describe(const std::string& path);

}  // namespace vivace::model
