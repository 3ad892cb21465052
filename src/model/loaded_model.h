// A model file, opened and checked, its weights still in the file.
//
// OpenModel does every check that loading would do without reading weights: the container, the
// architecture, hyper-parameter ranges, the vocabulary's size, and each tensor's presence, exact
// shape and type. What it returns can be packed by the kernels without another test but can_pack.
// Cost: a few ms, no weight page touched. Owns the mapping; move-only; const members from any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "formats/gguf.h"
#include "kernels/block_ops.h"
#include "model/spec.h"

namespace vivace::model {

class ModelFile {
 public:
  const ModelSpec& spec() const { return spec_; }
  const formats::GgufFile& gguf() const { return gguf_; }  // tokenizer and template are read here
  const std::string& path() const { return gguf_.path(); }
  uint64_t weight_bytes() const { return weight_bytes_; }  // in the file; tied embeddings once
  uint64_t parameters() const { return parameters_; }      // weights, counted one by one

  // The weight as it stands in the file: F32, F16, BF16 or a block format. Data is aligned to the
  // file's alignment (8 bytes at least). `weight` comes from spec(); any other is missing_tensor or
  // shape_mismatch.
  Result<kernels::WeightView> Weight(const WeightSpec& weight) const;

  // Hints around packing: start reading the weight; give its pages back once it was packed.
  void Prefetch(const WeightSpec& weight) const;
  void Release(const WeightSpec& weight) const;
  // Fails (file_changed) if the file was changed since OpenModel: call after packing, before
  // serving.
  Status CheckUnchanged() const { return gguf_.mapping().CheckUnchanged(); }

 private:
  friend Result<ModelFile> OpenModel(const std::string& path);
  friend Result<ModelFile> CheckModel(formats::GgufFile gguf);
  ModelFile(formats::GgufFile gguf, ModelSpec spec);

  formats::GgufFile gguf_;
  ModelSpec spec_;
  uint64_t weight_bytes_ = 0;
  uint64_t parameters_ = 0;
};

Result<ModelFile> OpenModel(const std::string& path);
// The part after the container: for a GgufFile that is open already.
Result<ModelFile> CheckModel(formats::GgufFile gguf);

}  // namespace vivace::model
