#include "model/loaded_model.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/limits.h"
#include "formats/gguf_parts.h"
#include "formats/untrusted.h"
#include "model/gguf_source.h"
#include "model/hf_source.h"
#include "model/materialize.h"
#include "model/recipe.h"

namespace vivace::model {
namespace {

tl::unexpected<Error> TensorFault(const WeightFiles& files, std::string slug,
                                  const std::string& name, std::string text) {
  return formats::FileFault(ErrorCode::kInternal, std::move(slug), files.path(), name, text);
}

// Of a stacked tensor, the bytes of the weight's slice.
std::span<const std::byte> SliceBytes(const WeightSpec& weight, const StoredTensor& tensor) {
  if (weight.slices <= 1 || weight.slice < 0 || weight.slice >= weight.slices) return tensor.data;
  const size_t bytes = tensor.data.size() / static_cast<size_t>(weight.slices);
  return tensor.data.subspan(static_cast<size_t>(weight.slice) * bytes, bytes);
}

// eos_token_id is a number or a list of them.
Status AddEosIds(const boost::json::object& config, const std::string& path, int32_t vocab,
                 std::vector<int32_t>* ids) {
  const boost::json::value* value = config.if_contains("eos_token_id");
  if (value == nullptr || value->is_null()) return {};
  const boost::json::array* list = value->if_array();
  const std::span<const boost::json::value> items =
      list == nullptr ? std::span(value, 1) : std::span(list->data(), list->size());
  for (const boost::json::value& item : items) {
    const int64_t* id = item.if_int64();
    if (id == nullptr || *id < 0 || *id >= vocab || items.size() > limits::kMaxEosTokens) {
      return formats::FileFault(
          ErrorCode::kCorruptData, "token_id_range", path, "eos_token_id",
          fmt::format("is not a token id or a list of up to {}, each from 0 to {}",
                      limits::kMaxEosTokens, vocab - 1));
    }
    if (std::ranges::find(*ids, static_cast<int32_t>(*id)) == ids->end()) {
      ids->push_back(static_cast<int32_t>(*id));
    }
  }
  return {};
}

}  // namespace

ModelFile::ModelFile(WeightFiles files, ModelSpec spec)
    : files_(std::move(files)), spec_(std::move(spec)) {
  // Recipes refuse files with tensors they do not use, so these are the model's weights.
  for (const StoredTensor& tensor : files_.tensors()) {
    weight_bytes_ += tensor.data.size();
    parameters_ += tensor.elements;
  }
}

Result<WeightSource> ModelFile::Find(const WeightSpec& weight) const {
  const StoredTensor* tensor = files_.Find(weight.name);
  if (tensor == nullptr) {
    return TensorFault(files_, "missing_tensor", weight.name, "the file lacks this tensor");
  }
  const StoredTensor* scales = weight.scales.empty() ? nullptr : files_.Find(weight.scales);
  const WeightSource source = {&weight, tensor, scales};
  if ((scales == nullptr && !weight.scales.empty()) || !Fits(source)) {
    return TensorFault(files_, "shape_mismatch", weight.name,
                       fmt::format("does not hold the {} x {} weight that was asked for",
                                   weight.rows, weight.cols));
  }
  return source;
}

Result<kernels::WeightView> ModelFile::WeightShape(const WeightSpec& weight,
                                                   const kernels::BlockOps& ops) const {
  VIVACE_ASSIGN(const WeightSource source, Find(weight));
  return kernels::WeightView{LoadType(source, quantization_, ops), weight.rows, weight.cols,
                             nullptr};
}

Result<kernels::WeightView> ModelFile::Weight(const WeightSpec& weight,
                                              const kernels::BlockOps& ops,
                                              std::vector<std::byte>* scratch) const {
  VIVACE_ASSIGN(const WeightSource source, Find(weight));
  const DType dtype = LoadType(source, quantization_, ops);
  kernels::WeightView view{dtype, weight.rows, weight.cols, ContiguousRows(source)};
  if (view.data == nullptr || dtype != StoredType(source)) {
    VIVACE_ASSIGN(*scratch, MakeRows(source, dtype));
    view.data = scratch->data();
  }
  return view;
}

Result<kernels::WeightView> ModelFile::Weight(const WeightSpec& weight) const {
  VIVACE_ASSIGN(const WeightSource source, Find(weight));
  const kernels::WeightView view{StoredType(source), weight.rows, weight.cols,
                                 ContiguousRows(source)};
  if (view.data != nullptr) return view;
  return TensorFault(files_, "shape_mismatch", weight.name,
                     "its rows do not lie one after the other");
}

Status ModelFile::ReadVector(const WeightSpec& weight, float* out) const {
  VIVACE_ASSIGN(const WeightSource source, Find(weight));
  ReadRows(source, out);
  if (!weight.neg_exp && weight.offset == 0.0f && weight.scale == 1.0f) return {};
  for (int64_t i = 0; i < int64_t{weight.rows} * weight.cols; ++i) {
    const float value = weight.neg_exp ? -std::exp(out[i]) : out[i];
    out[i] = (value + weight.offset) * weight.scale;
  }
  return {};
}

void ModelFile::Prefetch(const WeightSpec& weight) const {
  if (const StoredTensor* tensor = files_.Find(weight.name)) {
    files_.WillNeed(tensor->part, SliceBytes(weight, *tensor));
  }
}

void ModelFile::Release(const WeightSpec& weight) const {
  if (const StoredTensor* tensor = files_.Find(weight.name)) {
    files_.DontNeed(tensor->part, SliceBytes(weight, *tensor));
  }
}

Result<ModelFile> OpenModel(const std::string& path) {
  if (formats::HfFolder::Recognises(path)) {
    VIVACE_ASSIGN(formats::HfFolder folder, formats::HfFolder::Open(path));
    return CheckModel(WeightFiles(std::move(folder)));
  }
  VIVACE_ASSIGN(std::vector<formats::GgufFile> parts, formats::OpenGgufParts(path));
  return CheckModel(WeightFiles(std::move(parts)));
}

Result<ModelFile> CheckModel(formats::GgufFile gguf) {
  std::vector<formats::GgufFile> parts;
  parts.push_back(std::move(gguf));
  return CheckModel(WeightFiles(std::move(parts)));
}

Result<ModelFile> CheckModel(WeightFiles files) {
  if (const formats::HfFolder* folder = files.folder()) {
    VIVACE_ASSIGN(const std::string_view architecture, HfArchitecture(*folder));
    VIVACE_ASSIGN(const Recipe* recipe, FindHfRecipe(architecture, folder->config_path()));
    const HfSource source(*folder, architecture, recipe->hf);
    VIVACE_ASSIGN(ModelSpec spec, recipe->build(source));
    std::vector<int32_t> eos_ids;
    VIVACE_RETURN_IF_ERROR(AddEosIds(folder->generation_config(),
                                     folder->PathOf("generation_config.json"), spec.vocab,
                                     &eos_ids));
    VIVACE_RETURN_IF_ERROR(
        AddEosIds(folder->config(), folder->config_path(), spec.vocab, &eos_ids));
    ModelFile model(std::move(files), std::move(spec));
    model.eos_ids_ = std::move(eos_ids);
    return model;
  }
  VIVACE_ASSIGN(const GgufSource source, GgufSource::Create(files.gguf_parts()));
  VIVACE_ASSIGN(const Recipe* recipe, FindRecipe(source));
  VIVACE_ASSIGN(ModelSpec spec, recipe->build(source));
  return ModelFile(std::move(files), std::move(spec));
}

}  // namespace vivace::model
