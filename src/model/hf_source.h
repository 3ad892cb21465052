// A ModelSource over an open Hugging Face folder, which must outlive it: canonical names are
// translated by the standard tables and the recipe's own (hf_names.h).
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/hf_folder.h"
#include "model/hf_names.h"
#include "model/source.h"

namespace vivace::model {

// The architecture config.json names; what we cannot serve whatever the weights are is refused by
// name (a quantised checkpoint), and so is a configuration whose parts are not objects
// (wrong_type).
Result<std::string_view> HfArchitecture(const formats::HfFolder& folder);

class HfSource final : public ModelSource {
 public:
  // `architecture` and `names` outlive the source.
  HfSource(const formats::HfFolder& folder, std::string_view architecture, const HfNames& names);

  SourceFormat format() const override { return SourceFormat::kHuggingFace; }
  std::string_view architecture() const override { return architecture_; }
  std::string_view model_name() const override { return model_name_; }
  Result<int64_t> VocabularySize() const override;

  bool Has(std::string_view key) const override { return Find(key).value != nullptr; }
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
  struct Found {
    std::string name;  // "rope_scaling.factor"; of an absent key its usual one
    const boost::json::value* value = nullptr;  // never null JSON
    bool is_null = false;                       // the file says null
  };
  Found Find(std::string_view key) const;
  Found FindInFile(std::string_view key) const;
  Found Look(const HfKey& row) const;
  Result<const boost::json::value*> Need(std::string_view key) const;
  tl::unexpected<Error> WrongType(std::string_view key, std::string_view wanted) const;

  const formats::HfFolder* folder_;
  std::string_view architecture_;
  const HfNames* names_;
  std::string model_name_;
  std::vector<boost::json::value> defaults_;  // of names_->defaults
};

}  // namespace vivace::model
