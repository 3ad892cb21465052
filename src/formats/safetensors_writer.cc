#include "formats/safetensors_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <fstream>

namespace vivace::formats {

std::vector<std::byte> SafetensorsWriter::Build() const {
  std::string header = "{";
  size_t offset = 0;
  for (const Tensor& tensor : tensors) {
    header += fmt::format("{}\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          offset == 0 && header.size() == 1 ? "" : ",", tensor.name, tensor.dtype,
                          fmt::join(tensor.shape, ","), offset, offset + tensor.data.size());
    offset += tensor.data.size();
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  std::vector<std::byte> file(sizeof(length) + header.size());
  std::memcpy(file.data(), &length, sizeof(length));
  std::memcpy(file.data() + sizeof(length), header.data(), header.size());
  for (const Tensor& tensor : tensors) {
    file.insert(file.end(), tensor.data.begin(), tensor.data.end());
  }
  return file;
}

bool SafetensorsWriter::WriteFile(const std::string& path) const {
  const auto bytes = Build();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(file);
}

}  // namespace vivace::formats
