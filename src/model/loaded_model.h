// A model, opened and checked, its weights still in its files.
//
// OpenModel does every check that loading would do without reading weights: the containers, the
// architecture, hyper-parameter ranges, the vocabulary's size, and each tensor's presence, exact
// shape and type. What it returns can be packed by the kernels without another test but can_pack.
// Cost: a few ms, no weight page touched. Owns the mappings; move-only; const members from any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"
#include "formats/hf_folder.h"
#include "kernels/block_ops.h"
#include "model/spec.h"
#include "model/weight_files.h"

namespace vivace::model {

struct WeightSource;  // model/materialize.h

class ModelFile {
 public:
  const ModelSpec& spec() const { return spec_; }
  // Where the tokenizer and the template are read: one of these, the other is null. Of a GGUF in
  // parts the first one has them.
  const formats::GgufFile* gguf() const { return files_.gguf(); }
  const formats::HfFolder* folder() const { return files_.folder(); }
  const std::string& path() const { return files_.path(); }
  std::vector<FilePart> parts() const { return files_.parts(); }
  // Tokens that end a text beside the tokenizer's own: what a folder's generation_config.json and
  // config.json say. Inside the vocabulary.
  const std::vector<int32_t>& eos_ids() const { return eos_ids_; }
  uint64_t weight_bytes() const { return weight_bytes_; }  // in the files; tied embeddings once
  uint64_t parameters() const { return parameters_; }      // weights, counted one by one

  // Quantises float matrices at load whose rows are whole blocks of this type (quant/quantize.h has
  // it). Never what is small or fragile: norms, biases, routers.
  void Quantize(DType dtype) { quantization_ = dtype; }

  // The weight as kernels of `ops` can pack it: as it stands in the file where they know the type,
  // else in the nearest type they know. Rows that do not lie one after the other are gathered. What
  // has to be made lies in `scratch`, which must live as long as the view; else the view is of the
  // file. `weight` comes from spec(); any other is missing_tensor or shape_mismatch.
  Result<kernels::WeightView> Weight(const WeightSpec& weight, const kernels::BlockOps& ops,
                                     std::vector<std::byte>* scratch) const;
  // Type and shape of what Weight returns, without the data: reads nothing.
  Result<kernels::WeightView> WeightShape(const WeightSpec& weight,
                                          const kernels::BlockOps& ops) const;
  // A vector's values as the spec means them (neg_exp, offset, scale). out: rows * cols floats.
  Status ReadVector(const WeightSpec& weight, float* out) const;
  // The weight as it stands in the file, contiguous ones only (else shape_mismatch).
  Result<kernels::WeightView> Weight(const WeightSpec& weight) const;

  // Hints around packing: start reading the weight; give its pages back once it was packed.
  void Prefetch(const WeightSpec& weight) const;
  void Release(const WeightSpec& weight) const;
  // Fails (file_changed) if a file was changed since OpenModel: call after packing, before serving.
  Status CheckUnchanged() const { return files_.CheckUnchanged(); }

 private:
  friend Result<ModelFile> OpenModel(const std::string& path);
  friend Result<ModelFile> CheckModel(WeightFiles files);
  ModelFile(WeightFiles files, ModelSpec spec);

  Result<WeightSource> Find(const WeightSpec& weight) const;

  WeightFiles files_;
  ModelSpec spec_;
  std::vector<int32_t> eos_ids_;
  std::optional<DType> quantization_;
  uint64_t weight_bytes_ = 0;
  uint64_t parameters_ = 0;
};

// `path`: a GGUF file (the first of its parts), a Hugging Face folder or its model.safetensors or
// index file.
Result<ModelFile> OpenModel(const std::string& path);
// The part after the containers: for files that are open already.
Result<ModelFile> CheckModel(WeightFiles files);
Result<ModelFile> CheckModel(formats::GgufFile gguf);

}  // namespace vivace::model
