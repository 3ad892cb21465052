// The tensor types a GGUF file may name: their ids, names and block sizes on disk.
// A type may be known (so that its sizes are checked) without being one we can compute with.
// Static table, no allocation, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace vivace::formats {

struct GgmlType {
  uint32_t id;
  std::string_view name;  // "Q4_1", "IQ2_XXS"
  uint32_t block_elems;
  uint32_t block_bytes;
  std::optional<DType> dtype;  // none: known by name and size only
};

// nullptr: an id the GGUF specification does not have, or has dropped.
const GgmlType* FindGgmlType(uint32_t id);

// The id of a type we have, for writers.
uint32_t GgmlTypeId(DType dtype);

}  // namespace vivace::formats
