// Any bytes as a GGUF file: the container, then everything opening a model checks.
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/loaded_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto file = vivace::formats::GgufFile::Parse(bytes, "fuzz.gguf");
  if (!file) return 0;
  for (const auto& entry : file->entries()) {
    // Each getter on each entry: a wrong type is an error, never a crash.
    (void)file->GetString(entry.key);
    (void)file->GetInt(entry.key);
    (void)file->GetFloat(entry.key);
    (void)file->GetBool(entry.key);
    (void)file->GetStrings(entry.key);
    (void)file->GetInts(entry.key);
    (void)file->GetFloats(entry.key);
  }
  (void)vivace::model::CheckModel(std::move(*file));
  return 0;
}
