// A ModelSource over an open GgufFile, which must outlive it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"
#include "model/source.h"

namespace vivace::model {

class GgufSource final : public ModelSource {
 public:
  // Fails if the file names no architecture, or is only a part of a model (a split, an adapter).
  static Result<GgufSource> Create(const formats::GgufFile& file);

  std::string_view architecture() const override { return architecture_; }
  std::string_view model_name() const override { return model_name_; }
  Result<int64_t> VocabularySize() const override;

  bool Has(std::string_view key) const override { return file_->Has(FullKey(key)); }
  Result<int64_t> GetInt(std::string_view key) const override;
  Result<double> GetFloat(std::string_view key) const override;
  Result<std::string_view> GetString(std::string_view key) const override;

  std::optional<SourceTensor> Tensor(std::string_view name) const override;
  std::vector<std::string_view> TensorNames() const override;

  tl::unexpected<Error> KeyFault(ErrorCode code, std::string slug, std::string_view key,
                                 std::string text) const override;
  tl::unexpected<Error> TensorFault(ErrorCode code, std::string slug, std::string_view name,
                                    std::string text) const override;

 private:
  explicit GgufSource(const formats::GgufFile& file) : file_(&file) {}
  std::string FullKey(std::string_view key) const;  // "llama." + key

  const formats::GgufFile* file_;
  std::string_view architecture_;
  std::string_view model_name_;
};

}  // namespace vivace::model
