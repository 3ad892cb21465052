#include "model/loaded_model.h"

#include "model/gguf_source.h"
#include "model/recipe.h"

namespace vivace::model {

ModelFile::ModelFile(formats::GgufFile gguf, ModelSpec spec)
    : gguf_(std::move(gguf)), spec_(std::move(spec)) {
  // Recipes refuse files with tensors they do not use, so these are the model's weights.
  for (const formats::GgufTensor& tensor : gguf_.tensors()) {
    weight_bytes_ += tensor.data.size();
    parameters_ += tensor.data.size() / tensor.type->block_bytes * tensor.type->block_elems;
  }
}

Result<kernels::WeightView> ModelFile::Weight(const WeightSpec& weight) const {
  const formats::GgufTensor* tensor = gguf_.FindTensor(weight.name);
  if (!tensor) {
    return gguf_.Fault(ErrorCode::kInternal, "missing_tensor", weight.name,
                       "the file lacks this tensor");
  }
  const std::array<uint64_t, 4> dims = {static_cast<uint64_t>(weight.cols),
                                        static_cast<uint64_t>(weight.rows), 1, 1};
  if (tensor->dims != dims || !tensor->type->dtype) {
    return gguf_.Fault(ErrorCode::kInternal, "shape_mismatch", weight.name,
                       "is not the {} x {} weight that was asked for", weight.rows, weight.cols);
  }
  return kernels::WeightView{*tensor->type->dtype, weight.rows, weight.cols, tensor->data.data()};
}

void ModelFile::Prefetch(const WeightSpec& weight) const {
  if (const auto* tensor = gguf_.FindTensor(weight.name)) {
    gguf_.mapping().WillNeed(tensor->data);
  }
}

void ModelFile::Release(const WeightSpec& weight) const {
  if (const auto* tensor = gguf_.FindTensor(weight.name)) {
    gguf_.mapping().DontNeed(tensor->data);
  }
}

Result<ModelFile> OpenModel(const std::string& path) {
  VIVACE_ASSIGN(formats::GgufFile gguf, formats::GgufFile::Open(path));
  return CheckModel(std::move(gguf));
}

Result<ModelFile> CheckModel(formats::GgufFile gguf) {
  VIVACE_ASSIGN(const GgufSource source, GgufSource::Create(gguf));
  VIVACE_ASSIGN(const Recipe* recipe, FindRecipe(source));
  VIVACE_ASSIGN(ModelSpec spec, recipe->build(source));
  return ModelFile(std::move(gguf), std::move(spec));
}

}  // namespace vivace::model
