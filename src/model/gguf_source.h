// A ModelSource over an open GGUF model, all of its parts, which must outlive it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"
#include "model/source.h"

namespace vivace::model {

class GgufSource final : public ModelSource {
 public:
  // Fails if the first part names no architecture, if it is but one of several parts, or
  // another thing than a model (an adapter).
  static Result<GgufSource> Create(std::span<const formats::GgufFile> parts);

  SourceFormat format() const override { return SourceFormat::kGguf; }
  std::string_view architecture() const override { return architecture_; }
  std::string_view model_name() const override { return model_name_; }
  Result<int64_t> VocabularySize() const override;

  bool Has(std::string_view key) const override { return file_->Has(FullKey(key)); }
  Result<int64_t> GetInt(std::string_view key) const override;
  Result<double> GetFloat(std::string_view key) const override;
  Result<std::string_view> GetString(std::string_view key) const override;
  Result<bool> GetBool(std::string_view key) const override;
  Result<std::vector<bool>> GetFlags(std::string_view key) const override;
  Result<std::vector<double>> GetFloats(std::string_view key) const override;

  std::optional<SourceTensor> Tensor(std::string_view name) const override;
  std::vector<std::string_view> TensorNames() const override;

  tl::unexpected<Error> KeyFault(ErrorCode code, std::string slug, std::string_view key,
                                 std::string text) const override;
  tl::unexpected<Error> TensorFault(ErrorCode code, std::string slug, std::string_view name,
                                    std::string text) const override;

 private:
  explicit GgufSource(std::span<const formats::GgufFile> parts)
      : parts_(parts), file_(&parts.front()) {}
  std::string FullKey(std::string_view key) const;  // "llama." + key

  std::span<const formats::GgufFile> parts_;
  const formats::GgufFile* file_;  // the first, which has the metadata
  std::string_view architecture_;
  std::string_view model_name_;
};

}  // namespace vivace::model
