#include "model/weight_files.h"

#include <algorithm>

namespace vivace::model {

WeightFiles::WeightFiles(std::vector<formats::GgufFile> parts) : files_(std::move(parts)) {
  const auto files = gguf_parts();
  for (size_t part = 0; part < files.size(); ++part) {
    for (const formats::GgufTensor& tensor : files[part].tensors()) {
      const formats::GgmlType& type = *tensor.type;
      tensors_.push_back({.name = tensor.name,
                          .dtype = type.dtype,
                          .shape = {tensor.dims.rend() - tensor.rank, tensor.dims.rend()},
                          .data = tensor.data,
                          .elements = tensor.data.size() / type.block_bytes * type.block_elems,
                          .part = part});
    }
  }
  Sort();
}

WeightFiles::WeightFiles(formats::HfFolder folder)
    : files_(std::make_unique<formats::HfFolder>(std::move(folder))) {
  const auto shards = this->folder()->shards();
  for (size_t part = 0; part < shards.size(); ++part) {
    for (const formats::SafetensorsTensor& tensor : shards[part].tensors()) {
      tensors_.push_back({.name = tensor.name,
                          .dtype = tensor.type->dtype,
                          .shape = tensor.shape,
                          .data = tensor.data,
                          .elements = tensor.data.size() * 8 / tensor.type->bits,
                          .part = part});
    }
  }
  Sort();
}

void WeightFiles::Sort() { std::ranges::sort(tensors_, {}, &StoredTensor::name); }

std::span<const formats::GgufFile> WeightFiles::gguf_parts() const {
  const auto* parts = std::get_if<std::vector<formats::GgufFile>>(&files_);
  return parts == nullptr ? std::span<const formats::GgufFile>() : std::span(*parts);
}

const formats::GgufFile* WeightFiles::gguf() const {
  const auto parts = gguf_parts();
  return parts.empty() ? nullptr : &parts.front();
}

const formats::HfFolder* WeightFiles::folder() const {
  const auto* folder = std::get_if<std::unique_ptr<formats::HfFolder>>(&files_);
  return folder == nullptr ? nullptr : folder->get();
}

const std::string& WeightFiles::path() const {
  return gguf() != nullptr ? gguf()->path() : folder()->folder();
}

const StoredTensor* WeightFiles::Find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(tensors_, name, {}, &StoredTensor::name);
  return at == tensors_.end() || at->name != name ? nullptr : &*at;
}

size_t WeightFiles::num_parts() const {
  return gguf() != nullptr ? gguf_parts().size() : folder()->shards().size();
}

const MappedFile& WeightFiles::Mapping(size_t part) const {
  return gguf() != nullptr ? gguf_parts()[part].mapping() : folder()->shards()[part].mapping();
}

std::vector<FilePart> WeightFiles::parts() const {
  std::vector<FilePart> parts;
  for (size_t i = 0; i < num_parts(); ++i) {
    parts.push_back({&Mapping(i), Mapping(i).bytes().size()});
  }
  for (const StoredTensor& tensor : tensors_) {
    FilePart& part = parts[tensor.part];
    const auto offset = static_cast<size_t>(tensor.data.data() - part.mapping->bytes().data());
    if (!tensor.data.empty()) part.header_bytes = std::min(part.header_bytes, offset);
  }
  return parts;
}

void WeightFiles::WillNeed(size_t part, std::span<const std::byte> range) const {
  Mapping(part).WillNeed(range);
}

void WeightFiles::DontNeed(size_t part, std::span<const std::byte> range) const {
  Mapping(part).DontNeed(range);
}

Status WeightFiles::CheckUnchanged() const {
  for (size_t i = 0; i < num_parts(); ++i) {
    VIVACE_RETURN_IF_ERROR(Mapping(i).CheckUnchanged());
  }
  return {};
}

}  // namespace vivace::model
