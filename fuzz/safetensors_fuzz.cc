// Any bytes as a safetensors file; what is accepted must lie inside the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto file = vivace::formats::SafetensorsFile::Parse(bytes, "fuzz.safetensors");
  if (!file) return 0;
  for (const auto& tensor : file->tensors()) {
    const bool inside = tensor.data.data() >= bytes.data() &&
                        tensor.data.data() + tensor.data.size() <= bytes.data() + bytes.size();
    if (!inside) std::abort();
  }
  return 0;
}
