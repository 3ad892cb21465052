#include "model/gguf_source.h"

#include <fmt/format.h>

#include "base/limits.h"

namespace vivace::model {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
// Arrays with one item for each token, if the file has them.
constexpr std::string_view kPerToken[] = {"tokenizer.ggml.token_type", "tokenizer.ggml.scores"};

}  // namespace

Result<GgufSource> GgufSource::Create(std::span<const formats::GgufFile> all) {
  GgufSource source(all);
  const formats::GgufFile& file = all.front();
  VIVACE_ASSIGN(const std::string_view type, file.GetStringOr("general.type", "model"));
  if (type != "model") {
    return file.Fault(
        ErrorCode::kUnsupported, "unsupported", "general.type",
        "this file is not a whole model, but of another kind (an adapter, a projector)");
  }
  VIVACE_ASSIGN(const int64_t parts, file.GetIntOr("split.count", 1));
  if (parts > 1 && static_cast<size_t>(parts) != all.size()) {
    return file.Fault(ErrorCode::kUnsupported, "unsupported", "split.count",
                      "this file is one of {} parts of a model, which must all be there", parts);
  }
  VIVACE_ASSIGN(source.architecture_, file.GetString("general.architecture"));
  VIVACE_ASSIGN(source.model_name_, file.GetStringOr("general.name", ""));
  return source;
}

Result<int64_t> GgufSource::VocabularySize() const {
  VIVACE_ASSIGN(const formats::GgufStrings tokens, file_->GetStrings(kTokens));
  const auto size = static_cast<int64_t>(tokens.size());
  if (size == 0) {
    return file_->Fault(ErrorCode::kCorruptData, "vocab_mismatch", kTokens,
                        "the vocabulary is empty");
  }
  if (size > limits::kMaxVocab) {
    return file_->Fault(ErrorCode::kCorruptData, "vocab_limit", kTokens,
                        "{} tokens, over the limit of {}", size, limits::kMaxVocab);
  }
  for (const std::string_view key : kPerToken) {
    const formats::GgufEntry* entry = file_->Find(key);
    if (entry && entry->type == formats::GgufType::kArray && entry->count != tokens.size()) {
      return file_->Fault(ErrorCode::kCorruptData, "vocab_mismatch", key,
                          "has {} items for {} tokens", entry->count, size);
    }
  }
  return size;
}

std::string GgufSource::FullKey(std::string_view key) const {
  return fmt::format("{}.{}", architecture_, key);
}

Result<int64_t> GgufSource::GetInt(std::string_view key) const {
  const formats::GgufEntry* entry = file_->Find(FullKey(key));
  if (entry == nullptr || entry->type != formats::GgufType::kArray) {
    return file_->GetInt(FullKey(key));
  }
  VIVACE_ASSIGN(const auto numbers, file_->GetInts(FullKey(key)));
  int64_t only = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (only == 0) only = numbers[i];
    if (numbers[i] != 0 && numbers[i] != only) {
      return KeyFault(ErrorCode::kUnsupported, "unsupported", key,
                      fmt::format("is {} in one layer and {} in another, which is not supported",
                                  only, numbers[i]));
    }
  }
  return only;
}

Result<double> GgufSource::GetFloat(std::string_view key) const {
  return file_->GetFloat(FullKey(key));
}

Result<std::string_view> GgufSource::GetString(std::string_view key) const {
  return file_->GetString(FullKey(key));
}

Result<bool> GgufSource::GetBool(std::string_view key) const {
  return file_->GetBool(FullKey(key));
}

Result<std::vector<bool>> GgufSource::GetFlags(std::string_view key) const {
  const formats::GgufEntry* entry = file_->Find(FullKey(key));
  if (entry == nullptr) {
    return KeyFault(ErrorCode::kCorruptData, "missing_key", key, "the file has no such key");
  }
  std::vector<bool> flags;
  if (entry->type != formats::GgufType::kArray || entry->count > limits::kMaxLayers) {
    return KeyFault(ErrorCode::kCorruptData, "wrong_type", key,
                    fmt::format("is not an array of up to {} flags", limits::kMaxLayers));
  }
  if (entry->item_type == formats::GgufType::kBool) {
    for (const std::byte flag : entry->bytes) flags.push_back(flag != std::byte{0});
    return flags;
  }
  VIVACE_ASSIGN(const auto numbers, file_->GetInts(FullKey(key)));
  for (size_t i = 0; i < numbers.size(); ++i) flags.push_back(numbers[i] != 0);
  return flags;
}

Result<std::vector<double>> GgufSource::GetFloats(std::string_view key) const {
  VIVACE_ASSIGN(const auto numbers, file_->GetFloats(FullKey(key)));
  std::vector<double> values;
  for (size_t i = 0; i < numbers.size(); ++i) values.push_back(double{numbers[i]});
  return values;
}

std::optional<SourceTensor> GgufSource::Tensor(std::string_view name) const {
  const formats::GgufTensor* tensor = nullptr;
  for (const formats::GgufFile& part : parts_) {
    tensor = part.FindTensor(name);
    if (tensor != nullptr) break;
  }
  if (!tensor) return std::nullopt;
  // The file lists dimensions fastest first.
  std::vector<uint64_t> shape(tensor->dims.rend() - tensor->rank, tensor->dims.rend());
  return SourceTensor{tensor->name, tensor->type->name, tensor->type->dtype, std::move(shape),
                      tensor->data};
}

std::vector<std::string_view> GgufSource::TensorNames() const {
  std::vector<std::string_view> names;
  for (const formats::GgufFile& part : parts_) {
    for (const auto& tensor : part.tensors()) names.push_back(tensor.name);
  }
  return names;
}

tl::unexpected<Error> GgufSource::KeyFault(ErrorCode code, std::string slug, std::string_view key,
                                           std::string text) const {
  const bool is_general = key.starts_with("general.");
  return file_->Fault(code, std::move(slug), is_general ? std::string(key) : FullKey(key), "{}",
                      text);
}

tl::unexpected<Error> GgufSource::TensorFault(ErrorCode code, std::string slug,
                                              std::string_view name, std::string text) const {
  for (const formats::GgufFile& part : parts_) {
    if (part.FindTensor(name) != nullptr)
      return part.Fault(code, std::move(slug), name, "{}", text);
  }
  return file_->Fault(code, std::move(slug), name, "{}", text);
}

}  // namespace vivace::model
